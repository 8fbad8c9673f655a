"""The rules of the Agent Skills reference validator (`skills-ref` 0.1.1) alone.

That validator reads front matter with strictyaml: every scalar is a text; flow style, tags, anchors and duplicate keys
are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import yaml

from codex_py.errors import CodexError

_FIELDS: Final = frozenset(("name", "description", "license", "allowed-tools", "metadata", "compatibility"))
_MAX_CHARS: Final = {"name": 64, "description": 1024, "compatibility": 500}

_ODD_BREAK: Final = "[\x85\u2028\u2029]"
_TEXT_BEHIND: Final = rf"(?m)^[ \t]*\S[^\n]*{_ODD_BREAK}[^\n\x85\u2028\u2029]"
_PARSER: Final[Any] = yaml


class _NotStrict(CodexError):
    """The front matter is outside of strictyaml's subset of YAML."""


def check_spec(directory: Path) -> tuple[str, ...]:
    """Check a skill's directory; give a line for each fault that the reference validator finds."""
    if not directory.is_dir():
        return ("not a directory",)
    file = next((directory / name for name in ("SKILL.md", "skill.md") if (directory / name).exists()), None)
    if file is None:
        return ("there is no `SKILL.md`",)
    try:
        fields: object = _read_strictly(_front_matter(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        return (f"`{file.name}` cannot be read: {error}",)
    except _NotStrict as error:
        return (str(error),)
    if not isinstance(fields, dict):
        return ("the front matter is not a mapping",)
    return tuple(_check_fields(cast("dict[str, Any]", fields), directory))


def odd_metadata(text: str) -> tuple[str, ...]:
    """The keys of `metadata` in a front matter whose values are no texts. The validator takes them, the format not."""
    try:
        top = _PARSER.compose(text, Loader=yaml.SafeLoader)
        fields = {key.value: value for key, value in top.value}
        return tuple(key.value for key, value in fields["metadata"].value if not value.tag.endswith(":str"))
    except (yaml.YAMLError, RecursionError, AttributeError, TypeError, ValueError, KeyError):
        return ()


def _front_matter(text: str) -> str:
    """The text between the first two `---`, where the validator splits even inside of a line."""
    before, *parts = text.split("---", 2)
    if before or len(parts) < 2:
        raise _NotStrict("the front matter must stand between `---` at the start of the file and another `---`")
    return parts[0]


def _check_fields(fields: dict[str, Any], directory: Path) -> Iterator[str]:
    if unknown := sorted(fields.keys() - _FIELDS):
        yield f"the format has no field {', '.join(f'`{name}`' for name in unknown)}"
    for key, most in _MAX_CHARS.items():
        is_required = key != "compatibility"
        value = fields.get(key)
        if key not in fields:
            if is_required:
                yield f"the field `{key}` is missing"
        elif not isinstance(value, str):
            yield f"`{key}` is not a text"
        elif is_required and not value.strip():
            yield f"`{key}` is empty"
        elif key == "name":
            yield from _check_name(value, directory, most)
        elif len(value) > most:
            yield f"`{key}` has {len(value)} characters; the format allows {most}"


def _check_name(value: str, directory: Path, most: int) -> Iterator[str]:
    name = unicodedata.normalize("NFKC", value.strip())
    if len(name) > most:
        yield f"`name` has {len(name)} characters; the format allows {most}"
    if name != name.lower():
        yield f"the name `{name}` has capitals"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield f"the name `{name}` begins or ends with a hyphen, or has two in a row"
    if not all(char.isalnum() or char == "-" for char in name):
        yield f"the name `{name}` may have letters, digits and hyphens only"
    if unicodedata.normalize("NFKC", directory.name) != name:
        yield f"the name `{name}` is not that of the directory `{directory.name}`"


def _read_strictly(text: str) -> Any:
    """The value of a YAML text as strictyaml reads it. Raises `_NotStrict`."""
    refused = (
        yaml.AnchorToken,
        yaml.AliasToken,
        yaml.TagToken,
        yaml.FlowMappingStartToken,
        yaml.FlowSequenceStartToken,
    )
    # strictyaml's parser is a copy of the pure Python one, but takes an empty key, and ends lines at odd breaks in
    # block scalars only, which text behind it then makes invalid.
    written = re.sub(r"(?m)^( *(?:- +)*)(?=:(?:\s|$))", r"\1~", text)
    text = re.sub(_ODD_BREAK, " ", written)
    try:
        for token in _PARSER.scan(text, Loader=yaml.SafeLoader):
            is_block = isinstance(token, yaml.ScalarToken) and token.style in ("|", ">")
            if is_block and re.search(_TEXT_BEHIND, written[token.start_mark.index : token.end_mark.index]):
                raise _NotStrict("the front matter is not strict YAML: a text of several lines has an odd line break")
            if isinstance(token, refused):
                raise _NotStrict(
                    f"the front matter is not strict YAML: line {token.start_mark.line + 1} has `{token.id}`"
                )
        return _build(_PARSER.compose(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise _NotStrict(f"the front matter is not strict YAML: {' '.join(str(error).split())}") from None


def _build(node: Any) -> Any:
    if node is None or node.id == "scalar":
        return node and node.value
    if node.id == "sequence":
        return [_build(item) for item in node.value]
    found: dict[Any, Any] = {}
    columns = {value.start_mark.column for _, value in node.value if value.id == "mapping"}
    if len(columns) > 1:
        raise _NotStrict(f"line {node.start_mark.line + 1} begins mappings with different indentation")
    for key_node, value in node.value:
        key, line = _build(key_node), key_node.start_mark.line + 1
        if key_node.tag.endswith(":merge"):
            for part in value.value if value.id == "sequence" else [value]:
                if part.id != "mapping":
                    raise _NotStrict(f"line {line} merges a value that is not a mapping")
                _build(part)
        elif not isinstance(key, str) or key in found:
            raise _NotStrict(f"line {line} has a key twice, or a key that is not a text")
        else:
            found[key] = _build(value)
    return found
