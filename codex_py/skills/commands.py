"""The plain commands of a shell script, each with its words and the folder it would run in.

Read with tree-sitter's Bash grammar and never run: what depends on running it, such as the output of another command,
is unknown. Good enough to notice what a command reads; no ground to allow anything on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from codex_py.skills.listings import printed
from codex_py.skills.words import (
    Listed,
    PlainCommand,
    Word,
    ansi_c,
    folder_of,
    literal_between,
    printed_text,
    quoted_script,
    unescaped,
    unwrapped,
)
from codex_py.text.bash_tree import parse_bash, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

# What is longer is cut: a command names its files at its start, what follows is data.
_MAX_WORDS: Final = 256
_MAX_WORD: Final = 64 * 1024
_MAX_DEPTH: Final = 150
_MAX_NESTED: Final = 4
_MAX_LOOP_VALUES: Final = 64
# What a substitution prints is looked into when it is as short as a search for files is.
_MAX_LISTINGS: Final = 64
_MAX_LISTING_BYTES: Final = 512
# What a shell splits at its blanks unless it stands in quotes.
_SPLIT: Final = frozenset(("simple_expansion", "expansion", "command_substitution"))
# What follows a `cat` that only prints a here-document.
_DOCUMENT: Final = ["heredoc_start", "heredoc_body", "heredoc_end"]
_WITH_DEFAULT: Final = re.compile(r"(\w+):?[-=]([\w./-]*)", re.ASCII)


class ReadLimits(NamedTuple):
    """How much of a script is read: its bytes, those of the scripts quoted in it together, and commands."""

    script_bytes: int = 16 * 1024
    quoted_bytes: int = 64 * 1024
    commands: int = 1000


_FIRST_PART: Final = ReadLimits()


def plain_commands(
    script: str, folder: str, variables: Mapping[str, str], *, limits: ReadLimits = _FIRST_PART
) -> list[PlainCommand]:
    """The commands of a script in their order, those of pipelines, loops, subshells and `bash -c "…"` included.

    `folder` is the working directory at the start, `variables` what is known of the environment. What is over the
    limits is left out.
    """
    reading = _Reading(dict(variables), limits)
    reading.script(script[: limits.script_bytes], _Place(folder, {}), nested=0)
    return reading.commands


class _Input(NamedTuple):
    """What a command finds at its standard input: a file, or the files the command before it lists."""

    file: Word | None = None
    listed: tuple[Listed, ...] = ()


_NOTHING: Final = _Input()


class _Place:
    """The state of a shell that matters here: its folder, None when unknown, and its own variables."""

    __slots__ = ("folder", "variables")

    def __init__(self, folder: str | None, variables: dict[str, Word]) -> None:
        self.folder = folder
        self.variables = variables

    def copy(self) -> _Place:
        return _Place(self.folder, dict(self.variables))

    def enter(self, target: str | None) -> None:
        if target is None or (self.folder is None and not target.startswith("/")):
            self.folder = None
        else:
            self.folder = os.path.normpath(f"{self.folder}/{target}" if not target.startswith("/") else target)


class _Reading:
    """One walk through a script and the scripts quoted in it."""

    def __init__(self, environment: dict[str, str], limits: ReadLimits) -> None:
        self.commands: list[PlainCommand] = []
        self._environment = environment
        self._steps = 0
        self._nested = 0
        self._limits = limits
        self._unread = limits.quoted_bytes
        self._listings_left = _MAX_LISTINGS
        self._is_listing = False
        self._printing = 0

    def script(self, text: str, place: _Place, *, nested: int) -> None:
        # A loop around `bash -c "…"` must not read the same script again and again.
        self._unread -= len(text)
        if nested > _MAX_NESTED or self._unread < 0:
            return
        before, self._nested = self._nested, nested
        root = parse_bash(text, self._limits.script_bytes)
        if root is not None:
            self._visit(root, place, 0)
        self._nested = before

    def _visit(self, node: Node, place: _Place, depth: int, given: _Input = _NOTHING) -> None:
        self._steps += 1
        most = self._limits.commands
        if depth > _MAX_DEPTH or self._steps > 20 * most or len(self.commands) >= most:
            return
        match node.type:
            case "command":
                self._command(node, place, depth, given)
            case "redirected_statement":
                sources = [self._source(child, place) for child in node.named_children if _is_input(child)]
                self._children(node, place, depth, sources[-1] if sources else given)
            case "variable_assignment":
                self._assignment(node, place)
                self._children(node, place, depth)
            case "for_statement":
                self._loop(node, place, depth)
            case "subshell" | "command_substitution" | "process_substitution" | "function_definition":
                self._children(node, place.copy(), depth, given)
            case "pipeline":
                self._pipeline(node, place, depth, given)
            case _:
                self._children(node, place, depth, given)

    def _children(self, node: Node, place: _Place, depth: int, given: _Input = _NOTHING) -> None:
        """The parts of a statement; which of them reads its standard input is not told apart."""
        for child in node.named_children:
            self._visit(child, place, depth + 1, given)

    def _pipeline(self, node: Node, place: _Place, depth: int, given: _Input) -> tuple[Listed, ...]:
        """Each part in a shell of its own, given the files that the one before lists; the files the last one lists."""
        for child in node.named_children:
            before = len(self.commands)
            self._visit(child, place.copy(), depth + 1, given)
            listed = printed(self.commands[-1]) if _is_plain(child) and len(self.commands) > before else ()
            given = given._replace(listed=listed)
        return given.listed

    def _listing(self, substitution: Node, place: _Place) -> tuple[Listed, ...]:
        """The files that a substitution stands for, as far as that can be told; its commands are not noted."""
        inner = substitution.named_children
        is_short = substitution.end_byte - substitution.start_byte <= _MAX_LISTING_BYTES
        if self._is_listing or not self._listings_left or len(inner) != 1 or not is_short:
            return ()
        self._listings_left -= 1
        noted, steps, unread = self.commands, self._steps, self._unread
        self.commands, self._is_listing = [], True
        listed = self._pipeline(inner[0] if inner[0].type == "pipeline" else substitution, place, 0, _NOTHING)
        self.commands, self._steps, self._unread = noted, steps, unread
        self._is_listing = False
        return listed

    def _source(self, redirect: Node, place: _Place) -> _Input:
        target = redirect.named_children[-1]
        if target.type == "process_substitution":
            return _Input(None, self._listing(target, place))
        return _Input(self._word(target, place))

    def _loop(self, node: Node, place: _Place, depth: int) -> None:
        name = ""
        values: list[Word] = []
        for child in node.named_children:
            if child.type == "variable_name":
                name = text_of(child)
            elif child.type != "do_group":
                values.append(self._word(child, place))
                self._inside(child, place, depth)
        for value in values[:_MAX_LOOP_VALUES] or [Word(None)]:
            place.variables[name] = value
            for child in node.named_children:
                if child.type == "do_group":
                    self._visit(child, place, depth + 1)

    def _assignment(self, node: Node, place: _Place) -> None:
        parts = node.named_children
        if parts and parts[0].type == "variable_name":
            value = self._word(parts[1], place) if len(parts) > 1 else Word("")
            # The shell expands no pattern here, but where the variable is used.
            place.variables[text_of(parts[0])] = value._replace(is_pattern=False)

    def _command(self, node: Node, place: _Place, depth: int, given: _Input) -> None:
        words: list[Word] = []
        for child in node.named_children[:_MAX_WORDS]:
            if _is_input(child):
                given = self._source(child, place)
            elif child.type not in ("variable_assignment", "herestring_redirect", "file_redirect"):
                words += self._split(child, place)[: _MAX_WORDS - len(words)]
        self._inside(node, place, depth)
        written = tuple(words)
        words = unwrapped(words)
        if not words:
            return
        command = PlainCommand(tuple(words), given.file, place.folder, given.listed, written)
        self.commands.append(command)
        name = command.program.rpartition("/")[2]
        if name in ("cd", "pushd"):
            place.enter(folder_of(words, self._environment.get("HOME")))
        elif name == "popd":
            place.folder = None
        elif name == "read":
            _take_line(words, given, place)
        elif (quoted := quoted_script(name, words)) is not None:
            inner = place if name == "eval" else _Place(place.folder, dict(place.variables))
            self.script(quoted, inner, nested=self._nested + 1)

    def _inside(self, node: Node, place: _Place, depth: int) -> None:
        """The commands whose output makes up a word, or the words of a command: they run first."""
        for inner in _substitutions(node):
            self._visit(inner, place, depth + 1)

    def _split(self, node: Node, place: _Place) -> list[Word]:
        """What becomes of a word: what a variable or another command gives is several words, or none at all."""
        word = self._word(node, place)
        named = node.named_children
        inner = named[0] if node.type == "command_name" and len(named) == 1 else node
        if word.text is None or inner.type not in _SPLIT:
            return [word]
        return [word._replace(text=part) for part in word.text.split(None, _MAX_WORDS)]

    def _word(self, node: Node, place: _Place) -> Word:
        word = self._expanded(node, place)
        text = word.text
        if text is not None and node.type != "string" and (text == "~" or text.startswith("~/")):
            home = self._variable("HOME", place).text
            return Word(None) if home is None else Word(home + text[1:], word.is_pattern)
        return word

    def _expanded(self, node: Node, place: _Place, *, is_quoted: bool = False) -> Word:
        """A part of a word."""
        match node.type:
            case "word" | "number" | "extglob_pattern" | "regex":
                return Word(unescaped(text_of(node)), any(char in "*?[{" for char in text_of(node)))
            case "raw_string":
                return Word(text_of(node)[1:-1])
            case "ansi_c_string":
                return Word(ansi_c(text_of(node)[2:-1]))
            case "simple_expansion" | "expansion":
                value = self._variable(text_of(node).lstrip("$").strip("{}"), place)
                is_pattern = value.is_pattern or (not is_quoted and any(char in "*?[" for char in value.text or ""))
                return value._replace(is_pattern=is_pattern)
            case "command_substitution":
                if text_of(node) in ("$(pwd)", "`pwd`"):
                    return Word(place.folder)
                text = self._printed(node, place)
                if text is not None:
                    return Word(text, any(char in "*?[{" for char in text))
                return Word(None, listed=self._listing(node, place))
            case "string" | "concatenation" | "command_name":
                return self._joined(node, place)
            case _:
                return Word(None)

    def _printed(self, substitution: Node, place: _Place) -> str | None:
        """The text that a substitution stands for, when it only prints words."""
        inner = substitution.named_children
        if len(inner) == 1 and inner[0].type == "redirected_statement":
            return _document(inner[0])
        is_short = substitution.end_byte - substitution.start_byte <= _MAX_LISTING_BYTES
        if len(inner) != 1 or inner[0].type != "command" or not is_short or self._printing > _MAX_NESTED:
            return None
        if any(child.type in ("variable_assignment", "herestring_redirect") for child in inner[0].named_children):
            return None
        self._printing += 1
        words = [self._word(child, place) for child in inner[0].named_children]
        self._printing -= 1
        return printed_text(words)

    def _joined(self, node: Node, place: _Place) -> Word:
        raw, start = node.text or b"", node.start_byte
        is_string = node.type == "string"
        parts: list[str] = []
        pattern, length = False, 0
        unknown: Word | None = None
        done = 1 if is_string else 0
        for child in node.named_children:
            if is_string and child.type == "string_content":
                continue
            parts.append(literal_between(raw[done : child.start_byte - start], is_string))
            word = self._expanded(child, place, is_quoted=is_string)
            # A variable may hold itself twice, again and again.
            length += len(word.text or "")
            if length > _MAX_WORD or unknown is not None:
                return Word(None)
            unknown = word if word.text is None else None
            parts.append(word.text or "")
            pattern = pattern or word.is_pattern
            done = child.end_byte - start
        parts.append(literal_between(raw[done : -1 if is_string else None], is_string))
        if unknown is not None:
            return Word(None) if any(parts) else unknown
        return Word("".join(parts), pattern)

    def _variable(self, name: str, place: _Place) -> Word:
        if name.endswith("%/"):
            word = self._variable(name.removesuffix("%/"), place)
            return word._replace(text=word.text.removesuffix("/")) if word.text else Word(None)
        if with_default := _WITH_DEFAULT.fullmatch(name):
            word = self._variable(with_default[1], place)
            return word if word.text else Word(with_default[2])
        if name in place.variables:
            return place.variables[name]
        return Word(place.folder if name == "PWD" else self._environment.get(name))


def _take_line(words: list[Word], given: _Input, place: _Place) -> None:
    """Let the variable of a `read` stand for the files that are listed to it."""
    names = [word.text for word in words[1:] if word.text and word.text.isidentifier()]
    if given.listed and names:
        place.variables[names[0]] = Word(None, listed=given.listed)


def _substitutions(node: Node) -> Iterator[Node]:
    """The commands inside of words; found without recursion, since a word may nest as deep as its text is long."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type in ("command_substitution", "process_substitution"):
            yield one
        else:
            waiting.extend(reversed(one.named_children))


def _document(statement: Node) -> str | None:
    """The here-document that a `cat` prints, as it is written."""
    parts = [part for redirect in statement.named_children[1:] for part in redirect.named_children]
    if text_of(statement.named_children[0]) != "cat" or [part.type for part in parts] != _DOCUMENT:
        return None
    body = parts[1]
    return text_of(body).rstrip("\n") if body.end_byte - body.start_byte <= _MAX_WORD else None


def _is_plain(node: Node) -> bool:
    """Whether it is one command, with or without redirections."""
    return node.type == "command" or (
        node.type == "redirected_statement" and bool(node.named_children) and node.named_children[0].type == "command"
    )


def _is_input(redirect: Node) -> bool:
    return (
        redirect.type == "file_redirect"
        and bool(redirect.named_children)
        and any(child.type == "<" for child in redirect.children)
    )
