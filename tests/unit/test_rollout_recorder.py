from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.protocol.items import message
from codex_py.rollout.listing import latest_session
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import RolloutRecorder
from tests.unit.rollout_builders import append, conversation, meta, no_warning, stored

REPOSITORY = Path(__file__).resolve().parents[2]


def python(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Another process of this program; it gets its arguments in `sys.argv[1:]`."""
    prelude = (
        "import sys, json\nfrom pathlib import Path\n"
        "from codex_py.errors import UserError\n"
        "from codex_py.protocol.items import message\n"
        "from codex_py.rollout.reader import load_session\n"
        "from codex_py.rollout.recorder import RolloutRecorder\n"
        "from tests.unit.rollout_builders import meta\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", prelude + code, *map(str, arguments)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_appears_with_the_first_record(tmp_path: Path) -> None:
    header = meta()
    recorder = RolloutRecorder.create(tmp_path, header, warn=no_warning)
    assert not (tmp_path / "sessions").exists()

    recorder.record("event_msg", {"type": "task_started"})

    assert recorder.path == tmp_path / f"sessions/2026/11/21/rollout-2026-11-21T22-02-11-{header.id}.jsonl"
    records = [json.loads(line) for line in recorder.path.read_text().splitlines()]
    assert [list(record) for record in records] == [["timestamp", "ordinal", "type", "payload"]] * 2
    assert [(r["ordinal"], r["type"]) for r in records] == [(0, "session_meta"), (1, "event_msg")]
    assert [r["payload"] for r in records] == [header.to_payload(), {"type": "task_started"}]
    recorder.close()


def test_files_and_directories_are_the_users_alone(tmp_path: Path) -> None:
    loose = tmp_path / "home/sessions/2026"
    loose.mkdir(parents=True)
    loose.chmod(0o755)
    before = os.umask(0)
    try:
        path = stored(tmp_path / "home", conversation())
    finally:
        os.umask(before)

    assert permissions(path) == 0o600
    assert {permissions(directory) for directory in path.parents[:4]} == {0o700}
    path.chmod(0o644)
    append(path, message("user", "more"))
    assert permissions(path) == 0o600


def test_resuming_alone_changes_nothing(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    path.write_bytes(path.read_bytes()[:-9])
    before = path.read_bytes()

    append(path)

    assert path.read_bytes() == before


async def test_sync_waits_for_the_disk_and_lets_others_run(tmp_path: Path) -> None:
    recorder = RolloutRecorder.create(tmp_path, meta(), warn=no_warning)
    await recorder.sync()
    recorder.record("response_item", message("user", "hi").encoded)

    await asyncio.gather(recorder.sync(), recorder.sync())
    recorder.record("response_item", message("user", "ho").encoded)
    await recorder.sync()
    recorder.close()
    recorder.close()
    await recorder.sync()
    recorder.record("response_item", message("user", "too late").encoded)

    assert load_session(recorder.path).items == (message("user", "hi"), message("user", "ho"))


def test_a_session_that_grew_since_it_was_read_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    session = load_session(path)
    append(path, message("user", "from another process"))

    with pytest.raises(UserError, match="was written to while it was read"):
        RolloutRecorder.resume(session, warn=no_warning)
    append(path, message("user", "the refusal left no lock"))


def test_a_home_that_cannot_be_written_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("in the way")
    warnings: list[str] = []
    recorder = RolloutRecorder.create(tmp_path, meta(), warn=warnings.append)

    for item in conversation(8):
        recorder.record("response_item", item.encoded)
    asyncio.run(recorder.sync())
    recorder.close()

    assert len(warnings) == 1
    assert warnings[0].startswith(f"not saved: cannot write `{recorder.path}`: ")


def test_a_session_that_vanished_costs_one_warning(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    session = load_session(path)
    path.unlink()
    warnings: list[str] = []

    recorder = RolloutRecorder.resume(session, warn=warnings.append)
    recorder.record("response_item", message("user", "hi").encoded)
    recorder.close()

    assert warnings == [f"not saved: cannot write `{path}`: no such file or directory"]


def test_a_link_planted_where_the_file_belongs_is_not_followed(tmp_path: Path) -> None:
    header = meta()
    target = tmp_path / "precious"
    target.write_text("precious")
    warnings: list[str] = []
    recorder = RolloutRecorder.create(tmp_path, header, warn=warnings.append)
    recorder.path.parent.mkdir(parents=True)
    recorder.path.symlink_to(target)

    recorder.record("response_item", message("user", "hi").encoded)

    assert len(warnings) == 1
    assert target.read_text() == "precious"
    assert recorder.path.is_symlink()


@pytest.mark.parametrize("limit", [100, 1500, 5000])
def test_a_full_disk_costs_one_warning_and_leaves_a_whole_file(tmp_path: Path, limit: int) -> None:
    child = python(
        "import resource\n"
        "limit = int(sys.argv[2])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "warnings = []\n"
        "recorder = RolloutRecorder.create(Path(sys.argv[1]), meta(), warn=warnings.append)\n"
        "for n in range(100): recorder.record('response_item', message('user', f'{n} ' * 20).encoded)\n"
        "recorder.close()\n"
        "print(json.dumps([str(recorder.path), warnings]))\n",
        tmp_path,
        str(limit),
    )
    answer, _ = child.communicate(timeout=60)
    path, warnings = json.loads(answer)

    assert warnings == [f"not saved: cannot write `{path}`: file too large"]
    if limit == 100:
        assert not Path(path).exists()
        return
    session = load_session(Path(path))
    assert session.items == tuple(message("user", f"{n} " * 20) for n in range(len(session.items)))
    assert 0 < len(session.items) < 100
    assert (session.warnings, session.ends_with_newline) == ((), True)
    append(Path(path), message("user", "there is room again"))


def test_a_full_disk_after_a_torn_line_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    path.write_bytes(path.read_bytes()[:-9])
    before = path.read_bytes()
    child = python(
        "import resource\n"
        "recorder = RolloutRecorder.resume(load_session(Path(sys.argv[1])), warn=print)\n"
        "limit = int(sys.argv[2])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "recorder.record('response_item', message('user', 'hi').encoded)\n",
        path,
        str(len(before) + 30),
    )
    answer, _ = child.communicate(timeout=60)

    assert answer == f"not saved: cannot write `{path}`: file too large\n"
    assert path.read_bytes() == before


def test_a_killed_process_loses_no_finished_item(tmp_path: Path) -> None:
    child = python(
        "recorder = RolloutRecorder.create(Path(sys.argv[1]), meta(), warn=print)\n"
        "n = 0\n"
        "while True:\n"
        "    recorder.record('response_item', message('user', f'{n} ' * 2000).encoded)\n"
        "    print(n, flush=True)\n"
        "    n += 1\n",
        tmp_path,
    )
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) == 200:
            break
    child.kill()
    result = [200, *map(int, child.stdout.read().splitlines()[:-1])][-1]
    child.wait()
    assert child.stdin is not None
    child.stdin.close()
    child.stdout.close()

    path = latest_session(tmp_path, None)
    session = load_session(path)
    assert session.items == tuple(message("user", f"{n} " * 2000) for n in range(len(session.items)))
    assert len(session.items) > result
    # The system may carry out half of a write when it kills.
    is_whole = path.read_bytes().endswith(b"\n")
    assert len(session.warnings) == (0 if is_whole else 1)
    append(path, message("user", "on we go"))
    assert load_session(path).items[-1] == message("user", "on we go")
