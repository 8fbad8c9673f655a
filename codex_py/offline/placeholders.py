"""Placeholders in a shell text: found, and filled from the words of a prompt where it names them."""

from __future__ import annotations

import re
import shlex
from typing import Final, NamedTuple

from codex_py.offline.pattern import Pattern
from codex_py.offline.quotes import QUOTED, Sketch, sketch

_ANGLE: Final = Pattern(r"(?<!<)<([A-Za-z][\w.-]*(?:[ |][\w.-]+)*)>(?!>)")
_BRACES: Final = Pattern(r"\{\{ ?([A-Za-z][\w.-]*) ?\}\}")
_YOUR: Final = Pattern(r"\bYOUR_([A-Z][A-Z0-9_]*)\b")
_VARIABLE: Final = Pattern(r"(?<!\\)\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
_SINGLE_QUOTED: Final = Pattern(r"'[^']*'")
_LITERAL_HEREDOC: Final = Pattern(r"<<-?\s*(['\"\\])(\w+)['\"]?[^\n]*\n(?:(?![ \t]*\2[ \t]*$)[^\n]*\n?)*", re.MULTILINE)
_SET: Final = Pattern(
    r"(?:^|[\s;&|({])(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)\+?=(?!=)"
    r"|\b(?:for|read(?:\s+-\w+)*|mapfile(?:\s+-\w+)*|getopts\s+\S+)\s+([A-Za-z_]\w*)",
    re.MULTILINE,
)
_AMBIENT_NAMES: Final = """
BASH BASHPID BASH_SOURCE BASH_VERSION CI COLUMNS DISPLAY EDITOR EUID FUNCNAME HOME HOSTNAME HOSTTYPE IFS LANG
LC_ALL LINENO LINES LOGNAME MACHTYPE OLDPWD OPTARG OPTIND OSTYPE PAGER PATH PIPESTATUS PPID PS1 PWD RANDOM REPLY
SECONDS SHELL SHLVL TEMP TERM TMP TMPDIR TZ UID USER VIRTUAL_ENV XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
"""
_AMBIENT: Final = frozenset(_AMBIENT_NAMES.split())
_FILE_WORDS: Final = ("file", "path", "filename", "filepath", "target", "source", "input")
_FILE: Final = Pattern(r"(?:[\w@%+~-]*/)+[\w@%+.~-]+|[\w@%+-]+(?:\.[A-Za-z]\w{0,7})+")


class Filled(NamedTuple):
    """`unfilled` are the placeholders left, as written; the text must not be run while there are any."""

    text: str
    unfilled: tuple[str, ...]


def fill(text: str, prompt: str, *, known: str = "") -> Filled:
    """Fill `<name>`, `{{name}}`, `YOUR_NAME` and unset `$NAME`; `known` are assignments made before."""
    drawn = sketch(prompt)
    unfilled: list[str] = []

    def put(found: re.Match[str]) -> str:
        value = value_for(found[1], drawn)
        if value is None:
            unfilled.append(found[0])
            return found[0]
        inside_quotes = text[max(0, found.start() - 1) : found.start()] in ("'", '"')
        return value if inside_quotes and re.fullmatch(r"[\w@%+=:,./ -]*", value) else shlex.quote(value)

    filled = text
    for pattern in (_ANGLE, _BRACES, _YOUR):
        if pattern is _ANGLE and "</" in filled:
            continue
        text = filled
        filled = pattern.sub(put, text)
    assignments, missing = _settings(filled, drawn, known)
    return Filled("\n".join([*assignments, filled]), tuple(dict.fromkeys([*unfilled, *missing])))


def _settings(text: str, drawn: Sketch, known: str) -> tuple[list[str], list[str]]:
    """Assignments to put before a text for the variables it uses but does not set, and the ones nobody sets."""
    own = {name for pair in _SET.findall(text) for name in pair if name}
    before = {name for pair in _SET.findall(known) for name in pair if name}
    open_text = _SINGLE_QUOTED.sub("''", _LITERAL_HEREDOC.sub("", text))
    used = dict.fromkeys(plain or braced for plain, braced in _VARIABLE.findall(open_text))
    assignments: list[str] = [known] if any(name in before and name not in own for name in used) else []
    missing: list[str] = []
    for name in used:
        if name in own or name in before or name in _AMBIENT:
            continue
        value = value_for(name, drawn)
        if value is None:
            missing.append(f"${name}")
        else:
            assignments.append(f"{name}={shlex.quote(value)}")
    return assignments, missing


def value_for(name: str, drawn: Sketch) -> str | None:
    """The value a prompt gives to a name: `version=1.2`, `--version 1.2`, `version: 1.2`, `version is 1.2`, or
    for a file the only path it mentions."""
    words = [word for word in re.split(r"[\W_]+", name.lower()) if word]
    if not words:
        return None
    spelled = r"[\s_-]?".join(re.escape(word) for word in words)
    value = rf"({QUOTED}|[^\s,;]+)"
    # A bare word after a bare name is prose more often than not: it must look like a value.
    for form in (
        rf"\b{spelled}\s*(?:=|:|\bis\b|\bto\b|\bas\b)\s*{value}",
        rf"\b{spelled}\s+({QUOTED}|v?\d[\w.+-]*|[\w.-]*[/._\d][\w./-]*)",
    ):
        if found := re.search(form, drawn.text[:8000], re.IGNORECASE):
            return drawn.word(found[1]).rstrip(".,;:!?")
    if words[-1] in _FILE_WORDS:
        paths = dict.fromkeys(
            word for word in (*drawn.quoted, *_bare(drawn)) if len(word) < 300 and _FILE.fullmatch(word)
        )
        return next(iter(paths)) if len(paths) == 1 else None
    return None


def _bare(drawn: Sketch) -> list[str]:
    return [word.strip(".,;:!?()") for word in drawn.text[:8000].split() if not word.startswith("$")]
