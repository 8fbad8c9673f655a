"""What the words behind a command of the user's own become in its text."""

from __future__ import annotations

import pytest

from codex_py.services.prompt_files import fill_prompt


@pytest.mark.parametrize(
    ("body", "words", "message"),
    [
        ("Fix $1 in $2.", 'bug "a b.py"', "Fix bug in a b.py."),
        ("Fix $ARGUMENTS now", "one  'two", "Fix one  'two now"),
        ("Look at $FILE, not $HOME", "FILE=app.py", "Look at app.py, not $HOME"),
        ("It costs $$1, $3", "a", "It costs $1, "),
        ("Review it.", "the parser", "Review it.\n\nthe parser"),
        ("Review $it.", "", "Review $it."),
        ("$1 $FILE", "FILE='x y' z", "z x y"),
    ],
)
def test_the_words_behind_a_command_fill_its_text(body: str, words: str, message: str) -> None:
    assert fill_prompt(body, words) == message
