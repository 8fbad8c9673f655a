"""`codex-py exec` stopped from outside: at any moment, with nothing lost and nothing left running."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from tests.support.fake_responses import (
    FakeResponses,
    call,
    delta,
    fake_model,
    hang,
    headers,
    say,
    stall_headers,
    status,
)
from tests.support.home import Place
from tests.support.process import TIMEOUT, Running, run, start
from tests.support.rollout import read_rollout, recorded_events, recorded_items

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


class Line:
    """A FIFO that a command holds open: it can be heard to begin, and to be gone with all its children."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def command(self, *, last: str = "sleep 1000 & sleep 1000") -> str:
        return f"exec 9>{self.path}; echo up >&9; echo begun; {last}"

    def wait_for_begin(self) -> None:
        assert self._read() == b"up\n"

    def wait_for_end(self) -> None:
        assert self._read() == b""
        os.close(self._reader)

    def _read(self) -> bytes:
        ready, _, _ = select.select([self._reader], [], [], TIMEOUT)
        assert ready, "the command did not begin, or did not end"
        return os.read(self._reader, 100)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("before", ["nothing", "text", "item"])
def test_a_signal_during_the_stream(place: Place, number: signal.Signals, code: int, before: str) -> None:
    never = threading.Event()
    script = {
        "nothing": [stall_headers(never), say("late")],
        "text": [delta("half an ans"), hang(never)],
        "item": [say("half"), hang(never)],
    }
    with fake_model(place, script[before]) as model, start(place, "exec", "go") as running:
        model.wait_for(1)
        running.send_signal(number)
        ended = running.wait()

    assert (ended.status, ended.stdout) == (code, b"")
    assert not ended.has_traceback
    assert "turn interrupted" in ended.err
    [path] = place.rollouts()
    assert recorded_events(path)[-1] == "turn_aborted"
    assert "<turn_aborted>" in recorded_items(path)[-1]["content"][0]["text"]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("sandbox", ["danger-full-access", "workspace-write"])
def test_a_signal_during_a_command_kills_it_and_answers_the_call(
    place: Place, number: signal.Signals, code: int, sandbox: str
) -> None:
    line = Line(place.repo / "line")
    script = call("c1", "exec_command", {"cmd": line.command()})
    with fake_model(place, [script], [say("back again")]) as model:
        with start(place, "exec", "--json", "-s", sandbox, "go") as running:
            line.wait_for_begin()
            running.send_signal(number)
            ended = running.wait()
        line.wait_for_end()
        resumed = run(place, "exec", "resume", "--last", "-s", sandbox, "and now?")

    assert ended.status == code
    assert not ended.has_traceback
    kinds = ["thread.started", "turn.started", "item.started", "item.completed"]
    assert [event["type"] for event in ended.events] == kinds
    assert (resumed.status, resumed.stdout) == (0, b"back again\n")
    then = [one for one in model.requests[1].input if one["type"] != "message"]
    assert [one["type"] for one in then] == ["function_call", "function_call_output"]
    assert "aborted" in model.requests[1].output_of("c1")
    assert sum("<turn_aborted>" in text for text in model.requests[1].texts("user")) == 1
    assert model.requests[1].texts("user")[-1] == "and now?"


def test_outputs_stay_in_order_when_only_the_second_call_had_ended(place: Place) -> None:
    line = Line(place.repo / "line")
    first = call("c1", "exec_command", {"cmd": line.command()})
    second = call("c2", "exec_command", {"cmd": "echo quick"})
    with fake_model(place, [first, second], [say("back")]) as model:
        with start(place, "exec", "--json", "-s", "danger-full-access", "go") as running:
            line.wait_for_begin()
            running.wait_until(lambda one: b"quick\\n" in one.stdout)
            running.send_signal(signal.SIGINT)
            assert running.wait().status == 130
        line.wait_for_end()
        assert run(place, "exec", "resume", "--last", "-s", "danger-full-access", "again").status == 0

    outputs = [one["call_id"] for one in model.requests[1].input if one["type"] == "function_call_output"]
    assert outputs == ["c1", "c2"]
    assert "quick" in model.requests[1].output_of("c2")


def test_a_signal_during_the_back_off(place: Place) -> None:
    with fake_model(place, status(503, "busy", {"retry-after": "500"})), start(place, "exec", "go") as running:
        running.wait_until(lambda one: b"Reconnecting" in one.stderr)
        running.send_signal(signal.SIGINT)
        ended = running.wait()

    assert ended.status == 130


