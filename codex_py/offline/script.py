"""What a rule is made of: a script that asks for tool calls, is given their results, and ends with an answer.

A script is a generator, played again from the start for every request: the results of the calls made so far are read
from the request, so nothing is kept between two requests.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, NamedTuple, TypeAlias

from codex_py.offline.result import Result

# What a shell answers for a program it does not find.
_NO_PROGRAM: Final = 127


class Command(NamedTuple):
    """A shell command. `patience` is how many milliseconds the tool waits before it reports a running process, `room`
    how many tokens of output are wanted at most."""

    cmd: str
    workdir: str | None = None
    patience: int = 10_000
    room: int = 10_000


class Patch(NamedTuple):
    """A patch in the apply_patch format."""

    text: str


class Outline(NamedTuple):
    """Steps for the plan tool."""

    steps: tuple[str, ...]


Request: TypeAlias = Command | Patch | Outline
Script: TypeAlias = Generator[tuple[Request, ...], tuple[Result, ...], str]


class Impossible(Exception):
    """Nothing can be found out; the text tells the user why."""


def ask(request: Request) -> Generator[tuple[Request, ...], tuple[Result, ...], Result]:
    """Make one call and give back its result."""
    (result,) = yield (request,)
    return result


def look(cmd: str, workdir: str | None = None) -> Generator[tuple[Request, ...], tuple[Result, ...], Result]:
    """Run one command that only reads."""
    return (yield from ask(Command(cmd, workdir)))


def look_at_all(
    commands: list[str], workdir: str | None = None
) -> Generator[tuple[Request, ...], tuple[Result, ...], list[Result]]:
    """Run several commands that only read, all at once; results in the order asked."""
    if not commands:
        return []
    return list((yield tuple(Command(cmd, workdir) for cmd in commands)))


def require(result: Result, program: str) -> Result:
    """The result, unless the program that was to bring it is missing: then nothing can be said. Raises `Impossible`."""
    if result.exit_code == _NO_PROGRAM:
        raise Impossible(f"I could not look at the files: `{program}` is not there where commands run.")
    return result
