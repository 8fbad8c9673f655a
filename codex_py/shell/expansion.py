"""Expands the words of a command as far as possible without running anything."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final

from tree_sitter import Node

from codex_py.shell.syntax import text_of
from codex_py.shell.words import Word, printed_text, unescape, unescape_ansi_c, unescape_string

_MAX_WORD: Final = 64 * 1024
_MAX_PRINTED: Final = 512
_MAX_NESTED: Final = 4
_WITH_DEFAULT: Final = re.compile(r"(\w+):?[-=]([\w./-]*)", re.ASCII)


class ShellState:
    """The state of a shell that matters here: its directory, None when unknown, and its own variables."""

    __slots__ = ("directory", "gets_names", "in_file", "shell_env")

    def __init__(self, directory: str | None, shell_env: dict[str, Word]) -> None:
        self.directory = directory
        self.shell_env = shell_env
        self.in_file = False
        self.gets_names = False

    def copy(self) -> ShellState:
        other = copy(self)
        other.shell_env = dict(self.shell_env)
        return other

    def change_directory(self, target: str | None) -> None:
        self.directory = self.resolve(target) if target is not None else None

    def resolve(self, path: str) -> str | None:
        """An absolute path; None when the directory is not known."""
        if path.startswith("/"):
            return os.path.normpath(path)
        return None if self.directory is None else os.path.normpath(f"{self.directory.rstrip('/')}/{path}")


class Expander:
    """Expands words; `env` is what the commands start with."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._printing = 0

    def word(self, node: Node, state: ShellState) -> Word:
        word = self._expand(node, state)
        text = word.text
        if text is not None and node.type != "string" and (text == "~" or text.startswith("~/")):
            home = self._variable("HOME", state).text
            return Word(None) if home is None else Word(home + text[1:], word.is_pattern)
        return word

    def _expand(self, node: Node, state: ShellState, *, is_quoted: bool = False) -> Word:
        """A part of a word."""
        match node.type:
            case "word" | "number" | "extglob_pattern" | "regex":
                return Word(unescape(text_of(node)), any(char in "*?[{" for char in text_of(node)))
            case "raw_string":
                return Word(text_of(node)[1:-1])
            case "ansi_c_string":
                return Word(unescape_ansi_c(text_of(node)[2:-1]))
            case "simple_expansion" | "expansion":
                value = self._variable(text_of(node).lstrip("$").strip("{}"), state)
                is_pattern = value.is_pattern or (not is_quoted and any(char in "*?[" for char in value.text or ""))
                return value._replace(is_pattern=is_pattern)
            case "command_substitution":
                return self._printed(node, state)
            case "process_substitution":
                return self._printed(node, state)._replace(is_pattern=False, is_stream=True)
            case "string" | "concatenation" | "command_name":
                return self._join(node, state)
            case _:
                return Word(None)

    def _printed(self, substitution: Node, state: ShellState) -> Word:
        """What a substitution stands for: its text when it only prints words, else the programs in it."""
        if text_of(substitution) in ("$(pwd)", "`pwd`"):
            return Word(state.directory)
        programs = tuple(text_of(name).rpartition("/")[2] for name in _command_names(substitution))
        unknown = Word(None, printed_by=programs or ("",))
        inner = substitution.named_children
        if len(inner) == 1 and inner[0].type == "redirected_statement":
            body = _document(inner[0])
            return unknown if body is None else Word(body)
        is_short = substitution.end_byte - substitution.start_byte <= _MAX_PRINTED
        if len(inner) != 1 or inner[0].type != "command" or not is_short or self._printing > _MAX_NESTED:
            return unknown
        if any(child.type in ("variable_assignment", "herestring_redirect") for child in inner[0].named_children):
            return unknown
        self._printing += 1
        text = printed_text([self.word(child, state) for child in inner[0].named_children])
        self._printing -= 1
        return unknown if text is None else Word(text, any(char in "*?[{" for char in text))

    def _join(self, node: Node, state: ShellState) -> Word:
        raw, start = node.text or b"", node.start_byte
        is_string = node.type == "string"
        parts: list[str] = []
        is_pattern, length = False, 0
        unknown: Word | None = None
        done = 1 if is_string else 0
        for child in node.named_children:
            if is_string and child.type == "string_content":
                continue
            parts.append(_literal(raw[done : child.start_byte - start], is_string=is_string))
            word = self._expand(child, state, is_quoted=is_string)
            # A variable may hold itself twice, again and again.
            length += len(word.text or "")
            if length > _MAX_WORD or unknown is not None:
                return Word(None, printed_by=word.printed_by)
            unknown = word if word.text is None else None
            parts.append(word.text or "")
            is_pattern = is_pattern or word.is_pattern
            done = child.end_byte - start
        parts.append(_literal(raw[done : -1 if is_string else None], is_string=is_string))
        if unknown is not None:
            return Word(None, printed_by=unknown.printed_by)
        return Word("".join(parts), is_pattern)

    def _variable(self, name: str, state: ShellState) -> Word:
        if with_default := _WITH_DEFAULT.fullmatch(name):
            word = self._variable(with_default[1], state)
            return word if word.text else Word(with_default[2])
        if name in state.shell_env:
            return state.shell_env[name]
        return Word(state.directory if name == "PWD" else self._env.get(name))


def _literal(raw: bytes, *, is_string: bool) -> str:
    return unescape_string(raw) if is_string else raw.decode("utf-8", "replace")


def _command_names(node: Node) -> Iterator[Node]:
    waiting, left = [node], _MAX_PRINTED
    while waiting and left:
        left -= 1
        current = waiting.pop()
        if current.type == "command_name":
            yield current
        else:
            waiting.extend(reversed(current.named_children))


def _document(statement: Node) -> str | None:
    """The here-document that a `cat` prints, as it is written."""
    parts = [part for redirect in statement.named_children[1:] for part in redirect.named_children]
    types = [part.type for part in parts]
    if text_of(statement.named_children[0]) != "cat" or types != ["heredoc_start", "heredoc_body", "heredoc_end"]:
        return None
    return text_of(parts[1]).rstrip("\n") if parts[1].end_byte - parts[1].start_byte <= _MAX_WORD else None
