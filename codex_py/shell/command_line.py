"""A command line, read once: every command in it with its words, input and directory. All judges read this value.

Read with tree-sitter's Bash grammar and never run: what depends on running it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from codex_py.protocol.value import Value

Words: TypeAlias = tuple[str, ...]

ReadFile: TypeAlias = Callable[[str], str | None]
"""The text of a script file by its absolute path; None for what is no script of a shell, or cannot be read."""

_MAX_OPTIONS: Final = 32
# What GNU's tools are called next to a system's own, without the `g`.
_GNU: Final = frozenset("cp dd env find install mv nice nohup rm sed stdbuf tar tee time timeout xargs".split())


class Word(Value):
    """A word of a command; `text` is None when only running the script would tell it.

    The shell may yet turn a pattern into several words: `*`, `?`, `[…]`, `{a,b}`. A stream is a `<(…)`: a file whose
    content is the `text`.
    """

    text: str | None
    is_pattern: bool = False
    is_stream: bool = False


class Redirect(Value):
    """A redirection: its `operator` as written, such as `>>`, and the file."""

    operator: str
    target: Word


class Input(Value):
    """What a command finds at its standard input, where it is known: a text or a file."""

    text: str | None = None
    file: Word | None = None


class ShellCommand(Value):
    """A command of a command line; `words` are never empty.

    `directory` is where it runs, None when that is unknown. `is_guess` says that the words only may be a command, as
    those behind `docker exec -it x`, `in_file` that it stands in a script file that the line names.
    """

    words: tuple[Word, ...]
    directory: str | None
    redirects: tuple[Redirect, ...] = ()
    input: Input = Input()
    is_guess: bool = False
    in_file: bool = False

    @property
    def program(self) -> str:
        """The program's name without its directory, empty when it is not known."""
        return program_name(self.words)

    @property
    def texts(self) -> Words:
        """The words; those that are not known before it runs are empty."""
        return texts_of(self.words)


class CommandLine(Value):
    """All that is known of a command line before it runs.

    `commands` are all commands found anywhere in it, in order: those in pipelines, loops, substitutions,
    here-documents for shells, `bash -c "…"`, behind `sudo` and its like, and in script files it names.
    `segments` are the words of each command of a plain line, one of literal words joined by `&&`, `||`, `;` and `|`;
    None for any other. `scripts` are the scripts handed to further shells.
    """

    commands: tuple[ShellCommand, ...]
    segments: tuple[Words, ...] | None = None
    scripts: Words = ()
    reads_files: bool = False

    def every_reading(self) -> tuple[Words, ...]:
        """The words of all commands as rules see them, each once, also without the options before a subcommand."""
        found: dict[Words, None] = {}
        for command in self.commands:
            found |= dict.fromkeys(without_options(command.texts))
        return tuple(found)


def program_name(words: Sequence[Word]) -> str:
    """The name of the program that words start, without its directory; empty when it is not known."""
    name = (words[0].text or "").rpartition("/")[2].lower() if words else ""
    return name[1:] if name[:1] == "g" and name[1:] in _GNU else name


def texts_of(words: Sequence[Word]) -> Words:
    """The texts of words; those that are not known are empty."""
    return tuple("" if word.is_stream else word.text or "" for word in words)


def without_options(texts: Words) -> list[Words]:
    """The command, and without the options before its subcommand, as `git -C x push`; any of them may take a word."""
    found: list[Words] = [texts]
    position = 1
    while position < min(len(texts), _MAX_OPTIONS) and texts[1].startswith("-"):
        if not texts[position].startswith("-") and not texts[position - 1].startswith("-"):
            break
        position += 1
        found.append((texts[0], *texts[position:]))
    return found
