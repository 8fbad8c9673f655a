"""What plays the terminal in other tests."""

from __future__ import annotations

import pytest

from tests.support.home import Place
from tests.support.terminal import Terminal


def test_a_program_that_does_not_end_is_not_waited_for_without_end(place: Place) -> None:
    with (
        Terminal(place, "600", command="sleep") as terminal,
        pytest.raises(AssertionError, match="it has not ended within"),
    ):
        terminal.wait_for_end(timeout=0.1)


def test_how_a_program_ended_is_reported(place: Place) -> None:
    with Terminal(place, "-c", "exit 3", command="sh") as terminal:
        assert terminal.wait_for_end() == 3
    with Terminal(place, "-c", "kill -9 $$", command="sh") as terminal:
        assert terminal.wait_for_end() == -9
