"""How a paste is told from keys."""

from __future__ import annotations

import pytest
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codex_py.ui.repl.terminal import KeyParser

_TEXT = "a\x1b[20~b\rc" * 3


@pytest.mark.parametrize("size", [1, 2, 5, 7, 1000])
def test_a_paste_is_one_key_however_it_comes(size: int) -> None:
    keys: list[KeyPress] = []
    parser = KeyParser(keys.append)
    coming = f"x\x1b[200~{_TEXT}\x1b[201~y\x1b[200~\x1b[201~z"

    for start in range(0, len(coming), size):
        parser.feed(coming[start : start + size])

    assert [(key.key, key.data) for key in keys] == [
        ("x", "x"),
        (Keys.BracketedPaste, _TEXT),
        ("y", "y"),
        (Keys.BracketedPaste, ""),
        ("z", "z"),
    ]
