"""What a session remembers of its patches: the diffs of each file together, within a size."""

from __future__ import annotations

from pathlib import Path

from codex_py.core.session import SessionNotes
from codex_py.protocol.events import FileChange, MessageDone, PatchFinished


def patched(*changes: FileChange, ok: bool = True) -> PatchFinished:
    return PatchFinished("c", changes, ok, "")


def test_diffs_of_a_file_follow_each_other_and_move_with_it() -> None:
    notes = SessionNotes()
    notes.note_event(patched(FileChange(Path("/a"), "add", diff="one\n"), FileChange(Path("/b"), "add", diff="b\n")))
    notes.note_event(patched(FileChange(Path("/a"), "update", diff="never\n"), ok=False))
    notes.note_event(patched(FileChange(Path("/a"), "update", Path("/c"), "two\n")))
    assert notes.changes_of({"/b": "add", "/a": "delete", "/c": "update", "/earlier": "odd"}) == (
        FileChange(Path("/b"), "add", diff="b\n"),
        FileChange(Path("/a"), "delete"),
        FileChange(Path("/c"), "update", diff="one\ntwo\n"),
        FileChange(Path("/earlier"), "update"),
    )


def test_too_many_diffs_are_left_out_and_that_is_said_once() -> None:
    notes = SessionNotes()
    for _ in range(7):
        notes.note_event(patched(FileChange(Path("/a"), "update", diff="x" * 1024 * 1024)))
    [change] = notes.changes_of({"/a": "update"})
    kept, said = change.diff.split("[", 1)
    assert len(kept) == 4 * 1024 * 1024
    assert said == "the diffs of this session are too long to be kept: see the file itself]\n"


def test_the_last_message_is_the_one_heard_last() -> None:
    notes = SessionNotes()
    assert notes.last_message_in(()) is None
    notes.note_event(MessageDone("one"))
    notes.note_event(MessageDone("two"))
    assert notes.last_message_in(()) == "two"
