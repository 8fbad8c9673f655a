"""Bash scripts as syntax trees, through tree-sitter, and as words where they are plain. No script is ever run.

A script is plain when it is one line of commands of literal words, joined by `&&`, `||`, `;` and `|`: only on those is
anything allowed. Whatever a shell would expand, redirect, assign or group makes it none; so does every byte that
the grammar does not account for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

import tree_sitter
import tree_sitter_bash
from tree_sitter import Node

from codex_py.shell.words import Words

# Of CPU. A megabyte takes a tenth of that, but a few kilobytes made for it cost seconds and gigabytes.
_MAX_SECONDS: Final = 0.3
_PIECE_BYTES: Final = 64 * 1024
# A pipeline of thousands that ends in an error takes gigabytes between two looks at the clock.
_MAX_PIPES: Final = 3000
# More than that fits into no argument of a process on Linux.
_MAX_PLAIN_BYTES: Final = 128 * 1024
_MAX_NESTED: Final = 2
_JOINTS: Final = frozenset(("&&", "||", ";", "|"))
_STATEMENTS: Final = frozenset(("program", "list", "pipeline"))
# A bare word no shell expands: a `=` at its start, a `~` and a `^` mean something to zsh.
_BARE: Final = re.compile(r"[\w./@%+:,-][\w./@%+:,=-]*", re.ASCII)
_FIRST: Final = re.compile(r"[A-Za-z0-9_./@+-]+")
# A backslash inside double quotes stays one, unless it stands before one of these.
_SPECIAL_IN_QUOTES: Final = re.compile(r'[$`]|\\["\\$`]')
_SHELLS: Final = frozenset(("bash", "sh", "zsh"))


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
    if nested > _MAX_NESTED or not script or len(script) > _MAX_PLAIN_BYTES or not _is_one_visible_line(script):
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
