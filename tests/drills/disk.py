"""A disk that fills up during a turn: the work goes on with one warning, the file stays whole, resume works.

Two ways to fill it: a small tmpfs that holds the whole CODEX_HOME, where user namespaces are allowed, and a limit on
the size of files. The room is different in each round, so that any write may be the one that fails.
"""

from __future__ import annotations

import json
import random
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.drills.report import Report
from tests.support.fake_responses import FakeResponses, Json, call, say
from tests.support.home import Place, make_place
from tests.support.process import COMMAND, Finished, Running, run

_CALLS: Final = 3
_WARNING: Final = "not saved: "


def disk_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """Run so many sessions below `root`, which must be an empty directory; every other one on a tmpfs if possible."""
    report, random_ = Report(), random.Random(seed)
    possible = can_mount()
    for number in range(rounds):
        place = make_place(root / f"session-{number}")
        on_tmpfs = possible and number % 2 == 0
        report.rounds += 1
        report.counts["on a tmpfs"] += on_tmpfs
        script = [_working(n) for n in range(_CALLS)]
        excused = {"prefix", "replay", "head", "threads", "unplayed"}
        with FakeResponses(*script, [say("done")], [say("again")], excuse=excused) as model:
            place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"')
            way = _on_tmpfs if on_tmpfs else _with_file_limit
            problems = way(place, model, random_.randint(0, 40), report)
            report.problems += [f"round {report.rounds}: {line}" for line in [*problems, *model.problems]]
            # Told in the report, and not by leaving the block.
            model.problems.clear()
    return report


def can_mount() -> bool:
    """Whether a tmpfs of our own can be mounted here."""
    try:
        return subprocess.run([*_NAMESPACE, "mount -t tmpfs none /tmp"], capture_output=True).returncode == 0
    except OSError:
        return False


_NAMESPACE: Final = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-ec")


def _working(number: int) -> list[Json]:
    """An answer of about 6 KB, and a call whose output is as much again."""
    command = f"seq -s ' ' 1 {1000 + number}"
    return [say(f"{number} " * 3000, id=f"msg_{number}"), call(f"c{number}", "exec_command", {"cmd": command})]


def _with_file_limit(place: Place, model: FakeResponses, room: int, report: Report) -> list[str]:
    # In units of 512 bytes, and enough for what must be there before the session begins.
    ended = _run(place, f"ulimit -f {room * 4}; exec {shlex.join(_command('go'))}")
    sent = model.requests[-1].input if model.requests else []
    problems = _problems_of(ended, report)
    if not place.rollouts():
        return problems
    again = run(place, "exec", "--json", "resume", "--last", "again")
    return problems + _problems_of_resume(again, lambda: place.rollouts()[0].read_bytes(), model, sent, report)


def _on_tmpfs(place: Place, model: FakeResponses, room: int, report: Report) -> list[str]:
    """Both runs in one mount namespace, which takes the disk away when it ends."""
    home, kept = shlex.quote(str(place.codex_home)), shlex.quote(str(place.home / "kept"))
    script = f"""
        cp -r {home} {kept}
        mount -t tmpfs -o size=256k none {home}
        cp -r {kept}/. {home}
        chmod 700 {home}
        # A page is taken for each file and directory; what is to be left is counted in pages too.
        dd if=/dev/zero of={home}/filler bs=4096 2>/dev/null || true
        pages=$(( $(stat -c %s {home}/filler) / 4096 - {room} ))
        dd if=/dev/zero of={home}/filler bs=4096 count=0 seek=$pages 2>/dev/null
        {shlex.join(_command("go"))} || echo "status $?" >&2
        rm {home}/filler
        files=$(find {home}/sessions -name '*.jsonl' 2>/dev/null)
        if [ -z "$files" ]; then exit 0; fi
        echo "==="
        cat $files
        echo "==="
        exec {shlex.join(_command("resume", "--last", "again"))}
    """
    ended = _run(place, script, _NAMESPACE)
    first, stored, second = [*ended.stdout.split(b"===\n"), b"", b""][:3]
    sent = [one for one in model.requests if one.texts("user")[-1] == "go"][-1].input
    problems = _problems_of(Finished(0 if "status" not in ended.err else 1, first, ended.stderr), report)
    if not second:
        return problems
    again = Finished(ended.status, second, b"")
    return problems + _problems_of_resume(again, lambda: stored, model, sent, report)


def _command(*arguments: str) -> list[str]:
    return [COMMAND, "exec", "--json", *arguments]


def _run(place: Place, script: str, shell: tuple[str, ...] = ("sh", "-ec")) -> Finished:
    with Running([*shell, script], env=place.env, cwd=place.repo) as running:
        return running.wait()


def _problems_of(ended: Finished, report: Report) -> list[str]:
    """The turn must end well, whatever could be saved; at most one line says that it was not."""
    items = [event["item"] for event in ended.events if event["type"] == "item.completed"]
    warnings = [item["message"] for item in items if item["type"] == "error" and item["message"].startswith(_WARNING)]
    report.counts["with a full disk"] += bool(warnings)
    problems = [f"{len(warnings)} warnings: {warnings}"] if len(warnings) > 1 else []
    if ended.status != 0 or ended.events[-1]["type"] != "turn.completed":
        problems.append(f"the turn did not end well: {ended.out[-300:]} {ended.err[-300:]}")
    if ended.has_traceback:
        problems.append("a traceback was shown")
    return problems


def _problems_of_resume(
    again: Finished, stored: Callable[[], bytes], model: FakeResponses, sent: list[Json], report: Report
) -> list[str]:
    problems = _problems_of(again, Report())
    report.counts["resumed"] += not problems
    lines = stored().splitlines(keepends=True)
    problems += [f"a line of the file: {line[:80]!r}" for line in lines if not _whole(line)]
    kept = _without_repairs(model.requests[-1].input, sent)
    if kept != sent[: len(kept)]:
        problems.append("what was resumed is not a beginning of what was sent")
    return problems


def _whole(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _without_repairs(resumed: list[Json], sent: list[Json]) -> list[Json]:
    """The items of the run before: all up to the first that it had not sent like this."""
    kept: list[Any] = []
    for item, before in zip(resumed, sent, strict=False):
        if item != before and (item.get("output") == "aborted" or item.get("role") in ("user", "developer")):
            break
        kept.append(item)
    return kept
