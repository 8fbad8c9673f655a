"""YAML from strangers: the block at the top of a Markdown file, and YAML read under bounds.

Scalars are taken as they are written (`1.50` is the text "1.50"), so nothing is ever constructed from a tag.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.errors import CodexError

MAX_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 4096

YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue] | None"

_FENCE: Final = "---"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
# The patterns are compiled when first needed, which at most starts they are not.
# What YAML allows in no place, and serious files hold all the same: moved out of the way while the parser runs.
_REFUSED: Final = "[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]"
_MOVED_BY: Final = 0xF0000
_MOVED: Final = f"[{chr(_MOVED_BY)}-{chr(_MOVED_BY + 0xFFFF)}]"
_COMMENT: Final = r"(?:^|\s)#"
_COLON: Final = r":\s"


class Plain(str):
    """A scalar written without quotes, where `true` is a boolean and not a word."""

    __slots__ = ()


class YamlRefused(CodexError):
    """The text is not YAML that is read here; the message says why and where."""


class Frontmatter(NamedTuple):
    """The lines between the fences, and where in the text the body begins."""

    yaml: str
    body_start: int


def split_frontmatter(text: str) -> Frontmatter | None:
    """The block fenced by two `---` lines of which the first is the first line; None without one, or with an empty one.

    Spaces around a fence do not count. A lone carriage return ends no line. The second fence is looked for in the first
    64 KiB only.
    """
    start = _line_end(text, 0)
    if text[:start].strip() != _FENCE:
        return None
    at = start
    while at < min(len(text), MAX_BYTES):
        end = _line_end(text, at)
        if text[at:end].strip() == _FENCE:
            return Frontmatter(text[start:at], end) if at > start else None
        at = end
    return None


def parse_yaml(text: str) -> YamlValue:
    """One YAML document of at most 64 KiB, 32 levels and 4096 values; raise `YamlRefused`.

    Aliases, keys that are not plain texts and keys given twice are refused. Unquoted scalars come as `Plain`.
    """
    if len(text) > MAX_BYTES or len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise YamlRefused(f"longer than {MAX_BYTES // 1024} KiB")
    import yaml

    parser: Any = yaml
    moved = re.search(_REFUSED, text) is not None
    if moved:
        text = re.sub(_REFUSED, lambda found: chr(ord(found[0]) + _MOVED_BY), text)
    try:
        return _Builder(moved=moved).build(parser.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, error.problem or error.context or "not YAML"
        if "quoted scalar" in (error.context or "") and "end of stream" in problem:
            # Where it begins, and not where the text is over.
            mark, problem = error.context_mark, "a quote is not closed; it begins"
        where = f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""
        raise YamlRefused(f"{problem}{where}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlRefused(str(error).partition("\n")[0]) from None


def repair_yaml(text: str, *, texts: Collection[str] | None = None) -> str:
    """`text` with quotes put round the values that were plainly meant as text, such as `description: Use when: …`.

    A value is quoted when it has a colon before a space, or begins with one of ``[ { @ ` `` and is not YAML by itself.
    Quoted values, block scalars and comments stay as they are. With `texts`, lists and mappings in brackets stay too,
    over several lines as well, except as values of these keys.
    """
    block_indent: int | None = None
    open_brackets = 0
    lines: list[str] = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if open_brackets > 0 or (block_indent is not None and (not line.strip() or indent > block_indent)):
            open_brackets += _opened(line) if open_brackets else 0
            lines.append(line)
            continue
        block_indent = None
        key, colon, rest = line.partition(":")
        value = rest.lstrip()
        if colon and value[:1] in ("|", ">"):
            block_indent = indent
        if texts is not None and value[:1] in ("[", "{") and key.strip(" '\"") not in texts:
            open_brackets = _opened(value)
            if open_brackets > 0 or _is_yaml(value):
                lines.append(line)
                continue
        lines.append(_repaired(key, rest) if colon and key.strip() else line)
    return "\n".join(lines)


def _opened(text: str) -> int:
    """How many brackets it opens and leaves open; less than 0 when it closes more."""
    return text.count("[") + text.count("{") - text.count("]") - text.count("}")


def _repaired(key: str, rest: str) -> str:
    comment = re.search(_COMMENT, rest)
    end = comment.start() if comment else len(rest)
    value = rest[:end].strip()
    meant_as_text = rest[:1].isspace() and value[:1] not in ("", "'", '"') and not value.startswith(("|", ">"))
    if not meant_as_text or not (re.search(_COLON, value) or (value[0] in "[{@`" and not _is_yaml(value))):
        return f"{key}:{rest}"
    quoted = value.replace("'", "''")
    return f"{key}: '{quoted}'{rest[end:]}"


def _is_yaml(value: str) -> bool:
    try:
        parse_yaml(value)
    except YamlRefused:
        return False
    return True


def _line_end(text: str, start: int) -> int:
    return text.find("\n", start) + 1 or len(text)


class _Builder:
    """Makes plain values of parser events, one at a time, so that depth and number are bounded as they come."""

    def __init__(self, *, moved: bool) -> None:
        self._moved = moved
        self._count = 0
        # One entry an open list or mapping: the collection, and the key that waits for its value.
        self._open: list[tuple[list[YamlValue] | dict[str, YamlValue], str | None]] = []
        self._root: YamlValue = None

    def build(self, events: Iterator[Any]) -> YamlValue:
        documents = 0
        for event in events:
            match type(event).__name__:
                case "ScalarEvent":
                    self._add(self._scalar(event), event)
                case "MappingStartEvent":
                    self._start({}, event)
                case "SequenceStartEvent":
                    self._start([], event)
                case "MappingEndEvent" | "SequenceEndEvent":
                    self._open.pop()
                case "AliasEvent":
                    raise YamlRefused(f"aliases are not read: `*{event.anchor}`{_where(event)}")
                case "DocumentStartEvent":
                    documents += 1
                    if documents > 1:
                        raise YamlRefused(f"more than one document{_where(event)}")
                case _:
                    pass
        return self._root

    def _scalar(self, event: Any) -> str | None:
        value: str = event.value
        if self._moved:
            value = re.sub(_MOVED, lambda found: chr(ord(found[0]) - _MOVED_BY), value)
        if event.style:
            return value
        return None if value in _NULLS and not event.tag else Plain(value)

    def _start(self, value: list[YamlValue] | dict[str, YamlValue], event: Any) -> None:
        self._add(value, event)
        if len(self._open) == MAX_DEPTH:
            raise YamlRefused(f"nested deeper than {MAX_DEPTH} levels{_where(event)}")
        self._open.append((value, None))

    def _add(self, value: YamlValue, event: Any) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            raise YamlRefused(f"more than {MAX_NODES} values")
        if not self._open:
            self._root = value
            return
        parent, key = self._open[-1]
        if isinstance(parent, list):
            parent.append(value)
        elif key is None:
            self._open[-1] = (parent, _key(value, parent, event))
        else:
            parent[key] = value
            self._open[-1] = (parent, None)


def _key(value: YamlValue, parent: dict[str, YamlValue], event: Any) -> str:
    if isinstance(value, list | dict):
        raise YamlRefused(f"a key that is not a text{_where(event)}")
    key = str(value or "")
    if key in parent:
        raise YamlRefused(f"duplicate key `{key[:64]}`{_where(event)}")
    return key


def _where(event: Any) -> str:
    mark = event.start_mark
    return f" at line {mark.line + 1} column {mark.column + 1}"
