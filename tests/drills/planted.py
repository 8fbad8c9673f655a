"""Plants repositories with commands of the sandbox while `git status` runs in a loop outside."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from tests.drills.report import Report

_POLICY: Final = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
# `{run}` is the program that must not run. Each ends with the repository in place, and then waits to be stopped.
_EVIL: Final = "git init -q x && git -C x config core.fsmonitor {run}"
PLANTS: Final = {
    "mkdir": "git init -q && git config core.fsmonitor {run}",
    "rename": f"{_EVIL} && mv x/.git .git",
    "link": f"{_EVIL} && ln -s x/.git .git",
    "clone": "git init -q x && git clone -q -c core.fsmonitor={run} x y 2>/dev/null; mv y/.git .git",
    "archive": f"{_EVIL} && tar -C x -cf t.tar .git && tar -xf t.tar",
    "gitdir file": f"{_EVIL} && echo 'gitdir: x/.git' > .git",
    # git runs this hook when it has written the index, as it does for a file whose time has changed.
    "hook": "git init -q x && echo > f && git --git-dir x/.git --work-tree . add f && touch -d 2001-01-01 f && "
    "cp {run} x/.git/hooks/post-index-change && mv x/.git .git",
    "include": "git init -q x && git config -f i core.fsmonitor {run} && git -C x config include.path ../i && "
    "mv x/.git .",
    "bare": "git init -q --bare x && git -C x config core.fsmonitor {run} && git -C x config core.bare false && "
    "git -C x config core.worktree $PWD && mv x/config x/objects x/refs . && mv x/HEAD HEAD",
}


def planted_drill(clock: Callable[[], float], root: Path, *, rounds: int, seed: int) -> Report:
    """`rounds` repositories, by each way in turn; `seed` is the first one of the ways. `clock` counts seconds."""
    report = Report(rounds)
    sandbox = Sandbox({"PATH": os.environ["PATH"], "HOME": str(root)}, home=root / "home")
    (root / "home").mkdir()
    ways = list(PLANTS)
    stood: list[float] = []
    for number in range(rounds):
        way = ways[(seed + number) % len(ways)]
        work = root / f"work{number}"
        work.mkdir()
        ran = root / f"ran{number}"
        run = root / f"run{number}"
        run.write_text(f"#!/bin/sh\ntouch {ran}\n")
        run.chmod(0o755)
        stood.append(_plant(clock, sandbox, work, PLANTS[way].replace("{run}", str(run)), report, way))
        report.counts[f"run outside ({way})"] += ran.exists()
        report.counts["run outside"] += ran.exists()
    report.counts["µs in the median until it was gone"] = round(1_000_000 * median(stood))
    report.counts["ms at most"] = round(1000 * max(stood))
    return report


def _plant(clock: Callable[[], float], sandbox: Sandbox, work: Path, cmd: str, report: Report, way: str) -> float:
    """How long the repository was there, in seconds."""
    name = work / ("HEAD" if way == "bare" else ".git")
    ended = threading.Event()
    seen = [0.0, 0.0]

    def look() -> None:
        while not ended.is_set():
            if os.path.lexists(name):
                seen[0], seen[1] = seen[0] or clock(), clock()
            ended.wait(0.0005)

    looking = threading.Thread(target=look)
    looking.start()
    asking = subprocess.Popen(["/bin/sh", "-c", "while :; do git status >/dev/null 2>&1; done"], cwd=work)
    command = PreparedCommand(("/bin/sh", "-c", f"{cmd}; sleep 5"), work, os.environ)
    wrapped = sandbox.wrap(command, policy=_POLICY, cwd=work)
    process = subprocess.Popen(
        wrapped.argv, cwd=work, env=dict(wrapped.env), pass_fds=wrapped.fds, stderr=subprocess.DEVNULL
    )
    wrapped.close_fds()
    status = process.wait()
    wrapped.cleanup()
    ended.set()
    looking.join()
    asking.kill()
    asking.wait()
    if status == 0 or (os.path.lexists(name) and way != "archive"):
        report.problems.append(f"{way}: status {status}, still there: {os.path.lexists(name)}")
    sandbox.take_notices()
    return seen[1] - seen[0]
