"""What programs make of the text they read: a script, a program of another language, or lines of their own.

Found here, not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from codex_py.skills.words import Word
from codex_py.tools.carried_scripts import scripts_in_program, scripts_of_words
from codex_py.tools.makefiles import recipes
from codex_py.tools.runners import program
from codex_py.tools.script_sources import AWKS, INTERPRETERS

# Programs that read their own commands line by line, among them one that hands the rest of a line to a shell.
_LINE_READERS: Final = frozenset(
    "clickhouse-client cqlsh ed ex ftp gdb lldb lftp mariadb mongosh mysql psql redis-cli sftp sqlcmd sqlite3 tclsh "
    "valkey-cli".split()
)
_EDITORS: Final = frozenset(("nvim", "vi", "vim"))
MAKES: Final = frozenset(("gmake", "make"))
_TO_SHELL: Final = re.compile(
    r"^[ \t]*(?::?\d{0,9},?\d{0,9}\\?!|\.(?:shell|system)[ \t]|(?:platform[ \t]+)?shell[ \t]|exec[ \t])"
    r"[ \t]*(\S[^\n]*)",
    re.MULTILINE,
)


def reads_lines(words: Sequence[Word]) -> bool:
    """Whether a program takes commands of its own, line by line, from its input."""
    name = program(words)
    return name in _LINE_READERS or (name in _EDITORS and any((word.text or "").startswith("-e") for word in words[1:]))


def scripts_read(words: Sequence[Word], text: str) -> Iterator[str]:
    """The scripts in a `text` that the program of `words` reads: all of it for a shell."""
    name = program(words)
    if reads_lines(words) or name in _EDITORS:
        yield from _TO_SHELL.findall(text)
    elif name == "sed":
        yield from scripts_of_words(name, [text])
    elif is_interpreter(words) or name in AWKS:
        yield from scripts_in_program(text)
    elif name in MAKES:
        yield from recipes(text, [word.text or "" for word in words[1:]])
    else:
        yield text


def runs_file(words: Sequence[Word]) -> bool:
    """Whether a program that is no shell runs what is in a file it is given."""
    name = program(words)
    return name == "sed" or name in _LINE_READERS | _EDITORS | MAKES | AWKS or is_interpreter(words)


def is_interpreter(words: Sequence[Word]) -> bool:
    """Whether a program reads another language than that of shells."""
    return program(words).rstrip("0123456789.") in INTERPRETERS
