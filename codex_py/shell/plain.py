"""Scripts that are nothing but plain words: the only ones that anything is allowed on.

A script counts as plain when it is one line of commands of literal words, joined by `&&`, `||`, `;` and `|`. Whatever
a shell would expand, redirect, assign or group makes it none; so does every byte that the grammar does not account for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tree_sitter import Node

from codex_py.shell.syntax import text_of
from codex_py.shell.words import Words

Parse = Callable[[str], Node | None]

# More than that fits into no argument of a process on Linux.
_MAX_SCRIPT_BYTES: Final = 128 * 1024
_MAX_NESTED: Final = 2
_JOINTS: Final = frozenset(("&&", "||", ";", "|"))
_STATEMENTS: Final = frozenset(("program", "list", "pipeline"))
# A bare word no shell expands: a `=` at its start, a `~` and a `^` mean something to zsh.
_BARE: Final = re.compile(r"[\w./@%+:,-][\w./@%+:,=-]*", re.ASCII)
_FIRST: Final = re.compile(r"[A-Za-z0-9_./@+-]+")
# A backslash inside double quotes stays one, unless it stands before one of these.
_SPECIAL_IN_QUOTES: Final = re.compile(r'[$`]|\\["\\$`]')
_SHELLS: Final = frozenset(("bash", "sh", "zsh"))


class _NotPlain(Exception):
    """The script is not plain; why does not matter to anybody."""


def plain_segments(script: str, parse: Parse) -> tuple[Words, ...] | None:
    """The words of each command of a plain script, in order, those of `bash -c "…"` instead of it; else None."""
    try:
        return tuple(_segments(script, parse, 0))
    except _NotPlain:
        return None


def _segments(script: str, parse: Parse, nested: int) -> list[Words]:
    script = script.strip(" \t\n")
    if nested > _MAX_NESTED or not script or len(script) > _MAX_SCRIPT_BYTES or not _is_one_visible_line(script):
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
            _require_no_gaps(node)
            return "".join(map(_word, node.children))
        case _:
            raise _NotPlain


def _require_blank_gaps(node: Node) -> None:
    """Between the parts of a statement there is nothing but spaces: what the parser skipped, a shell may not."""
    if any(gap.strip(b" \t") for gap in _gaps(node)):
        raise _NotPlain


def _require_no_gaps(node: Node) -> None:
    if any(_gaps(node)):
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
    if words[0] not in _SHELLS:
        return None
    if len(words) == 3 and words[1] in ("-c", "-lc"):
        return words[2]
    return None
