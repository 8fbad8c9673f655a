"""Putting stored sessions in order where one is chosen: rename, archive, delete."""

from __future__ import annotations

import asyncio
from pathlib import Path

from codex_py.rollout.archive import archive_session
from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.ui.repl.panels.askers import PanelAsker
from codex_py.ui.repl.panels.sessions import SessionWatcher, choose_session
from tests.support.panel_host import panel_host
from tests.unit.rollout_builders import conversation, meta, stored, written
from tests.unit.session_builders import turn_lines

FIRST = "01900000-0000-7000-8000-000000000001"
SECOND = "01900000-0000-7000-8000-000000000002"


async def chosen(home: Path, *presses: str, opened: str = "") -> str | None:
    """What comes of keys pressed one after the other; `see: …` waits for a text on the screen."""
    async with panel_host(100, 30) as host:
        asker = PanelAsker(host.panels.show)
        work = choose_session(asker, "resume", SessionWatcher(home, Path("/work"), "", 0, opened))
        choosing = asyncio.ensure_future(work)
        await host.until("── ")
        await host.play(*presses)
        choice = await asyncio.wait_for(choosing, 30)
        return choice.id if choice else None


def names(home: Path, cwd: str | None = "/work") -> dict[str, str]:
    return {one.id: one.name for one in list_sessions(home, SessionQuery(Path(cwd) if cwd else None))}


async def test_a_session_is_renamed_where_it_is_chosen(tmp_path: Path) -> None:
    stored(tmp_path, conversation(), meta(FIRST))
    keys = ("see: ^R rename", "\x12", "see: Name this session", "enter", "see: must not be empty")
    keys = (*keys, " the  one ", "enter", "see: named `the one` now", "see: ❯ the one", "enter")

    assert await chosen(tmp_path, *keys) == FIRST
    assert names(tmp_path) == {FIRST: "the one"}
    assert await chosen(tmp_path, "\x12", "see: › the one", "esc", "see: ^R rename", "esc") is None


async def test_a_damaged_session_is_said_to_be_left_out(tmp_path: Path) -> None:
    stored(tmp_path, conversation(), meta(FIRST))
    path = stored(tmp_path, conversation(), meta(SECOND))
    path.write_bytes(b"damaged\n" + path.read_bytes())
    keys = ("see: 1 damaged session is not listed; `codex-py sessions list --all` names it", "enter")
    assert await chosen(tmp_path, *keys) == FIRST


async def test_a_session_is_archived_and_another_deleted_after_a_yes(tmp_path: Path) -> None:
    stored(tmp_path, conversation(), meta(FIRST))
    stored(tmp_path, conversation(), meta(SECOND, cwd="/elsewhere"))
    delete = ("\x04", "see: Delete this session for good?", "enter", "see: any directory", "\x04", "see: good?", "y")
    everywhere = ("tab", "see: any directory", SECOND[-4:], f"see: search: {SECOND[-4:]}")
    keys = (*everywhere, *delete, "see: deleted", "ctrl-u", "see: ❯", "\x01", "see: brings it back", "esc")

    assert await chosen(tmp_path, *keys) is None
    assert names(tmp_path, None) == {}
    assert [path.name[-41:-6] for path in (tmp_path / "archived_sessions").iterdir()] == [FIRST[1:]]
    assert not list((tmp_path / "sessions").rglob(f"*{SECOND}*"))


async def test_the_session_that_is_open_is_not_put_away(tmp_path: Path) -> None:
    stored(tmp_path, conversation(), meta(FIRST))
    keys = ("\x01", "see: is open: leave it before you archive it", "\x04", "see: before you delete it")
    assert (
        await chosen(tmp_path, *keys, "\x12", "see: Name this session", "esc", "see: ^R", "esc", opened=FIRST) is None
    )
    assert names(tmp_path) == {FIRST: ""}


async def test_a_session_is_found_by_what_was_said_in_it(tmp_path: Path) -> None:
    written(tmp_path, turn_lines("other", "the flux capacitor hums", ordinal=1), meta(SECOND))
    stored(tmp_path, conversation(), meta(FIRST))
    # Only what is found by the search shows these words; either session may be selected before.
    keys = ("flux hums", "see: flux capacitor", "enter")
    assert await chosen(tmp_path, *keys) == SECOND
    assert await chosen(tmp_path, "nowhere", "see: nothing matches", "esc") is None


async def test_the_key_that_archives_brings_an_archived_session_back(tmp_path: Path) -> None:
    archive_session(stored(tmp_path, conversation(), meta(FIRST)))
    keys = (
        "see: no session of this directory",
        FIRST[-4:],
        "see: archived",
        "\x01",
        "see: it is back from the archive",
    )
    assert await chosen(tmp_path, *keys, "esc") is None
    assert names(tmp_path) == {FIRST: ""}
