"""kill -9 at random moments, then resume: nothing finished is lost, nothing is there twice, no call runs again.

A session is a chain of runs. The model of each turn says something, asks for commands, some of them side by side, and
says it is done. Every run but a session's last is killed: after some time, or after some line of its events. What the
killed run had announced on stdout, and what its commands had left in a file, is compared with the request that the
next run sends.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.drills.report import Report
from tests.support.fake_responses import FakeResponses, Json, Request, Stream, call, delta, hang, repeat, say
from tests.support.home import Place, make_place
from tests.support.process import Finished, Running, run, start

_KILLS_A_SESSION: Final = 5
_STEPS: Final = 3
# What a request or an answer that was cut by the kill looks like to the server.
_EXCUSED: Final = {"json", "length", "replay", "threads", "unplayed"}


class Worker:
    """The model: every message and every command it gives out has a number of its own, written nowhere else."""

    def __init__(self, effects: Path, random_: random.Random) -> None:
        self._effects = effects
        self._random = random_
        self._numbers = itertools.count(1)

    def __call__(self, request: Request) -> Stream:
        since = itertools.takewhile(lambda one: one.get("role") != "user", reversed(request.input))
        done = sum(one["type"] == "function_call_output" for one in since)
        if done >= _STEPS:
            return [delta("do"), self._pause(), self._message()]
        calls = [self._command() for _ in range(self._random.randint(1, 2))]
        return [delta("wor"), self._message(), self._pause(), *calls, self._pause()]

    def _pause(self) -> Any:
        return hang(self._random.choice([0.0, 0.0, 0.01, 0.05]))

    def _message(self) -> Json:
        number = next(self._numbers)
        return say(f"message-{number}.", id=f"msg_{number}")

    def _command(self) -> Json:
        number = next(self._numbers)
        nap = self._random.choice(["", "; sleep 0.05", "; sleep 0.3"])
        command = f"echo effect-{number}. >> {self._effects}{nap}; echo output-{number}."
        return call(f"call-{number}.", "exec_command", {"cmd": command, "login": False, "yield_time_ms": 30000})


class Round:
    """One kill and what was known at that moment."""

    def __init__(self, killed: Finished, effects: Path) -> None:
        self.events = [json.loads(line) for line in killed.stdout.split(b"\n")[:-1]]
        items = [(event["type"], event["item"]) for event in self.events if "item" in event]
        ended = [item for kind, item in items if kind == "item.completed"]
        self.messages = [item["text"] for item in ended if item["type"] == "agent_message"]
        self.outputs = [item["aggregated_output"].strip() for item in ended if item["type"] == "command_execution"]
        begun = sum(kind == "item.started" for kind, _ in items)
        self.during_a_command = begun > len(self.outputs)
        self.effects = Counter(effects.read_text().split()) if effects.exists() else Counter[str]()

    @property
    def thread(self) -> str | None:
        return next((event["thread_id"] for event in self.events if event["type"] == "thread.started"), None)

    def problems(self, after: Request) -> list[str]:
        """What does not fit between the killed run and the first request of the run after it."""
        raw = after.raw.decode()
        outputs = {one["call_id"]: one["output"] for one in after.input if one["type"] == "function_call_output"}
        found = [f"{effect} happened {count} times" for effect, count in self.effects.items() if count > 1]
        # Each is said once by the model; a command's output stands in its output, its name in the call.
        found += [f"{one!r} is there {n} times" for one in self.messages if (n := raw.count(f'"{one}"')) != 1]
        for output in self.outputs:
            call_id = output.replace("output", "call")
            if output not in outputs.get(call_id, ""):
                found.append(f"{output!r} was announced and is lost: {outputs.get(call_id)!r}")
        for effect in self.effects:
            call_id = effect.replace("effect", "call")
            if call_id not in outputs:
                found.append(f"{effect!r} happened, and its call is lost")
        calls = Counter(one["call_id"] for one in after.input if one["type"] == "function_call")
        return found + [f"{call_id} is there {count} times" for call_id, count in calls.items() if count > 1]


def crash_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """Kill so many runs below `root`, which must be an empty directory."""
    report, random_ = Report(), random.Random(seed)
    while report.rounds < rounds:
        place = make_place(root / f"session-{report.rounds}")
        kills = min(_KILLS_A_SESSION, rounds - report.rounds)
        _session(place, kills, random_, report)
    return report


def _session(place: Place, kills: int, random_: random.Random, report: Report) -> None:
    effects = place.repo / "effects"
    with FakeResponses(repeat(Worker(effects, random_)), excuse=_EXCUSED) as model:
        place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"')
        thread: str | None = None
        for _ in range(kills):
            where = f"round {report.rounds + 1}"
            killed, sent = _killed_run(place, _arguments(thread), random_), len(model.requests)
            report.rounds += 1
            report.problems += [f"{where}: {line}" for line in _left_behind(place)]
            before = Round(killed, effects)
            report.counts["before the first item"] += not (before.messages or before.outputs)
            report.counts["during a command"] += before.during_a_command
            [path] = place.rollouts() or [None]
            if path is None:
                if before.messages or before.outputs:
                    report.problems.append(f"{where}: items were announced and there is no file")
                continue
            report.counts["with a torn last line"] += not path.read_bytes().endswith(b"\n")
            thread = path.stem[-36:]
            ended = run(place, *_arguments(thread))
            report.problems += [f"{where}: {line}" for line in _problems_after(ended, before, model, sent)]
        report.problems += model.problems
        # Told in the report, and not by leaving the block.
        model.problems.clear()


def _arguments(thread: str | None) -> list[str]:
    return ["exec", "--json", *(["resume", thread] if thread else []), "go"]


def _problems_after(ended: Finished, before: Round, model: FakeResponses, sent: int) -> list[str]:
    found = [] if ended.status == 0 else [f"the next run ended with {ended.status}: {ended.out[-500:]} {ended.err}"]
    if len(model.requests) <= sent:
        return [*found, "the next run sent no request"]
    return found + before.problems(model.requests[sent])


def _killed_run(place: Place, arguments: list[str], random_: random.Random) -> Finished:
    with start(place, *arguments) as running:
        if random_.random() < 0.4:
            time.sleep(random_.uniform(0.0, 1.2))
        else:
            lines = random_.randint(1, 12)
            running.wait_until(lambda one: one.stdout.count(b"\n") >= lines or b"turn.completed" in one.stdout)
            time.sleep(random_.choice([0.0, random_.uniform(0.0, 0.02), random_.uniform(0.0, 0.3)]))
        return _killed(running)


def _killed(running: Running) -> Finished:
    running.send_signal(signal.SIGKILL)
    running.popen.wait()
    # What it left behind may hold the pipes open for a moment; what it had written is in them.
    return running.wait()


def _left_behind(place: Place) -> list[str]:
    """Processes that still work in the repository a while after the agent is gone."""
    deadline = time.monotonic() + 10
    while left := _working_in(place.repo):
        if time.monotonic() > deadline:
            return [f"left behind: {' '.join(left)}"]
        time.sleep(0.01)
    return []


def _working_in(directory: Path) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == directory:
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found
