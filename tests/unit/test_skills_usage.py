from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from codex_py.protocol.events import SkillUsed
from codex_py.skills.usage import LEDGER, OLDER_LEDGER, SkillUsage, read_usage, record_use

LINT = Path("/s/lint/SKILL.md")
FMT = Path("/s/fmt/SKILL.md")


def use(path: Path = LINT, kind: Literal["explicit", "read", "script"] = "explicit") -> SkillUsed:
    return SkillUsed(path.parent.name, "user", path, kind)


def test_uses_are_counted_by_skill_with_the_last_first(tmp_path: Path) -> None:
    home = tmp_path / "new/home"
    for moment, one in enumerate([use(), use(FMT, "read"), use(kind="script"), use(kind="read")]):
        assert record_use(home, one, now=moment)
    assert read_usage(home) == (
        SkillUsage(str(LINT), "lint", "user", 1, 2, "1970-01-01T00:00:03.000Z"),
        SkillUsage(str(FMT), "fmt", "user", 0, 1, "1970-01-01T00:00:01.000Z"),
    )
    assert stat.S_IMODE((home / LEDGER).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_line_is_one_use(tmp_path: Path) -> None:
    record_use(tmp_path, use(Path("/s/a\nb/SKILL.md")), now=0)
    assert (tmp_path / LEDGER).read_text() == (
        '{"at":"1970-01-01T00:00:00.000Z","name":"a\\nb","scope":"user","path":"/s/a\\nb/SKILL.md","kind":"explicit"}\n'
    )


def test_no_ledger_is_no_use(tmp_path: Path) -> None:
    assert read_usage(tmp_path / "nowhere") == ()


def test_a_full_ledger_is_set_aside_and_the_oldest_forgotten(tmp_path: Path) -> None:
    ledger = tmp_path / LEDGER
    for round_ in range(2):
        record_use(tmp_path, use(FMT if round_ else LINT), now=round_)
        with ledger.open("ab") as stream:
            stream.write(b"x" * 2_400_000 + b"\n")
    assert record_use(tmp_path, use(FMT), now=9)
    assert ledger.stat().st_size < 200
    assert (tmp_path / OLDER_LEDGER).stat().st_size > 2_400_000
    assert [(usage.path, usage.explicit) for usage in read_usage(tmp_path)] == [(str(FMT), 2)]


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    def write(moment: int) -> bool:
        return record_use(tmp_path, use(), now=moment)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write, range(400)))
    assert [usage.explicit for usage in read_usage(tmp_path)] == [400]


def test_what_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not record_use(tmp_path / "file", use())
    assert not record_use(tmp_path / "file/below", use())
    assert not record_use(tmp_path, use(Path("/" + "x" * 20_000)))


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_only_a_regular_file_is_a_ledger(tmp_path: Path, kind: str) -> None:
    ledger = tmp_path / LEDGER
    match kind:
        case "fifo":
            os.mkfifo(ledger)
        case "link":
            (tmp_path / "target").write_text("")
            ledger.symlink_to("target")
        case _:
            ledger.mkdir()
    assert not record_use(tmp_path, use())
    assert read_usage(tmp_path) == ()


def test_a_path_that_is_no_text_is_recorded(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(b"/s/\xff/SKILL.md"))
    assert record_use(tmp_path, use(odd), now=0)
    assert [usage.path for usage in read_usage(tmp_path)] == [str(odd)]
