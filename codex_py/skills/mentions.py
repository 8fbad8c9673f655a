"""Skill mentions in a prompt: `$name`, and `[$name](path)`; what they stand for is decided in `select`.

The text is read as characters, not as Markdown: a mention counts in a code fence too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

LinkType: TypeAlias = Literal["skill", "app", "mcp", "plugin", "other"]

_NAME: Final = "[A-Za-z0-9_:-]++"
_PLAIN: Final = re.compile(rf"\$({_NAME})")
# Only searched up to the last `)` of a text: there every `[$name](` has its end, so no search runs through the rest
# of the text in vain.
_ANY: Final = re.compile(rf"\[\$({_NAME})\][ \t\n\f\r]*+\(([^)]*+)\)|\$({_NAME})")

# Names that in a prompt are the shell's variables.
_ENV_NAMES: Final = frozenset(
    ("path", "home", "user", "shell", "pwd", "tmpdir", "temp", "tmp", "lang", "term", "xdg_config_home")
)
_SCHEMES: Final[tuple[tuple[str, LinkType], ...]] = (
    *(("skill://", "skill"), ("app://", "app")),
    *(("mcp://", "mcp"), ("plugin://", "plugin")),
)


class LinkMention(NamedTuple):
    """`[$name](path)`; of a `skill://` link the path is what follows the scheme."""

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

    A colon belongs to a name; when the whole run of name characters is no known name, the longest known name that
    ends before one of its colons is meant, so `$lint: go` means `lint`. Names of common environment variables are no
    mentions, in any case of letters. A link without a target is a plain mention.
    """
    if "$" not in text:
        return Mentions()
    known = known_names if isinstance(known_names, set | frozenset) else frozenset(known_names)
    lengths = lengths_of(known)
    runs, links = _written(text)
    plain: dict[str, None] = {}
    unknown: list[str] = []
    for run in runs:
        if run in known:
            plain[run] = None
        elif ":" not in run:
            unknown.append(run)
        elif name := longest_known(run, known, lengths):
            plain[name] = None
        elif run.partition(":")[0].lower() not in _ENV_NAMES:
            unknown.append(run)
    return Mentions(
        tuple([name for name in plain if name.lower() not in _ENV_NAMES]),
        tuple([run for run in unknown if run.lower() not in _ENV_NAMES]),
        links,
    )


def is_mentionable(name: str) -> bool:
    """Whether `$name` can stand for a skill of this name."""
    return re.fullmatch(_NAME, name) is not None and name.lower() not in _ENV_NAMES


def longest_known(run: str, known: Collection[str], lengths: Sequence[int]) -> str:
    """What a run of name characters means: all of it, or the longest known name before one of its colons, or "".

    `lengths` are the different lengths of the known names, the greatest first.
    """
    if run in known:
        return run
    if ":" in run:
        for length in lengths:
            if run[length : length + 1] == ":" and run[:length] in known:
                return run[:length]
    return ""


def lengths_of(names: Iterable[str]) -> list[int]:
    """The different lengths of names, the greatest first."""
    return sorted({len(name) for name in names}, reverse=True)


def _written(text: str) -> tuple[list[str], tuple[LinkMention, ...]]:
    """The different runs behind a `$`, and the different links."""
    last_end = text.rfind(")") + 1
    if "[$" not in text[:last_end]:
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
