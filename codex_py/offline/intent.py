"""Choosing what a prompt asks for. Pure: words in, one of a few wishes out; whatever is not understood is a `Plan`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from codex_py.offline import phrases
from codex_py.offline.commands import changes_things, is_known_program, looks_like_command
from codex_py.offline.needle import find_needle
from codex_py.offline.pattern import Pattern
from codex_py.offline.quotes import QUOTED, Sketch, sketch
from codex_py.offline.replacement import Replace, find_replacement


class Tour(NamedTuple):
    """Say what the project is; `whole` asks for the repository and not only the current folder."""

    whole: bool


class Find(NamedTuple):
    """Find a text; `definition` asks where a name comes from."""

    needle: str
    definition: bool


class RunTests(NamedTuple):
    """Run the tests: those of a file or name when `target` is given, with the runner in `tool` when one is named."""

    target: str
    tool: str
    fix: bool


class Run(NamedTuple):
    """Run commands in their order."""

    commands: tuple[str, ...]
    workdir: str | None


class About(NamedTuple):
    """Tell about this program and this model."""


class Greet(NamedTuple):
    pass


class Plan(NamedTuple):
    """Lay out steps; `english` is false when the prompt is in a language the rules do not read."""

    english: bool


Intent: TypeAlias = Tour | Find | RunTests | Run | Replace | About | Greet | Plan


# Longer words are no names; patterns that look at names stay cheap.
_LONGEST_NAME: Final = 300
# Programs whose names are common words: without backticks they are prose.
_WORDS_TOO: Final = ("time", "test", "file", "find", "which", "type")
# Names for where commands run anyway.
_HERE: Final = ("", "this", "the", "current", "same", "root", "working")


def choose_intent(prompt: str) -> Intent:
    """The one wish a prompt is taken for: the first that is named, and a plan when none is."""
    drawn = sketch(prompt)
    head = drawn.text[:4000]
    if phrases.GREETING.match(head):
        return Greet()
    if phrases.FORBIDDEN.search(head):
        return _plan(head)
    if (replacement := find_replacement(drawn, head)) is not None:
        return replacement
    # Where two begin at the same word, the one that says more precisely what to do comes first.
    wishes = (_tour(head), _find(drawn, head), _run(drawn, head), _test(drawn, head), _run_bare(drawn, head))
    if first := min(filter(None, wishes), key=lambda wish: wish[0], default=None):
        return first[1]
    if any(pattern.search(head) for pattern in phrases.ABOUT):
        return About()
    mentioned = tuple(text for text in drawn.ticks(head) if looks_like_command(text) and not changes_things(text))
    return Run(mentioned, None) if mentioned else _plan(head)


def _plan(head: str) -> Plan:
    words = head.split()
    letters = [letter for letter in head if letter.isalpha()]
    latin = sum(letter < "ɐ" for letter in letters)
    return Plan(english=latin * 2 >= len(letters) and (len(words) < 3 or phrases.ENGLISH.search(head) is not None))


def _first(patterns: tuple[Pattern, ...], head: str) -> int | None:
    return min((found.start() for pattern in patterns if (found := pattern.search(head))), default=None)


def _tour(head: str) -> tuple[int, Intent] | None:
    at = _first(phrases.TOUR, head)
    return None if at is None else (at, Tour(phrases.WHOLE_PROJECT.search(head) is not None))


def _find(drawn: Sketch, head: str) -> tuple[int, Intent] | None:
    found = find_needle(drawn, head)
    return (found.at, Find(found.needle, found.definition)) if found else None


def _test(drawn: Sketch, head: str) -> tuple[int, Intent] | None:
    at = _first(phrases.TESTS, head)
    if at is None or phrases.WORK_ON_TESTS.search(head):
        return None
    tool = phrases.TEST_TOOL.search(head)
    mend = phrases.MEND.search(head) is not None
    return at, RunTests(_test_target(drawn, head), tool[1].lower() if tool else "", mend)


def _test_target(drawn: Sketch, head: str) -> str:
    place = phrases.TEST_PLACE.search(head)
    if place and not looks_like_command(drawn.word(place[1])):
        return drawn.word(place[1])
    words = (*drawn.quoted, *(word.strip(".,;:!?()") for word in head.split()))
    named = (word for word in words if len(word) < _LONGEST_NAME and phrases.TEST_NAME.fullmatch(word))
    return next(named, "")


def _run(drawn: Sketch, head: str) -> tuple[int, Intent] | None:
    if re.fullmatch(rf"\W*{QUOTED}\W*", head):
        only = drawn.ticks(head)
        return (0, Run(only, None)) if only and looks_like_command(only[0]) else None
    for found in phrases.RUN.finditer(head):
        first, *rest = drawn.marks(found["quoted"])
        is_ticked = drawn.ticks(found["quoted"])[:1] == (first,)
        told_to = found["verb"].lower() in phrases.RUN_VERBS
        told_so = phrases.RUN_WORDS.issuperset(found["between"].lower().replace(":", " ").split())
        if looks_like_command(first) or (told_to and told_so and is_ticked):
            commands = (first, *(text for text in rest if looks_like_command(text)))
            return found.start(), Run(tuple(text.removeprefix("$ ") for text in commands), _folder(drawn, head))
    return None


def _run_bare(drawn: Sketch, head: str) -> tuple[int, Intent] | None:
    """`run ls -la`: a command without backticks, when its program is one that people type often."""
    bare = phrases.RUN_BARE.match(head)
    if bare is None:
        return None
    command = phrases.RUN_TAIL.sub("", bare["command"]).strip().rstrip(".!?")
    program, _, arguments = command.partition(" ")
    is_prose = program.lower() in _WORDS_TOO or (program == "make" and not re.fullmatch(r"[\w./-]*", arguments))
    if is_prose or not is_known_program(program):
        return None
    return bare.start(), Run((_spelled_out(drawn, command),), _folder(drawn, head))


def _folder(drawn: Sketch, head: str) -> str | None:
    found = phrases.FOLDER.search(head)
    name = drawn.word(found[1] or found[2]) if found else ""
    return name if name not in _HERE else None


def _spelled_out(drawn: Sketch, command: str) -> str:
    """A command typed without backticks, with its own quotes put back."""
    for number, text in enumerate(drawn.quoted):
        safe = text.replace("'", "'\\''")
        command = command.replace(f"{QUOTED[0]}{number}{QUOTED[-1]}", f"'{safe}'")
    return command
