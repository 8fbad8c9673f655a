"""Texts in a script that commands of the same script are given to read, or are told to run. Found here, not judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from codex_py.skills.commands import plain_commands
from codex_py.skills.words import Word
from codex_py.text.bash_tree import text_of
from codex_py.tools.readers import MAKES, is_interpreter, reads_lines, runs_file
from codex_py.tools.runners import program
from codex_py.tools.script_sources import PRINTERS, SHELLS, reads_script

if TYPE_CHECKING:
    from tree_sitter import Node

WordsOf: TypeAlias = "Callable[[Node], list[Word]]"
"""Gives the words of the last command in a node."""

_SOURCING: Final = SHELLS | {".", "source"}
FILE_OPTIONS: Final = frozenset(("-S", "-f", "-init", "-s", "-x", "--file"))
# What of a statement is no part of its command: here-strings, the openings of here-documents, and `< <(…)`.
_INPUT: Final = re.compile(r"(?:(?<=\s)0)?<<<.*|<<-?\s*\S+|<\s*<\(.*")
# In a longer script it would take too long to look up the variables of every here-string.
_SHORT_SCRIPT: Final = 2 * 1024


class FedScript(NamedTuple):
    """A text, and the words of what is given it to run."""

    reader: list[Word]
    text: str


class Fed(NamedTuple):
    """What a statement gives its `readers`: here-documents; here-strings and what a `< <(echo …)` prints; streams."""

    readers: list[list[Word]]
    documents: list[str]
    strings: list[str]
    streams: list[Node]

    @property
    def texts(self) -> list[str]:
        return [*self.documents, *self.strings]


def fed_script(statement: Node, words_of: WordsOf) -> Fed | None:
    """What a statement feeds to a shell, or to something else that runs it; None when nothing in it runs its input."""
    fed = Fed([], [], [], [])
    for child in statement.named_children:
        if child.type == "heredoc_redirect":
            fed.documents.extend(text_of(part) for part in child.named_children if part.type == "heredoc_body")
        elif child.type == "herestring_redirect" or _is_cut_here_string(child):
            fed.strings.extend(stands_for(part) for part in child.named_children[-1:])
            fed.streams.append(child)
        elif child.type == "file_redirect" and child.children[0].type == "<":
            fed.strings.extend(text for part in child.named_children[-1:] for text in printed_by(part, words_of))
            fed.streams.append(child)
    if not fed.texts and not fed.streams:
        return None
    found = (list(command.words) for command in plain_commands(_without_input(statement), "/", {}))
    fed.readers.extend(words for words in found if reads_script(words) or reads_lines(words))
    return fed if fed.readers else None


class Piped(NamedTuple):
    """One command that runs what another prints."""

    before: Node
    source: list[Word]
    into: list[Word]

    @property
    def texts(self) -> list[str]:
        """What is printed, when that stands in the words of the other: all of it, and each word."""
        name = program(self.source)
        if name == "cat" and len(self.source) == 1:
            redirects = [child for child in self.before.named_children if child.type == "herestring_redirect"]
            return [stands_for(part) for redirect in redirects for part in redirect.named_children[-1:]]
        if name not in PRINTERS:
            return []
        words = [word.text or "" for word in self.source[1:]]
        all_of_it = words[1:] if name == "printf" and "%" in "".join(words[:1]) else words
        return [text.replace("\\n", "\n").replace("\\t", "\t") for text in dict.fromkeys([" ".join(all_of_it), *words])]


def piped_scripts(pipeline: Node, words_of: WordsOf) -> Iterator[Piped]:
    """The commands of a pipeline that run what comes through it, each with the one that prints it."""
    stages = pipeline.named_children
    for place, after in enumerate(stages[1:], 1):
        into = words_of(after)
        if not into or not (reads_script(into) or reads_lines(into)):
            continue
        before = stages[place - 1]
        source = words_of(before)
        # What is only handed on.
        for earlier in reversed(stages[: place - 1]):
            if not source or program(source) not in ("cat", "tee") or (len(source) > 1 and source[0].text == "cat"):
                break
            before, source = earlier, words_of(earlier)
        yield Piped(before, source, into)


def printed_by(substitution: Node, words_of: WordsOf) -> list[str]:
    """What a `<(echo …)` prints, when it is one and that is known."""
    if substitution.type != "process_substitution" or not substitution.named_children:
        return []
    return Piped(substitution, words_of(substitution.named_children[-1]), []).texts


def sourced_scripts(command: Node, words_of: WordsOf) -> Iterator[FedScript]:
    """What a shell, `source`, or another program that runs a file, is given as that in a `<(echo …)`."""
    reader = [Word(text_of(child)) for child in command.named_children[:1] if child.type == "command_name"]
    sources = program(reader) in _SOURCING
    if not sources and not runs_file(reader):
        return
    if program(reader) in MAKES:
        # What it runs depends on the goals it is given.
        reader += [Word(text_of(child)) for child in command.named_children[1:]]
    before = ""
    for child in command.named_children[1:]:
        named = before in FILE_OPTIONS or (is_interpreter(reader) and (not before or before.startswith("-")))
        if sources or named:
            yield from (FedScript(reader, text) for text in printed_by(child, words_of))
        before = text_of(child)


def assigned_texts(assignment: Node, words_of: WordsOf) -> list[str]:
    """The value of a variable, or what is printed by the `<(echo …)` that is its value; none when it is not known."""
    value = assignment.named_children[-1]
    if value.type == "process_substitution":
        return printed_by(value, words_of)
    words = words_of(value)
    return [words[0].text or ""] if len(words) == 1 else []


def _is_cut_here_string(redirect: Node) -> bool:
    """Whether it is the last third of a `<<<` that stands behind another redirect, which the grammar does not know."""
    cut = redirect.prev_sibling
    return redirect.type == "file_redirect" and cut is not None and cut.type == "ERROR" and text_of(cut).endswith("<<")


def _without_input(statement: Node) -> str:
    """The first line of a statement without what it is given to read.

    What reads it may stand before the here-document, or behind a pipe after it: `cat <<END | sh`.
    """
    children = statement.named_children
    if children[0].type in ("file_redirect", "herestring_redirect"):
        return " ".join(text_of(child) for child in children if not child.type.endswith("_redirect"))
    return _INPUT.sub(" ", text_of(statement).partition("\n")[0])


def stands_for(part: Node) -> str:
    """What a word of the script stands for, as far as that can be told; else the word as it is written."""
    text = text_of(part)
    if part.type == "raw_string":
        return text[1:-1]
    commands = plain_commands(f"{_assignments(part) if '$' in text else ''}\n: {text}", "/", {})
    words = [word.text for word in commands[-1].words[1:]] if commands else []
    known = [word for word in words if word is not None]
    return " ".join(known) if known and len(known) == len(words) else text.strip("\"'")


def _assignments(part: Node) -> str:
    """The variables that a short script sets for itself."""
    root = part
    while root.parent is not None:
        root = root.parent
    if root.end_byte > _SHORT_SCRIPT:
        return ""
    return "\n".join(text_of(child) for child in root.named_children if child.type == "variable_assignment")
