"""A batch against a model that limits, cuts and delays, killed again and again: every task ends once.

The batch itself and processes of its tasks are killed in turn, at moments spread over the work; then the same command
goes on. A task with a result may not be asked for again, and the report of the last run must be right. Each task that
writes a file is also killed once around the moment of its answer, and no patch may be lost.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.drills.report import Report
from tests.support.home import Place, make_place
from tests.support.process import COMMAND

JOBS: Final = 16
_LIMITED: Final = 0.05
_CUT: Final = 0.02
_CRASH: Final = 0.01
_LATENCY: Final = (0.05, 0.4)
RETRY_AFTER: Final = 1
_TICK: Final = 0.05
_HANGS_AFTER: Final = 3600.0
# About as long as a run takes from its answer to its files.
_FILES_SECONDS: Final = 0.15
_ANSWER_SECONDS: Final = 10.0
_ANSWER_TICK: Final = 0.005


class ScriptedModel:
    """A server of the Responses API. Each prompt is `task N`, and its answer `answer N`.

    `limited_at` are the moments of its 429s, and `latency` the sum of all delays, in seconds.
    """

    def __init__(self, seed: int, latency: tuple[float, float] = _LATENCY, *, writes: bool = False) -> None:
        """With `writes` each task first writes its number to a file. `on_answer` gets the prompt and the session."""
        self.writes = writes
        self.on_answer: Callable[[str, str], None] | None = None
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.limited_at: list[float] = []
        self.latency = 0.0
        self.latencies = latency
        self.crashes = 0
        self.lock = threading.Lock()
        self.random = random.Random(seed)
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The client was killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    model: ScriptedModel

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._send(404, b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompts = [text for entry in body["input"] if entry.get("role") == "user" for text in _texts(entry)]
        prompt = next(text for text in reversed(prompts) if text.startswith("task "))
        model = self.model
        with model.lock:
            model.asked.append(prompt)
            chance, latency = model.random.random(), model.random.uniform(*model.latencies)
            if chance < _LIMITED:
                model.limited_at.append(time.monotonic())
            else:
                model.latency += latency
        if chance < _LIMITED:
            self._send(429, b'{"error":{"message":"slow down"}}', retry_after=str(RETRY_AFTER))
            return
        time.sleep(latency)
        if chance < _LIMITED + _CRASH:
            model.crashes += 1
            self._send(500, b'{"error":{"message":"crashed"}}')
            return
        text = prompt.replace("task", "answer")
        message = {"type": "message", "id": "msg_1", "role": "assistant"}
        item: dict[str, Any] = {**message, "content": [{"type": "output_text", "text": text, "annotations": []}]}
        outputs = [str(entry["output"]) for entry in body["input"] if entry["type"] == "function_call_output"]
        # A command that was killed is given once more.
        is_answer = not model.writes or any("exited with code 0" in output for output in outputs)
        if not is_answer:
            arguments = json.dumps({"cmd": f"echo {prompt.split()[1]} > made", "login": False})
            item = {
                "type": "function_call",
                "call_id": f"call_{len(outputs)}",
                "name": "exec_command",
                "arguments": arguments,
            }
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
        ]
        if chance < _LIMITED + _CRASH + _CUT:
            events, self.close_connection = events[:1], True
        content = b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        # A body that is shorter than announced is an answer that was cut.
        self.send_header("content-length", str(len(content) + (100 if self.close_connection else 0)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        if len(events) > 1 and is_answer:
            with model.lock:
                model.answered.append(prompt)
            if model.on_answer is not None:
                model.on_answer(prompt, body["prompt_cache_key"])

    def _send(self, status: int, content: bytes, *, retry_after: str = "") -> None:
        self.send_response(status)
        if retry_after:
            self.send_header("retry-after", retry_after)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _texts(entry: dict[str, Any]) -> list[str]:
    return [part.get("text", "") for part in entry["content"]]


def batch_drill(root: Path, *, rounds: int, seed: int, kills: int = 20) -> Report:
    """`rounds` tasks, with so many kills beside those around the answers."""
    drill = BatchDrill(root, rounds, seed, "-s", "danger-full-access", writes=True)
    return drill.play([rounds * (number + 1) // (kills + 1) for number in range(kills)])


class BatchDrill:
    """A batch of `rounds` tasks, with more `options` of `batch` and variables; with `writes` each leaves a patch."""

    def __init__(self, root: Path, rounds: int, seed: int, *options: str, writes: bool = False, **env: str) -> None:
        self._rounds, self._report, self._out = rounds, Report(rounds), root / "out"
        self._model, self._random = ScriptedModel(seed, writes=writes), random.Random(seed)
        self._writes = writes
        self._killed: set[str] = set()
        self._batch = 0
        if writes:
            self._model.on_answer = self._kill_after
        self._place = make_place(root).with_env(**env)
        self._place.use_model(self._model.url, request_max_retries=20, stream_max_retries=20)
        tasks = root / "tasks.jsonl"
        # Half of them in a repository.
        rows = [{"id": f"t{n}", "prompt": f"task {n}.", **_repository(self._place, n, writes)} for n in range(rounds)]
        tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self._argv = [COMMAND, "batch", str(tasks), "--out", str(self._out), "--jobs", str(JOBS), *options]
        self._done_before: dict[str, int] = {}
        self._peak = 0.0

    def play(self, moments: list[int], kill: Callable[[], None] | None = None) -> Report:
        """Kill at these numbers of answers, as `kill` does, or the batch and a task in turn; check the end."""
        report, model = self._report, self._model
        try:
            self._run(moments, kill)
        finally:
            model.close()
        report.counts["seconds of latency a job"] = round(model.latency / JOBS)
        report.counts["requests"] = len(model.asked)
        report.counts["MB of the coordinator at most"] = round(self._peak)
        self._check()
        return report

    def _run(self, moments: list[int], kill: Callable[[], None] | None) -> None:
        until = time.monotonic() + _HANGS_AFTER
        while time.monotonic() < until:
            process = subprocess.Popen(
                self._argv,
                env=self._place.env,
                cwd=self._place.repo,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._batch = process.pid
            while process.poll() is None and time.monotonic() < until:
                self._measure(process.pid)
                if moments and len(self._model.answered) >= moments[0]:
                    moments.pop(0)
                    if kill is not None:
                        kill()
                        continue
                    if len(moments) % 2 == 0:
                        self._kill_batch(process)
                        break
                    self._kill_task(process.pid)
                time.sleep(_TICK)
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.returncode >= 0:
                if process.returncode:
                    self._report.problems.append(f"the batch ended with {process.returncode}")
                return
        self._report.problems.append("the batch did not end")

    def _check(self) -> None:
        problems, model, tasks = self._report.problems, self._model, self._rounds
        with (self._out / "report.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        if len({row["id"] for row in rows}) != tasks or len(rows) != tasks:
            problems.append(f"the report has {len(rows)} rows")
        problems += [f"{row['id']} is {row['status']}: {row['message']}" for row in rows if row["status"] != "ok"]
        for number in range(tasks):
            result = json.loads((self._out / f"t{number}/result.json").read_text())
            if result["answer"] != f"answer {number}.":
                problems.append(f"t{number} has the answer {result['answer']!r}")
            if self._writes:
                self._check_patch(number, result)
        for prompt, position in self._done_before.items():
            if prompt in model.asked[position:]:
                problems.append(f"`{prompt}` was asked for again")
        self._report.counts["tasks answered more than once"] = len(model.answered) - len(set(model.answered))

    def _check_patch(self, number: int, result: dict[str, Any]) -> None:
        patch = self._out / f"t{number}/changes.patch"
        if not patch.exists() or f"+{number}.\n" not in patch.read_text():
            self._report.counts["patches lost"] += 1
            self._report.problems.append(f"t{number} has no patch: {result.get('patch_error')}")
        elif [entry["path"] for entry in result["files_changed"]] != ["made"]:
            self._report.problems.append(f"t{number} has changed {result['files_changed']}")

    def _kill_after(self, prompt: str, session: str) -> None:
        """Kill the run of a task once, around the moment when it writes its files."""
        with self._model.lock:
            if prompt in self._killed:
                return
            self._killed.add(prompt)
            delay = self._random.uniform(0, _FILES_SECONDS)
        for pid in task_pids(self._batch):
            with suppress(OSError):
                links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
                for file in (link for link in links if link.endswith(f"{session}.jsonl")):
                    self._kill_between(pid, Path(file), self._out / f"t{prompt.split()[1][:-1]}/result.json", delay)

    def _kill_between(self, pid: int, session: Path, result: Path, delay: float) -> None:
        """Kill a run some time after its answer is on record."""
        until = time.monotonic() + _ANSWER_SECONDS
        while b'"task_complete"' not in session.read_bytes():
            if time.monotonic() > until:
                return
            time.sleep(_ANSWER_TICK)
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
        self._report.counts["kills after the files" if result.exists() else "kills between answer and files"] += 1

    def _kill_batch(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self._report.counts["kills of the batch"] += 1
        # Its runs end by themselves; what they have recorded by then counts.
        for path in self._out.glob("t*/result.json"):
            with suppress(ValueError, OSError):
                if json.loads(path.read_text())["status"] == "ok":
                    self._done_before.setdefault(f"task {path.parent.name[1:]}.", len(self._model.asked))

    def _kill_task(self, batch: int) -> None:
        if pids := task_pids(batch):
            with suppress(ProcessLookupError):
                os.kill(self._random.choice(pids), signal.SIGKILL)
                self._report.counts["kills of a task"] += 1

    def _measure(self, pid: int) -> None:
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            self._peak = max(self._peak, int(next(line for line in lines if "VmHWM" in line).split()[1]) / 1024)


def _repository(place: Place, number: int, writes: bool) -> dict[str, str]:
    return {"repo": str(place.repo)} if writes and number % 2 else {}


def task_pids(batch: int) -> list[int]:
    """The processes that run tasks of a batch: sessions of their own, forked by a child of it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found: list[int] = []
    for pid, parent in parents.items():
        with suppress(ProcessLookupError):
            if parents.get(parent) == batch and os.getsid(pid) == pid:
                found.append(pid)
    return found
