"""Scripts that a script writes to a file and runs in the same breath. Found here, not judged.

A file is known by its name alone: whether the folder is the same cannot be told without running anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from codex_py.skills.words import PlainCommand, Word
from codex_py.text.bash_tree import text_of
from codex_py.tools.fed_scripts import FILE_OPTIONS, FedScript, Piped, WordsOf, stands_for
from codex_py.tools.makefiles import FILE_OPTIONS as MAKE_FILE_OPTIONS
from codex_py.tools.makefiles import MAKEFILES
from codex_py.tools.readers import MAKES, is_interpreter, reads_lines, runs_file
from codex_py.tools.runners import program
from codex_py.tools.script_sources import PRINTERS, SHELLS, reads_script, script_operand

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_NODES: Final = 50_000
_MAX_PRINTED: Final = 256
_MAX_SCRIPTS: Final = 64
_MOST_COPIED: Final = 10_000
_WRITES: Final = re.compile(r">|\btee\b|\bof=|/dev/stdin")
_OUTPUTS: Final = frozenset((">", ">>", ">|", "&>", "&>>"))
_STATEMENTS: Final = frozenset(("redirected_statement", "pipeline", "command"))
# Variables that name a file which a shell reads when it starts.
_READ_AT_START: Final = re.compile(r"\b(?:BASH_)?ENV=[\"']?([^\s\"';&|]+)")
_SOURCES: Final = frozenset((".", "source"))
# What makes one file another, of which the last operand is the new name.
_COPIERS: Final = frozenset(("cp", "install", "ln", "mv"))
_PRINTED_FILE: Final = re.compile(r"\$\(\s{0,9}<\s{0,9}[\"']?([^\s)\"']+)")
# Programs that run what is in the file behind one of their options.
_FILE_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "at": frozenset(("-f",)),
    "bash": frozenset(("--init-file", "--rcfile")),
    "batch": frozenset(("-f",)),
}
_INTERPRETER_LINE: Final = re.compile(r"#!\s*(\S+)(?:\s+(\S+))?")
_SHELL: Final = (Word("sh"),)


def may_write(script: str) -> bool:
    """Whether anything in a script looks as if it wrote a file; cheap."""
    return _WRITES.search(script) is not None


def written_scripts(root: Node, commands: Sequence[PlainCommand], words_of: WordsOf) -> Iterator[FedScript]:
    """The scripts among the files that are written under `root`, of which `commands` are all the commands."""
    script = text_of(root)
    if not may_write(script):
        return
    runs = [run for command in commands for run in _runs(command)]
    runs += [(list(_SHELL), found[1]) for found in _READ_AT_START.finditer(script)]
    if any(map(_runs_what_is_printed, commands)):
        runs += [(list(_SHELL), word.text or "") for one in commands if one.program == "cat" for word in one.words[1:]]
        runs += [(list(_SHELL), found[1]) for found in _PRINTED_FILE.finditer(script)]
    if not runs:
        return
    files = _with_copies(_written_files(root, words_of), commands)
    seen: set[tuple[tuple[str | None, ...], str]] = set()
    for reader, path in runs:
        text = files.get(_name(path), "")
        into = reader or _by_first_line(text)
        key = (tuple(word.text for word in into), text)
        if text and key not in seen and len(seen) < _MAX_SCRIPTS:
            seen.add(key)
            yield FedScript(into, text)


def _runs(command: PlainCommand) -> Iterator[tuple[list[Word], str]]:
    """The files that a command may run, each with what reads it; nothing does when the file is the program itself."""
    words = list(command.words)
    name, texts = program(words), [word.text or "" for word in words[1:]]
    if words and "/" in (words[0].text or ""):
        yield [], words[0].text or ""
    if command.stdin is not None and command.stdin.text and (reads_script(words) or reads_lines(words)):
        yield words[:1], command.stdin.text
    if name in SHELLS and (operand := script_operand(texts)):
        yield words[:1], operand
    elif name in _SOURCES or name == "crontab":
        yield list(_SHELL), next(iter(texts), "")
    elif is_interpreter(words) and (operand := next((text for text in texts if not text.startswith("-")), "")):
        yield words[:1], operand
    if name in MAKES:
        named = [value for option, value in pairwise(texts) if option in MAKE_FILE_OPTIONS]
        yield from ((words, file) for file in named or MAKEFILES)
    for option, value in pairwise(texts):
        if option in _FILE_OPTIONS.get(name, ()):
            yield list(_SHELL), value
        elif option in FILE_OPTIONS and runs_file(words) and name not in MAKES:
            yield words[:1], value


def _runs_what_is_printed(command: PlainCommand) -> bool:
    """Whether a command is a shell that reads its input, or is given a script that is not known."""
    words = list(command.words)
    name = program(words)
    return (name in SHELLS and reads_script(words)) or (
        name in {*SHELLS, "eval"} and any(word.text is None for word in words[1:])
    )


def _with_copies(files: Mapping[str, str], commands: Sequence[PlainCommand]) -> dict[str, str]:
    """The files, also under the names that they are given later on."""
    pieces = {name: {text: None} for name, text in files.items()}
    left = _MOST_COPIED
    for command in commands:
        if program(command.words) not in _COPIERS:
            continue
        operands = [_name(text) for word in command.words[1:] if (text := word.text or "-")[0] != "-"]
        found = [text for name in dict.fromkeys(operands[:-1]) for text in pieces.get(name, ())]
        left -= len(found)
        if found and operands[-1] and left > 0:
            pieces.setdefault(operands[-1], {}).update(dict.fromkeys(found))
    return {name: "\n".join(texts) for name, texts in pieces.items()}


def _written_files(root: Node, words_of: WordsOf) -> dict[str, str]:
    """All that is written to each file, by the names of the files."""
    files: dict[str, list[str]] = {}
    waiting, seen = [root], 0
    while waiting and seen < _MAX_NODES:
        node = waiting.pop()
        seen += 1
        if node.type not in _STATEMENTS:
            waiting.extend(node.named_children)
            continue
        written = _Statement(words_of)
        seen += written.read(node, _MAX_NODES - seen)
        for name in written.names:
            files.setdefault(name, []).extend(written.texts())
    return {name: "\n".join(texts) for name, texts in files.items()}


class _Statement:
    """One statement: the `names` of the files it writes, and what it may write to them."""

    def __init__(self, words_of: WordsOf) -> None:
        self.names: set[str] = set()
        self._words_of = words_of
        self._documents: list[str] = []
        self._printed: list[str] = []

    def read(self, statement: Node, most: int) -> int:
        """Look at no more than so many nodes; how many there were."""
        waiting, seen = [statement], 0
        while waiting and seen < most:
            node = waiting.pop()
            seen += 1
            waiting.extend(reversed(node.named_children))
            match node.type:
                case "heredoc_body":
                    self._documents.append(text_of(node))
                case "herestring_redirect":
                    self._documents.extend(stands_for(part) for part in node.named_children[-1:])
                case "file_redirect" if any(child.type in _OUTPUTS for child in node.children):
                    self._note(stands_for(part) for part in node.named_children[-1:])
                case "command":
                    self._command(node)
                case _:
                    pass
        return seen

    def texts(self) -> list[str]:
        """Each document, and what is printed as one text."""
        return [*self._documents, *(["\n".join(self._printed)] if self._printed else [])]

    def _command(self, node: Node) -> None:
        name = text_of(node.child_by_field_name("name") or node).rpartition("/")[2]
        if name in PRINTERS:
            if len(self._printed) < _MAX_PRINTED:
                self._printed += Piped(node, self._words_of(node), []).texts[:1]
        elif name == "tee":
            self._note(word.text or "" for word in self._words_of(node)[1:])
        elif name == "dd":
            self._note((word.text or "").removeprefix("of=") for word in self._words_of(node)[1:])
        elif name == "install" and "/dev/stdin" in text_of(node):
            self._note(word.text or "" for word in self._words_of(node)[-1:])

    def _note(self, paths: Iterator[str]) -> None:
        self.names |= {_name(path) for path in paths} - {"", "null"}


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _by_first_line(text: str) -> list[Word]:
    """What the system starts for a file of this text."""
    found = _INTERPRETER_LINE.match(text)
    if found is None:
        return list(_SHELL)
    return [Word(found[2] if found[2] and _name(found[1]) == "env" else found[1])]
