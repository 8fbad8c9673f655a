"""A command line, read once: every command in it with its words, input and directory. All judges read this value.

Read with tree-sitter's Bash grammar and never run: what depends on running it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from codex_py.shell.words import Word, Words, program_name, texts_of

ReadFile = Callable[[str], str | None]
"""The text of a script file by its absolute path; None for what is no script of a shell, or cannot be read."""

MAX_SCRIPT_BYTES: Final = 1024 * 1024
_MAX_OPTIONS: Final = 32


class Redirect(NamedTuple):
    """A redirection: its `operator` as written, such as `>>`, and the file."""

    operator: str
    target: Word


class Input(NamedTuple):
    """What a command finds at its standard input: a known text, a file, or what `programs` print."""

    text: str | None = None
    file: Word | None = None
    programs: Words = ()


class ShellCommand(NamedTuple):
    """A command of a command line; `words` are never empty.

    `directory` is where it runs, None when that is unknown. `env` are the assignments before it. `is_guess` says that
    the words only may be a command, as those behind `docker exec -it x`. `in_file` says that it stands in a script file
    that the line names, `gets_names` that what runs it adds file names to its words.
    """

    words: tuple[Word, ...]
    directory: str | None
    env: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    input: Input = Input()
    is_guess: bool = False
    in_file: bool = False
    gets_names: bool = False

    @property
    def program(self) -> str:
        """The program's name without its directory, empty when it is not known."""
        return program_name(self.words)

    @property
    def texts(self) -> Words:
        """The words; those that are not known before it runs are empty."""
        return texts_of(self.words)


class CommandLine(NamedTuple):
    """All that is known of a command line before it runs.

    `commands` are all commands found anywhere in it, in order: those in pipelines, loops, substitutions,
    here-documents for shells, `bash -c "…"`, behind `sudo` and its like, and in script files it names.
    `segments` are the words of each command of a plain line, one of literal words joined by `&&`, `||`, `;` and `|`;
    None for any other. `scripts` are the scripts handed to further shells. `is_complete` is false where something could
    not be read. `forks_itself` says that a function in it calls itself twice.
    """

    commands: tuple[ShellCommand, ...]
    segments: tuple[Words, ...] | None = None
    scripts: Words = ()
    is_complete: bool = True
    forks_itself: bool = False
    reads_files: bool = False

    def every_reading(self) -> tuple[Words, ...]:
        """The words of all commands as rules see them, each once, also without the options before a subcommand."""
        found: dict[Words, None] = {}
        for command in self.commands:
            found |= dict.fromkeys(without_options(command.texts))
        return tuple(found)


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
