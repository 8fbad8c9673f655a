"""Reading "replace A with B in FILE" and its kin out of a prompt."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.offline.pattern import Pattern
from codex_py.offline.quotes import QUOTED, Sketch


class Replace(NamedTuple):
    """Replace every `old` by `new`. No `files` means that the files are still to be found; with `everywhere` all
    that have the text are meant. `whole_words` keeps longer names that contain `old`."""

    old: str
    new: str
    files: tuple[str, ...]
    everywhere: bool
    whole_words: bool


_I: Final = re.IGNORECASE
_VERB: Final = r"(?P<verb>replace|substitute|swap|change|rename|turn|switch|update|correct|edit)"
_KIND: Final = (
    r"(?:(?:all|every|each|any|the|both|of|from|occurrences?|instances?|uses?|usages?|mentions?|text|word|string|lines?"
    r"|name|function|variable|class|method|value|version|constant|identifier|symbol|phrase|sentence|title|heading|typo"
    r"|number|type|module)\s+){0,6}"
)
_OLD: Final = rf"(?P<old>{QUOTED}|[^\s{QUOTED[0]}]+)"
_NEW: Final = rf"(?P<new>{QUOTED}|nothing\b|an? empty (?:string|text|line)\b|[^\s{QUOTED[0]}]+)"
_BY: Final = (
    r"\s*,?\s+(?:with|by|to|into|for|against|->|=>|→)\s+(?:(?:the|text|word|string|line|lines|name|value)\s+){0,3}"
)
_FILE: Final = rf"(?:{QUOTED}|[^\s,;{QUOTED[0]}]+)"
_FILES: Final = (
    r"(?P<files>(?:all|every|each|any|the whole|the entire)\b[^.?!,\n]{0,40}"
    rf"|{_FILE}(?:\s*(?:,|,?\s+and)\s+{_FILE})*)"
)
_IN: Final = rf"(?:in|inside|within|of|from|throughout|across|on)\s+(?:(?:the|file|files|my|this)\s+){{0,3}}{_FILES}"
_FORMS: Final = tuple(
    Pattern(form, _I)
    for form in (
        rf"\bfind\s+{_KIND}{_OLD}\s*,?\s+and\s+{_VERB}\s+(?:it|them|this|that|all|each|every one)(?:\s+of\s+them)?"
        rf"{_BY}{_NEW}\s+{_IN}",
        rf"\b{_VERB}\s+{_KIND}{_OLD}{_BY}{_NEW}(?:\s+everywhere)?\s*,?\s+{_IN}",
        rf"\b{_VERB}\s+{_KIND}{_OLD}\s+{_IN}{_BY}{_NEW}",
        rf"\bin\s+(?:(?:the|file)\s+){{0,2}}{_FILES}\s*[,:]?\s+(?:please\s+)?{_VERB}\s+{_KIND}{_OLD}{_BY}{_NEW}",
        rf"\b{_VERB}\s+(?:[\w-]+\s+){{0,6}}?from\s+{_OLD}\s+to\s+{_NEW}\s+{_IN}",
        rf"\b{_VERB}\s+{_KIND}{_OLD}{_BY}{_NEW}",
    )
)
_REMOVE: Final = Pattern(rf"\b(?P<verb>remove|delete|strip|drop|erase)\s+{_KIND}(?P<old>{QUOTED})\s+{_IN}", _I)
_SURE_VERBS: Final = ("replace", "substitute", "rename")
_ALL: Final = Pattern(
    r"\b(?:everywhere|throughout|all (?:the )?(?:\w+ )?files|every file|each file"
    r"|(?:whole|entire|all (?:of )?the|this) (?:repo|repository|project|code ?base|code|tree))\b",
    _I,
)
_NOTHING: Final = Pattern(r"(?:nothing|an? empty (?:string|text|line))\Z", _I)
_FILE_NAME: Final = Pattern(r"(?:[\w@%+~.-]*/)*[\w@%+~-]*[.\w@%+~-]+")
_NO_FILE_WORDS: Final = "repo repository project codebase code file files folder directory tree here and it them"
_NO_FILE: Final = frozenset(_NO_FILE_WORDS.split())
_NO_NAME: Final = ("it", "them", "this", "that", "all", "each", "everything", "one")


def find_replacement(drawn: Sketch, head: str) -> Replace | None:
    """The replacement a prompt asks for; bare words count only where they cannot be taken for prose."""
    for form in _FORMS:
        if (found := form.search(head)) and (replacement := _read(drawn, head, found)):
            return replacement
    if removal := _REMOVE.search(head):
        files = _files(drawn, removal["files"])
        return Replace(drawn.word(removal["old"]), "", files, not files, False) if files else None
    return None


def _read(drawn: Sketch, head: str, found: re.Match[str]) -> Replace | None:
    parts = found.groupdict()
    files = _files(drawn, parts.get("files") or "")
    everywhere = not files and _ALL.search(head) is not None
    quoted = re.fullmatch(QUOTED, parts["old"]) and (re.match(QUOTED, parts["new"]) or _NOTHING.match(parts["new"]))
    named = parts["verb"].lower() in _SURE_VERBS and (files or everywhere)
    old, new = drawn.word(parts["old"]), "" if _NOTHING.match(parts["new"]) else drawn.word(parts["new"])
    if not old or old == new or not (quoted or (named and old.lower() not in _NO_NAME)):
        return None
    is_name = re.fullmatch(r"\w+", old) is not None
    from_to = re.search(r"\bfrom\s+$", head[: found.start("old")], _I) is not None
    return Replace(old, new, files, everywhere, is_name and (parts["verb"].lower() == "rename" or from_to))


def _files(drawn: Sketch, stretch: str) -> tuple[str, ...]:
    if _ALL.search(stretch):
        return ()
    names: list[str] = []
    for word in re.findall(_FILE, stretch):
        name = drawn.word(word)
        if re.fullmatch(QUOTED, word) or (name.lower() not in _NO_FILE and _looks_like_file(name)):
            names.append(name)
    return tuple(dict.fromkeys(names))


def _looks_like_file(name: str) -> bool:
    return (
        "." in name or "/" in name or name in ("Makefile", "Dockerfile", "LICENSE", "README", "Procfile", "CHANGELOG")
    )