def test_a_signal_while_waiting_for_the_network(place: Place) -> None:
    place.use_model("http://127.0.0.1:9/v1", connect_retry_seconds=600)
    with start(place, "exec", "--json", "go") as running:
        running.wait_until(lambda one: b"Reconnecting" in one.stdout)
        running.send_signal(signal.SIGTERM)
        ended = running.wait()

    assert ended.status == 143
    assert ended.events[0]["type"] == "thread.started"


def test_a_signal_while_stdin_is_read(place: Place) -> None:
    with fake_model(place), start(place, "exec", "-", stdin="open") as running:
        feed_and_wait(running, b"half a prompt")
        running.send_signal(signal.SIGINT)
        ended = running.wait()

    assert (ended.status, ended.stdout) == (130, b"")
    assert not ended.has_traceback


def feed_and_wait(running: Running, content: bytes) -> None:
    """Write to the process's stdin and return once it has taken everything."""
    pipe = running.popen.stdin
    assert pipe is not None
    pipe.write(content)
    pipe.flush()
    deadline = time.monotonic() + TIMEOUT
    while struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4))[0]:
        assert time.monotonic() < deadline, "stdin is not read"
        os.sched_yield()


def test_a_kill_at_a_command_loses_nothing_that_had_ended(place: Place) -> None:
    line = Line(place.repo / "line")
    script = [say("I try."), call("c1", "exec_command", {"cmd": "echo one"})]
    with fake_model(place, script, [call("c2", "exec_command", {"cmd": line.command()})], [say("done")]) as model:
        with start(place, "exec", "-s", "workspace-write", "go") as running:
            line.wait_for_begin()
            running.send_signal(signal.SIGKILL)
            assert running.wait().status == -signal.SIGKILL
        line.wait_for_end()
        ended = run(place, "exec", "resume", "--last", "-s", "workspace-write", "go on")

    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert "one" in model.requests[2].output_of("c1")
    assert model.requests[2].output_of("c2") == "aborted"
    [path] = place.rollouts()
    assert [record.ordinal for record in read_rollout(path)] == list(range(len(read_rollout(path))))


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_closed_stdout_ends_quietly_and_keeps_the_session(place: Place, flags: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    # With --json the first line may stop it, before anything is asked.
    with fake_model(place, [say("done")], excuse={"unplayed"}):
        try:
            with start(place, "exec", *flags, "go", stdout=writer) as running:
                ended = running.wait()
        finally:
            os.close(writer)

    assert ended.status in (0, 1)
    assert [line for line in ended.err.splitlines() if "rror" in line or "Pipe" in line] == []
    [path] = place.rollouts()
    assert recorded_events(path)[-1] in ("task_complete", "turn_aborted")


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_an_answer_that_cannot_be_written_is_reported(place: Place, flags: list[str]) -> None:
    with FakeResponses([say("done")], excuse={"unplayed"}) as model, Path("/dev/full").open("wb") as full:
        place.use_model(model.base_url)
        with start(place, "exec", *flags, "go", stdout=full.fileno()) as running:
            ended = running.wait()

    assert ended.status == 1
    assert ended.err.splitlines()[-1] == "error: cannot write to stdout: no space left on device"


def test_the_turn_state_is_echoed_within_the_turn(place: Place) -> None:
    first = [headers({"x-codex-turn-state": "state-1"}), call("c", "exec_command", {"cmd": "true"})]
    with fake_model(place, first, [say("done")]) as model:
        assert run(place, "exec", "go").status == 0

    assert [request.headers.get("x-codex-turn-state") for request in model.requests] == [None, "state-1"]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_while_the_program_is_loaded_is_not_reported(place: Place, number: signal.Signals, code: int) -> None:
    early = f"import codex_py.cli.entry, os, time; os.kill(os.getpid(), {int(number)}); time.sleep(600)"
    with Running([sys.executable, "-c", early], env=place.env, cwd=place.repo) as running:
        ended = running.wait()

    assert (ended.status, ended.out, ended.err) == (code, "", "")


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_that_stands_still_does_not_hold_up_the_end(
    place: Place, flags: list[str], number: signal.Signals, code: int
) -> None:
    read_end, write_end = os.pipe()
    with fake_model(place, [say("x" * 1_000_000)]), start(place, "exec", *flags, "go", stdout=write_end) as running:
        os.close(write_end)
        wait_until_full(read_end)
        running.send_signal(number)
        ended = running.wait()
    os.close(read_end)

    assert ended.status == code
    assert not ended.has_traceback


def wait_until_full(pipe: int) -> None:
    """Return once the pipe holds so much that the writer of a long text has to wait."""
    full = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) - 2 * select.PIPE_BUF
    deadline = time.monotonic() + TIMEOUT
    while struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0] < full:
        assert time.monotonic() < deadline, "nothing is written"
        os.sched_yield()
