"""That a command line sees no difference between the two ways in which tests start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.support import no_namespaces
from tests.support.home import Place
from tests.support.process import COMMAND, Finished, Running, start
from tests.support.warm import can_play

# What a process has from whoever started it, told by a command that it runs without touching any of it.
LOOK = (
    "pwd; env | sort; umask; ulimit -a; grep -E '^(Sig[^Q]|Shd|Cap)' /proc/self/status; ls /proc/self/fd; cat; exit 3"
)


def cold(place: Place, *arguments: str, stdin: bytes) -> Finished:
    ended = subprocess.run([COMMAND, *arguments], cwd=place.home, env=place.env, input=stdin, capture_output=True)
    return Finished(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture
def warm(place: Place) -> Place:
    """A place in which starts are warm."""
    if not can_play(place.env):
        pytest.skip("only where a run has workers")
    return place.with_env(TZ="Asia/Tokyo", SOME="\udcff\n")


def test_a_warm_start_is_like_a_cold_one(warm: Place) -> None:
    line = ("sandbox", "-s", "danger-full-access", "--", "sh", "-c", LOOK)
    with start(warm, *line, stdin=b"told\xff", cwd=warm.home) as running:
        ended = running.wait()
    assert not isinstance(running.popen, subprocess.Popen)
    assert ended == cold(warm, *line, stdin=b"told\xff")
    assert (ended.status, ended.stdout[-5:]) == (3, b"told\xff")


def test_it_leads_a_group_and_a_session_and_is_seen_to_die_of_a_signal(warm: Place) -> None:
    with start(warm, "exec", "-", stdin="open") as running:
        assert os.getpgid(running.pid) == os.getsid(running.pid) == running.pid
        assert running.popen.poll() is None
        running.send_signal(signal.SIGKILL)
        assert running.wait().status == -signal.SIGKILL


def test_what_python_reads_at_its_start_is_left_to_a_cold_one(warm: Place) -> None:
    for name in ("PYTHONUNBUFFERED", "LC_ALL", "LD_PRELOAD"):
        assert not can_play({**warm.env, name: ""})
    with Running([COMMAND, "--version"], env={**warm.env, "PYTHONUTF8": "1"}, cwd=warm.repo) as running:
        assert isinstance(running.popen, subprocess.Popen)
        assert running.wait().status == 0


def test_a_filter_is_put_on_a_warm_start(warm: Place) -> None:
    shows = "unshare -U true || echo forbidden; grep -E '^(NoNew|Seccomp:)' /proc/self/status"
    line = [COMMAND, "sandbox", "-s", "danger-full-access", "--", "sh", "-c", shows]
    with Running([sys.executable, no_namespaces.__file__, *line], env=warm.env, cwd=warm.repo) as running:
        ended = running.wait()
    assert not isinstance(running.popen, subprocess.Popen)
    assert ended.out == "forbidden\nNoNewPrivs:\t1\nSeccomp:\t2\n"
