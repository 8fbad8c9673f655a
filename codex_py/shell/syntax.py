"""Bash scripts as syntax trees, through tree-sitter, and what their words stand for. No script is ever run.

Words are expanded as far as that is possible without running anything.

A script is plain when it is one line of commands of literal words, joined by `&&`, `||`, `;` and `|`: only on those is
anything allowed. Whatever a shell would expand, redirect, assign or group makes it none; so does every byte that
the grammar does not account for.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Final

import tree_sitter
import tree_sitter_bash
from tree_sitter import Node

from codex_py.shell.command_line import Word, Words

# Of CPU. A megabyte takes a tenth of that, but a few kilobytes made for it cost seconds and gigabytes.
_MAX_SECONDS: Final = 0.3
_PIECE_BYTES: Final = 64 * 1024
# A pipeline of thousands that ends in an error takes gigabytes between two looks at the clock.
_MAX_PIPES: Final = 3000
# More than that fits into no argument of a process on Linux.
_MAX_PLAIN_BYTES: Final = 128 * 1024
_MAX_PLAIN_NESTED: Final = 2
_JOINTS: Final = frozenset(("&&", "||", ";", "|"))
_STATEMENTS: Final = frozenset(("program", "list", "pipeline"))
# A bare word no shell expands: a `=` at its start, a `~` and a `^` mean something to zsh.
_BARE: Final = re.compile(r"[\w./@%+:,-][\w./@%+:,=-]*", re.ASCII)
_FIRST: Final = re.compile(r"[A-Za-z0-9_./@+-]+")
# A backslash inside double quotes stays one, unless it stands before one of these.
_SPECIAL_IN_QUOTES: Final = re.compile(r'[$`]|\\["\\$`]')
_SHELLS: Final = frozenset(("bash", "sh", "zsh"))
_ESCAPE: Final = r"(?s)\\(?:x(?P<x>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})|[uU](?P<u>[0-9A-Fa-f]{1,8})|(?P<plain>.))"
_BACKSLASH: Final = r"(?s)\\(.?)"
_BACKSLASH_IN_STRING: Final = r'\\(["$`\\\n])'
_NAMED_ESCAPES: Final[Mapping[str, str]] = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_MAX_WORD: Final = 64 * 1024
_MAX_PRINTED: Final = 512
_MAX_NESTED: Final = 4
_WITH_DEFAULT: Final = re.compile(r"(\w+):?[-=]([\w./-]*)", re.ASCII)


def parse_bash(script: str, max_bytes: int) -> Node | None:
    """The root node for the first `max_bytes` of a script in UTF-8; errors in it are nodes of the tree.

    None for a script that takes too long, as only one made for that does.
    """
    raw = script.encode("utf-8", "replace")[:max_bytes]
    if raw.count(b"|") > _MAX_PIPES:
        return None
    deadline = time.thread_time() + _MAX_SECONDS
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    try:
        tree = parser.parse(
            lambda offset, _: raw[offset : offset + _PIECE_BYTES],
            progress_callback=lambda _offset, _failed: time.thread_time() > deadline,
        )
    except ValueError:
        return None
    # A tree read in pieces has no text of its own; this parse is known to be quick.
    return parser.parse(raw).root_node if tree else None


def text_of(node: Node) -> str:
    """The piece of the script that a node stands for."""
    return (node.text or b"").decode("utf-8", "replace")


class _NotPlain(Exception):
    """The script is not plain; why does not matter to anybody."""


def plain_segments(script: str, parse: Callable[[str], Node | None]) -> tuple[Words, ...] | None:
    """The words of each command of a plain script, in order, those of `bash -c "…"` instead of it; else None."""
    try:
        return tuple(_segments(script, parse, 0))
    except _NotPlain:
        return None


def _segments(script: str, parse: Callable[[str], Node | None], nested: int) -> list[Words]:
    script = script.strip(" \t\n")
    if nested > _MAX_PLAIN_NESTED or not script or len(script) > _MAX_PLAIN_BYTES or not _is_one_visible_line(script):
        raise _NotPlain
    root = parse(script)
    if root is None or root.has_error or (root.end_byte - root.start_byte) != len(script.encode()):
        raise _NotPlain
    found: list[Words] = []
    for words in _commands(root):
        inner = _script_of(words)
        found.extend([words] if inner is None else _segments(inner, parse, nested + 1))
    return found


def _is_one_visible_line(script: str) -> bool:
    """No control, format, bidi or zero-width character, no space but the common two: what is read is what runs."""
    return script.replace("\t", " ").isprintable()


def _commands(root: Node) -> list[Words]:
    found: list[Words] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "command":
            found.append(_words(node))
        elif node.type in _STATEMENTS:
            _require_blank_gaps(node)
            waiting.extend(reversed([child for child in node.children if child.type not in _JOINTS]))
        else:
            raise _NotPlain
    return found


def _words(command: Node) -> Words:
    _require_blank_gaps(command)
    words = [_word(child) for child in command.children]
    if not words or not _FIRST.fullmatch(words[0]):
        raise _NotPlain
    return tuple(words)


def _word(node: Node) -> str:
    text = text_of(node)
    match node.type:
        case "word" | "number" if not node.children and _BARE.fullmatch(text):
            return text
        case "command_name" if len(node.children) == 1:
            return _word(node.children[0])
        case "raw_string":
            return text[1:-1]
        case "string" if text[0] == text[-1] == '"' and not _SPECIAL_IN_QUOTES.search(text[1:-1]):
            return text[1:-1]
        case "concatenation":
            if any(_gaps(node)):
                raise _NotPlain
            return "".join(map(_word, node.children))
        case _:
            raise _NotPlain


def _require_blank_gaps(node: Node) -> None:
    """Refuse gaps with anything except blanks in a statement: a shell may read text that the parser skipped."""
    if any(gap.strip(b" \t") for gap in _gaps(node)):
        raise _NotPlain


def _gaps(node: Node) -> list[bytes]:
    raw, start, done = node.text or b"", node.start_byte, 0
    gaps: list[bytes] = []
    for child in node.children:
        gaps.append(raw[done : child.start_byte - start])
        done = child.end_byte - start
    return [*gaps, raw[done:]]


def _script_of(words: Words) -> str | None:
    """The script in `bash -c "…"`, which must be all there is: `bash -c SCRIPT NAME` has variables of its own."""
    return words[2] if len(words) == 3 and words[0] in _SHELLS and words[1] in ("-c", "-lc") else None


class ShellState:
    """The state of a shell that matters here: its directory, None when unknown, and its own variables."""

    __slots__ = ("directory", "in_file", "shell_env")

    def __init__(self, directory: str | None, shell_env: dict[str, Word]) -> None:
        self.directory = directory
        self.shell_env = shell_env
        self.in_file = False

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
                return Word(_unescape(text_of(node)), any(char in "*?[{" for char in text_of(node)))
            case "raw_string":
                return Word(text_of(node)[1:-1])
            case "ansi_c_string":
                return Word(_unescape_ansi_c(text_of(node)[2:-1]))
            case "simple_expansion" | "expansion":
                value = self._variable(text_of(node).lstrip("$").strip("{}"), state)
                is_pattern = value.is_pattern or (not is_quoted and any(char in "*?[" for char in value.text or ""))
                return value.replace(is_pattern=is_pattern)
            case "command_substitution":
                return self._printed(node, state)
            case "process_substitution":
                return self._printed(node, state).replace(is_pattern=False, is_stream=True)
            case "string" | "concatenation" | "command_name":
                return self._join(node, state)
            case _:
                return Word(None)

    def _printed(self, substitution: Node, state: ShellState) -> Word:
        """The text of a substitution that only prints words; unknown for any other."""
        if text_of(substitution) in ("$(pwd)", "`pwd`"):
            return Word(state.directory)
        unknown = Word(None)
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
        done = 1 if is_string else 0
        for child in node.named_children:
            if is_string and child.type == "string_content":
                continue
            parts.append(_literal(raw[done : child.start_byte - start], is_string=is_string))
            word = self._expand(child, state, is_quoted=is_string)
            # A variable may hold itself twice, again and again.
            length += len(word.text or "")
            if length > _MAX_WORD or word.text is None:
                return Word(None)
            parts.append(word.text)
            is_pattern = is_pattern or word.is_pattern
            done = child.end_byte - start
        parts.append(_literal(raw[done : -1 if is_string else None], is_string=is_string))
        return Word("".join(parts), is_pattern)

    def _variable(self, name: str, state: ShellState) -> Word:
        if with_default := _WITH_DEFAULT.fullmatch(name):
            word = self._variable(with_default[1], state)
            return word if word.text else Word(with_default[2])
        if name in state.shell_env:
            return state.shell_env[name]
        return Word(state.directory if name == "PWD" else self._env.get(name))


def _literal(raw: bytes, *, is_string: bool) -> str:
    return _unescape_string(raw) if is_string else raw.decode("utf-8", "replace")


def _document(statement: Node) -> str | None:
    """The here-document that a `cat` prints, as it is written."""
    parts = [part for redirect in statement.named_children[1:] for part in redirect.named_children]
    types = [part.type for part in parts]
    if text_of(statement.named_children[0]) != "cat" or types != ["heredoc_start", "heredoc_body", "heredoc_end"]:
        return None
    return text_of(parts[1]).rstrip("\n") if parts[1].end_byte - parts[1].start_byte <= _MAX_WORD else None


def _unescape(text: str) -> str:
    """A bare word without its backslashes."""
    return re.sub(_BACKSLASH, _escaped, text) if "\\" in text else text


def _unescape_string(raw: bytes) -> str:
    """A literal piece of a `"…"` without its backslashes."""
    return re.sub(_BACKSLASH_IN_STRING, _escaped, raw.decode("utf-8", "replace"))


def _unescape_ansi_c(text: str) -> str:
    """Unescape the text between the quotes of `$'…'`."""
    return re.sub(_ESCAPE, _character, text) if "\\" in text else text


def printed_text(words: Sequence[Word]) -> str | None:
    """The output of `echo`, `printf`, `which` or `command -v` for known words; None when it cannot be determined."""
    texts = [word.text for word in words]
    if not texts or None in texts:
        return None
    name, *rest = [text or "" for text in texts]
    match name, rest:
        case "echo", _:
            while rest and rest[0] in ("-n", "-e", "-E"):
                rest = rest[1:]
            return _unescape_ansi_c(" ".join(rest))
        case "printf", [text, *more] if more or "%" not in text:
            return _unescape_ansi_c(" ".join(more) if "%" in text else text)
        case ("which", [program]) | ("command", ["-v", program]) | ("type", ["-p" | "-P", program]):
            return program
        case _:
            return None


def _escaped(found: re.Match[str]) -> str:
    """What a backslash stands for with the character behind it: nothing at the end of a line."""
    return found[1].strip("\n")


def _character(escape: re.Match[str]) -> str:
    if digits := escape["x"] or escape["u"]:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else ""
    if escape["octal"]:
        return chr(int(escape["octal"], 8) & 0xFF)
    return _NAMED_ESCAPES.get(escape["plain"], escape["plain"])
