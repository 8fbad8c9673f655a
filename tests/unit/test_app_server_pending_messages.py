"""Which of the things a client has said a turn takes up, where they arrive while turns end and begin."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from codex_py.server.app.inputs import PendingMessages
from codex_py.server.app.items import text_content

PICTURE = {"type": "image", "url": "data:image/gif;base64,R0lGODlhAQABAAAAADs="}


def test_a_turn_begins_with_all_that_has_arrived() -> None:
    pending = PendingMessages()
    for content in ([text_content("one")], [PICTURE], [text_content("two")], [PICTURE]):
        with pending.expecting(content):
            pass

    taken = list(pending.take_all(["one", "two"]))
    assert taken == [[text_content("one")], [PICTURE], [text_content("two")], [PICTURE]]
    assert pending.take([]) == []


def test_what_is_on_its_way_is_left_to_the_turn_that_has_its_text() -> None:
    pending = PendingMessages()
    with pending.expecting([text_content("one")]):
        pass
    with pending.expecting([text_content("two")]):
        assert list(pending.take_all(["one"])) == [[text_content("one")]]
    assert pending.take(["two"]) == [text_content("two")]


def test_a_turn_begins_with_a_picture_alone() -> None:
    pending = PendingMessages()
    with pending.expecting([PICTURE]):
        assert list(pending.take_all([])) == [[PICTURE]]


def test_what_is_taken_back_is_what_has_arrived() -> None:
    pending = PendingMessages()
    with pending.expecting([text_content("one")]):
        pass
    with pending.expecting([text_content("two")]):
        pending.forget()
    assert pending.take(["two"]) == [text_content("two")]


def test_what_was_taken_back_on_its_way_is_not_reported() -> None:
    pending = PendingMessages()
    with pending.expecting([text_content("one")]):
        pass
    with pending.expecting([text_content("two")]):
        pending.forget()
    with pending.expecting([text_content("three")]):
        pass
    assert list(pending.take_all(["three"])) == [[text_content("three")]]
    assert pending.take([]) == []


def test_what_the_session_does_not_take_was_not_said() -> None:
    pending = PendingMessages()
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(ValueError, match="no such file"))
        stack.enter_context(pending.expecting([PICTURE]))
        raise ValueError("no such file")
    assert pending.take([]) == []
