"""Bash scripts as syntax trees, through tree-sitter. Nothing of a script is ever run."""

from __future__ import annotations

import time
from typing import Final

import tree_sitter
import tree_sitter_bash
from tree_sitter import Node

# Of CPU. A megabyte takes a tenth of that, but a few kilobytes made for it cost seconds and gigabytes.
_MAX_SECONDS: Final = 0.3
_PIECE_BYTES: Final = 64 * 1024
# A pipeline of thousands that ends in an error takes gigabytes between two looks at the clock.
_MAX_PIPES: Final = 3000


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
