"""Skill mentions in a prompt: `$name`, `[$name](path)` and `$[name](path)`; `select` decides what they stand for.

The text is read as characters, not as Markdown: a mention counts in a code fence too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

LinkType: TypeAlias = Literal["skill", "app", "mcp", "plugin", "other"]

# ASCII letters, digits, `_`, `:` and `-`, and of the rest of Unicode everything except spaces and punctuation.
_NAME_CHAR: Final = (
    r"[A-Za-z0-9_:\-\u00c0-\u1fff\u200c\u200d\u2c00-\u2dff\u2e80-\u2fff\u3005-\u3007\u3031-\ufaff"
    r"\ufb00-\ufdff\ufe20-\ufe2f\ufe70-\ufefe\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    r"\U00010000-\U0010ffff]"
)
NAME: Final = f"{_NAME_CHAR}++"
# From Thai on, scripts put no space between words.
_UNSPACED: Final = "\u0e00"
_SPACED_HEAD: Final = re.compile("[\0-\u0dff]+")
_PLAIN: Final = re.compile(rf"\$({NAME})")
# Only searched up to the last `)` of a text: there every `[$name](` has its end, so no search runs through the rest
# of the text in vain.
_ANY: Final = re.compile(rf"(?:\[\$|\$\[)({NAME})\][ \t\n\f\r]*+\(([^)]*+)\)|\$({NAME})")

# Names that in a prompt are the shell's variables.
_ENV_NAMES: Final = frozenset(
    ("path", "home", "user", "shell", "pwd", "tmpdir", "temp", "tmp", "lang", "term", "xdg_config_home")
)
_SCHEMES: Final[tuple[tuple[str, LinkType], ...]] = (
    *(("skill://", "skill"), ("app://", "app")),
    *(("mcp://", "mcp"), ("plugin://", "plugin")),
)


class LinkMention(NamedTuple):
    """`[$name](path)` or `$[name](path)`; of a `skill://` link the path is what follows the scheme."""

    link_type: LinkType
    name: str
    path: str


class Mentions(NamedTuple):
    """The mentions in a text, each once, in the order of the text.

    `plain` holds known names. `unknown` holds what else stands behind a `$`, whole: a name in another case, a shell
    variable, anything.
    """

    plain: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    links: tuple[LinkMention, ...] = ()


def find_mentions(text: str, known_names: Collection[str]) -> Mentions:
    """Find the mentions in a text, in time linear in its length.

    A colon belongs to a name; when the whole run of name characters is no known name, the longest known name at its
    start is meant that ends before a colon, or at a letter of a script without spaces: `$lint: go` and `$lint检查` mean
    `lint`. Names of common environment variables are no mentions, in any case of letters. A link without a target is a
    plain mention.
    """
    if "$" not in text:
        return Mentions()
    known = known_names if isinstance(known_names, set | frozenset) else frozenset(known_names)
    lengths = lengths_of(known)
    runs, links = _written(text)
    plain: dict[str, None] = {}
    unknown: list[str] = []
    for run in runs:
        if not run.isascii():
            run = normalize("NFC", run)
        if name := longest_known(run, known, lengths):
            plain[name] = None
        elif (head := _head(run)).partition(":")[0].lower() not in _ENV_NAMES:
            unknown.append(head)
    return Mentions(
        tuple([name for name in plain if name.lower() not in _ENV_NAMES]),
        tuple([run for run in dict.fromkeys(unknown) if run.lower() not in _ENV_NAMES]),
        links,
    )


def is_mentionable(name: str) -> bool:
    """Whether `$name` can stand for a skill of this name."""
    return re.fullmatch(NAME, name) is not None and name.lower() not in _ENV_NAMES


def longest_known(run: str, known: Collection[str], lengths: Sequence[int]) -> str:
    """What a run of name characters means: all of it, or the longest known name that ends within it, or "".

    `lengths` are the different lengths of the known names, the greatest first.
    """
    if run in known:
        return run
    if ":" in run or not run.isascii():
        for length in lengths:
            if length < len(run) and run[:length] in known and _may_end(run[:length], run[length]):
                return run[:length]
    return ""


def _may_end(name: str, following: str) -> bool:
    """Whether a name can end before a character that may be part of a name."""
    if following in "-_":
        return False
    has_boundary = max(name[-1:], following) >= _UNSPACED or (name.isascii() and not following.isascii())
    return following == ":" or has_boundary


def _head(run: str) -> str:
    """The part of an unknown run that is quoted: not the text that follows it in a script without spaces."""
    found = _SPACED_HEAD.match(run)
    return found[0] if found else run


def lengths_of(names: Iterable[str]) -> list[int]:
    """The different lengths of names, the greatest first."""
    return sorted({len(name) for name in names}, reverse=True)


def _written(text: str) -> tuple[list[str], tuple[LinkMention, ...]]:
    """The different runs behind a `$`, and the different links."""
    last_end = text.rfind(")") + 1
    if "[$" not in text[:last_end] and "$[" not in text[:last_end]:
        return list(dict.fromkeys(_PLAIN.findall(text))), ()
    runs: dict[str, None] = {}
    links: dict[LinkMention, None] = {}
    for name, target, bare in dict.fromkeys(_ANY.findall(text, 0, last_end)):
        if bare or not (path := target.strip()):
            runs[bare or name] = None
        elif name.lower() not in _ENV_NAMES:
            links[_link(name, path)] = None
    runs.update(dict.fromkeys(_PLAIN.findall(text, last_end)))
    return list(runs), tuple(links)


def _link(name: str, path: str) -> LinkMention:
    if "://" in path:
        for scheme, link_type in _SCHEMES:
            if path.startswith(scheme):
                return LinkMention(link_type, name, path.removeprefix("skill://"))
    is_file = path[-8:].lower() == "skill.md" and path[-9:-8] in ("", "/", "\\")
    return LinkMention("skill" if is_file else "other", name, path)
