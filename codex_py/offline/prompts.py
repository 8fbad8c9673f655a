"""Recognises the request in a prompt. Pure: text in, one of a few requests out; any other prompt needs a model."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple, TypeAlias


class PlainRequest(Enum):
    """A request that carries nothing: no rule covers what `NEEDS_MODEL` stands for."""

    DESCRIBE_REPOSITORY = "describe"
    DESCRIBE_SELF = "about"
    GREET = "greet"
    NEEDS_MODEL = "model"


class FindText(NamedTuple):
    """Find every line with a text."""

    text: str


class RunTests(NamedTuple):
    """Run the tests, only those of `target` (a file or a name) where one is named."""

    target: str = ""


class RunCommands(NamedTuple):
    """Run commands in their order."""

    commands: tuple[str, ...]


class ReplaceText(NamedTuple):
    """Replace every `old` by `new`, in `file` or in the only file that has it."""

    old: str
    new: str
    file: str = ""


OfflineRequest: TypeAlias = PlainRequest | FindText | RunTests | RunCommands | ReplaceText

_MAX_PROMPT: Final = 8_000
_I: Final = re.IGNORECASE
# Each quoted text is replaced by a mark, so that the rules match the prompt's own words and never what is quoted.
_OPEN, _CLOSE = "\ue000", "\ue001"
_QUOTED: Final = re.compile(
    r"```[^\n`]*\n(?P<fence>.*?)```|``(?P<double>(?:[^`]|`(?!`))+)``|`(?P<code>[^`]+)`"
    r'|(?<!\w)"(?P<straight>[^"]*)"|“(?P<curly>[^“”]*)”|(?<!\w)\'(?P<single>(?:[^\']|(?<=\w)\'(?=\w))*)\'(?!\w)',
    re.DOTALL,
)
_MARK: Final = f"{_OPEN}\\d+{_CLOSE}"
_PROJECT: Final = r"(?:repo|repository|project|code ?base|folder|directory|package|program|app|code)"
_THIS: Final = rf"\b(?:this|the|my|our|current) (?:\w+ )?{_PROJECT}\b"
_DESCRIBE: Final = re.compile(
    rf"\bwhat(?:'s| is| does)?\b[^.?!\n]{{0,20}}{_THIS}(?!'s)"
    r"|\b(?:explain|describe|summari[sz]e|overview of|tell me about)\b"
    rf"[^.?!\n]{{0,20}}{_THIS}(?!'s)\s*(?:$|[.?!,\n])|\bhow (?:do|can) (?:i|you|we) (?:build|run|start|install) {_THIS}"
    rf"|\b(?:which|what) (?:programming )?languages?\b[^.?!\n]{{0,40}}\b{_PROJECT}\b"
    r"|^\W*(?:what(?:'s| is) (?:this|here)|explain this|overview|where am i)\W*$",
    _I,
)
_TESTS: Final = r"(?:tests?|test suites?|pytest|unittests?)"
_STATE: Final = r"(?:fail\w*|broken?|break\w*|red|pass\w*|green|ok)"
_RUN_TESTS: Final = re.compile(
    rf"\b(?:run|re-?run|execute|start|check)\b(?! not\b)[^.?!\n]{{0,40}}?\b(?<![-/.]){_TESTS}\b(?![-/])"
    rf"|\b(?:which|why|do|does|are|is|did|make|get)\b[^.?!\n]{{0,40}}?\b{_TESTS}\b[^.?!\n]{{0,30}}?\b{_STATE}\b"
    rf"|\b(?:failing|failed|broken|red) (?:unit )?{_TESTS}\b|\bwhy\b[^?!\n]{{0,40}}\btest_\w+[^?!\n]{{0,40}}\bfail\w*"
    rf"|^\W*(?:please )?(?:the )?{_TESTS}\W*$",
    _I,
)
_WRITE_TESTS: Final = re.compile(
    r"\b(?:write|add|create|generate|implement|extend|improve|refactor|delete|remove|rename)\b"
    rf"[^.?!\n]{{0,40}}\b{_TESTS}\b",
    _I,
)
_TEST_NAME: Final = re.compile(
    r"(?:[\w.-]+/)*[\w.-]*test[\w.-]*\.py(?:::[\w\[\]-]+)*|(?:[\w.-]+/)*tests?/[\w./-]*|test_\w+"
)
_RUN: Final = re.compile(
    rf"\b(?:run|re-?run|execute|exec|try)\b(?:(?!\b(?:not|never)\b)[^.?!\n{_OPEN}]){{0,40}}"
    rf"(?P<commands>{_MARK}(?:\s*(?:,|;|and|then|and then|, then|, and)?\s*{_MARK})*)",
    _I,
)
_FIND: Final = re.compile(
    r"\b(?:[Ff]ind|[Ss]earch|[Gg]rep|[Ll]ocate|[Ll]ook for|[Ww]here|[Ww]hich files?|[Ww]ho (?:calls|uses|imports))\b"
    rf"(?:(?![.?!\n])[^{_OPEN}]){{0,60}}?(?P<text>{_MARK}|(?<!\S)(?:[\w.]*(?:_|\w\.\w|[a-z][A-Z])\w*|[A-Z]{{3,}}\w*))"
)
_REPLACE: Final = re.compile(
    rf"\b(?:replace|substitute|change|rename)\s+(?:(?:all|every|the|text|word|name|value)\s+){{0,3}}(?P<old>{_MARK})"
    rf"(?:\s+in\s+(?:the )?(?:file\s+)?(?P<first>{_MARK}|[\w./-]+))?"
    rf"\s+(?:with|by|to|into)\s+(?P<new>{_MARK}|nothing\b)"
    rf"(?:\s+in\s+(?:the )?(?:file\s+)?(?P<file>{_MARK}|[\w./-]+))?",
    _I,
)
_FORBIDDEN: Final = re.compile(
    r"\b(?:don't|do not|never|without|must not|should not|avoid)\b[^.;!?\n]{0,20}?"
    r"\b(?:run|running|execute|executing|replace|replacing|rename|change|touch)\b",
    _I,
)
_ABOUT: Final = re.compile(
    r"\b(?:what|who) are you\b|\bwhat can (?:you|i) (?:do|ask)\b|\b(?:which|what) model\b|\bwhat(?:'s| is) codex\b"
    r"|\bare you (?:an? )?(?:ai|real|human|llm|bot|model)\b|\bhow do i (?:log ?in|sign in|connect|use (?:you|this))\b"
    r"|^\W*(?:help|usage)\W*(?:me|please)?\W*$",
    _I,
)
_GREETING: Final = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?|thank you|bye|ping)(?:[\s,]+[\w-]+)?\W*$", _I
)
_NO_FILES: Final = frozenset(("this", "the", "all", "every", "repo", "repository", "project", "code", "everywhere"))


def read_prompt(prompt: str) -> OfflineRequest:
    """The one request a prompt is taken for: of several the first that is named."""
    words, quoted = _take_quotes(prompt[:_MAX_PROMPT])
    if not words.strip() or _GREETING.match(words):
        return PlainRequest.GREET
    if _FORBIDDEN.search(words):
        return PlainRequest.NEEDS_MODEL
    if (replacement := _replacement(words, quoted)) is not None:
        return replacement
    found = [
        match
        for match in (_described(words), _tests(words, quoted), _found(words, quoted), _commands(words, quoted))
        if match
    ]
    if found:
        # Of two that begin at the same word, the later one in the list says more precisely what to do.
        return min(reversed(found), key=lambda match: match[0])[1]
    if _ABOUT.search(words):
        return PlainRequest.DESCRIBE_SELF
    return PlainRequest.NEEDS_MODEL


def _take_quotes(prompt: str) -> tuple[str, list[str]]:
    """The prompt with marks in the place of its quoted texts, and those texts."""
    quoted: list[str] = []

    def mark(found: re.Match[str]) -> str:
        text = found[found.lastgroup or 0]
        quoted.append(text.removesuffix("\n") if found.lastgroup == "fence" else text)
        return f"{_OPEN}{len(quoted) - 1}{_CLOSE}"

    plain = prompt.replace(_OPEN, " ").replace(_CLOSE, " ").replace("’", "'")
    return re.sub(r"[^\S\n]+", " ", _QUOTED.sub(mark, plain)), quoted


def _texts(words: str, quoted: list[str]) -> list[str]:
    """The quoted texts whose marks stand in `words`."""
    return [quoted[int(number)] for number in re.findall(f"{_OPEN}(\\d+){_CLOSE}", words)]


def _described(words: str) -> tuple[int, OfflineRequest] | None:
    found = _DESCRIBE.search(words)
    return (found.start(), PlainRequest.DESCRIBE_REPOSITORY) if found else None


def _tests(words: str, quoted: list[str]) -> tuple[int, OfflineRequest] | None:
    found = _RUN_TESTS.search(words)
    if found is None or _WRITE_TESTS.search(words):
        return None
    names = (*quoted, *(word.strip(".,;:!?()") for word in words.split()))
    target = next((name for name in names if len(name) < 300 and _TEST_NAME.fullmatch(name)), "")
    return found.start(), RunTests(target)


def _commands(words: str, quoted: list[str]) -> tuple[int, OfflineRequest] | None:
    if re.fullmatch(rf"\W*{_MARK}\W*", words):
        return 0, RunCommands((quoted[0],))
    found = _RUN.search(words)
    commands = tuple(text.removeprefix("$ ") for text in _texts(found["commands"], quoted)) if found else ("",)
    if found is None or not commands[0].strip() or _TEST_NAME.fullmatch(commands[0]):
        return None
    return found.start(), RunCommands(commands)


def _found(words: str, quoted: list[str]) -> tuple[int, OfflineRequest] | None:
    found = _FIND.search(words)
    if found is None:
        return None
    text = (_texts(found["text"], quoted) or [found["text"].rstrip(".")])[0].strip("\n").split("\n", 1)[0]
    return (found.start(), FindText(text)) if text.strip() else None


def _replacement(words: str, quoted: list[str]) -> ReplaceText | None:
    found = _REPLACE.search(words)
    if found is None:
        return None
    old, new = _texts(found["old"], quoted)[0], (_texts(found["new"], quoted) or [""])[0]
    named = found["file"] or found["first"] or ""
    file = (_texts(named, quoted) or [named.rstrip(".")])[0]
    return ReplaceText(old, new, "" if file.lower() in _NO_FILES else file) if old and old != new else None
