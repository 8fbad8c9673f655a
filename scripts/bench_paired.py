"""This program against another that takes the same command line, both started on the same fake model."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TURNS = 2000
SKILLS = 300


@dataclass(frozen=True)
class Program:
    name: str
    path: str
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TERM") if key in os.environ}
        return {**kept, "HOME": str(self.home.parent), "CODEX_HOME": str(self.home), "TEST_KEY": "sk-bench"}


@dataclass(frozen=True)
class Sample:
    wall: float
    cpu: float
    memory: float


@dataclass(frozen=True)
class Case:
    """`arguments` are made anew for each run; `calls` is how many commands the model asks for."""

    name: str
    calls: int | None
    arguments: Callable[[Program], list[str]]


def exec_arguments(*extra: str) -> list[str]:
    return ["exec", "--skip-git-repo-check", *extra]


def cases() -> list[Case]:
    full = "danger-full-access"
    return [
        Case("version", None, lambda _: ["--version"]),
        Case("one-shot", 0, lambda _: exec_arguments("say done")),
        Case("20 calls", 20, lambda _: exec_arguments("-s", full, "work")),
        Case("20 calls, sandboxed", 20, lambda _: exec_arguments("-s", "workspace-write", "work")),
        Case(f"{SKILLS} skills", 0, lambda program: exec_arguments("-C", directory_with_skills(program), "say done")),
        Case(f"resume {TURNS} turns", 0, lambda program: exec_arguments("resume", long_session(program), "go on")),
        Case("resume 90 MB", 0, lambda program: exec_arguments("resume", long_session(program, large=True), "go on")),
    ]


def run(program: Program, arguments: list[str], cwd: Path) -> Sample:
    began = time.perf_counter()
    process = subprocess.Popen(
        [program.path, *arguments],
        cwd=cwd,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    talk = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{program.name} {' '.join(arguments)} ended with {process.returncode}:\n{talk.decode()}")
    return Sample(wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024)


def directory_with_skills(program: Program) -> str:
    """A repository with many skills; both programs work in the same one."""
    directory = program.home.parents[1] / "skilled"
    if not directory.exists():
        subprocess.run(["git", "init", "-q", str(directory)], check=True)
        for number in range(SKILLS):
            skill = directory / ".agents" / "skills" / f"skill-{number:03}" / "SKILL.md"
            skill.parent.mkdir(parents=True)
            about = f"Does the work of kind {number}: use when somebody asks for it by name or by what it is for"
            skill.write_text(f'---\nname: skill-{number:03}\ndescription: "{about}"\n---\n# Skill\n\nDo it well.\n')
    return str(directory)


def long_session(program: Program, *, large: bool = False) -> str:
    """The id of a stored session of many turns: one real turn, written by the program itself, repeated.

    A large one has outputs of 45 kB, 90 MB together, most of which a compaction has replaced.
    """
    marker = program.home / ("large-session" if large else "long-session")
    if not marker.exists():
        url = (program.home / "calling-url").read_text()
        calling = f'model_providers.bench.base_url="{url}"'
        run(program, exec_arguments("-s", "danger-full-access", "-c", calling, "work"), program.home)
        rollout = max(program.home.glob("sessions/*/*/*/*.jsonl"))
        multiply(rollout, padding="a line of what a command printed\n" * 1400 if large else "")
        match = re.search(r"([0-9a-f-]{36})\.jsonl$", rollout.name)
        assert match is not None
        marker.write_text(match[1])
    return marker.read_text()


def multiply(rollout: Path, *, padding: str) -> None:
    """Repeat the items of the only turn of a rollout, with call ids of their own and longer outputs.

    With padding, a compaction replaces all but the last tenth.
    """
    lines = [json.loads(line) for line in rollout.read_text().splitlines()]
    prompt = max(
        index
        for index, line in enumerate(lines)
        if line["type"] == "response_item" and line["payload"].get("role") == "user"
    )
    turn = [line for line in lines[prompt:] if line["type"] == "response_item"]
    ordinal = len(lines)
    with rollout.open("a") as out:
        for number in range(TURNS):
            for line in turn:
                text = re.sub(r'"(call_id|id)":"([^"]*)"', rf'"\1":"\2_{number}"', encode(line["payload"]))
                fields = {**line, "ordinal": ordinal, "payload": json.loads(text)}
                fields.pop("metadata", None)
                if padding and isinstance(output := fields["payload"].get("output"), str):
                    fields["payload"]["output"] = output + padding
                out.write(encode(fields) + "\n")
                ordinal += 1
            if padding and number == TURNS * 9 // 10:
                out.write(encode(compaction(lines[0]["timestamp"], ordinal)) + "\n")
                ordinal += 1


def compaction(timestamp: str, ordinal: int) -> dict[str, Any]:
    text = {"type": "input_text", "text": "what happened so far"}
    history = [{"type": "message", "role": "user", "content": [text]}]
    payload = {"message": "", "replacement_history": history, "window_number": 1}
    return {"timestamp": timestamp, "ordinal": ordinal, "type": "compacted", "payload": payload}


def encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@contextlib.contextmanager
def fake_model(calls: int, command: str = "echo") -> Generator[str, None, None]:
    argv = [sys.executable, str(ROOT / "scripts" / "fake_model"), "--calls", str(calls), "--command", command]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def write_config(program: Program, base_url: str, calling_url: str, wire: str = "responses") -> None:
    program.home.mkdir(parents=True, exist_ok=True)
    (program.home / "calling-url").write_text(calling_url)
    (program.home / "config.toml").write_text(
        'model = "gpt-5.5"\nmodel_provider = "bench"\n\n[model_providers.bench]\nname = "bench"\n'
        f'base_url = "{base_url}"\nwire_api = "{wire}"\nenv_key = "TEST_KEY"\n'
    )
    (program.home / "config.toml").chmod(0o600)


def measure(case: Case, programs: list[Program], *, rounds: int, cwd: Path) -> dict[str, list[Sample]]:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(fake_model(case.calls or 0))
        calling = stack.enter_context(fake_model(1))
        for program in programs:
            write_config(program, url, calling)
            run(program, case.arguments(program), cwd)
        samples: dict[str, list[Sample]] = {program.name: [] for program in programs}
        for number in range(rounds):
            for program in programs if number % 2 else programs[::-1]:
                samples[program.name].append(run(program, case.arguments(program), cwd))
        return samples


def rows_of(case: Case, samples: dict[str, list[Sample]]) -> Iterator[tuple[str, ...]]:
    """A row for each measure: the case, the measure, the medians, and the ratio ours / peer where there is a peer.

    The peak of a process includes what it was forked from, so memory that is no more than ours says nothing.
    """
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for measure_name, unit in (("wall", "ms"), ("cpu", "ms"), ("memory", "MB")):
        medians = [statistics.median(getattr(sample, measure_name) for sample in taken) for taken in samples.values()]
        if measure_name == "memory" and min(medians) <= own_peak:
            continue
        row = (case.name, measure_name, *(f"{median:.1f} {unit}" for median in medians))
        if len(medians) == 2:
            pairs = zip(*samples.values(), strict=True)
            ratios = [getattr(ours, measure_name) / getattr(peer, measure_name) for ours, peer in pairs]
            row = (*row, f"x{statistics.median(ratios):.2f}")
        yield row
