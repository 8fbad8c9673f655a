#!/usr/bin/env python3
"""Whether a long session stays as quick as a short one.

    scripts/bench_turns.py [--turns N]

One `exec` run of many requests against a server of its own, with a call in between that does next to nothing. What is
measured is the time from the last byte of an answer to the head of the next request, and the CPU the program takes
for it, which other work on the machine does not change. The medians of the first and of the last fifty are printed; the
exit status is 1 when the last take more than half as much CPU again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from bench_paired import ROOT, Program, exec_arguments, write_config

SAMPLE = 50
# What may change between the ends of a run on a machine that does nothing else.
SLACK = 1.5


class Gap(NamedTuple):
    """Seconds between two moments, or at one of them."""

    wall: float
    cpu: float


class Handler(BaseHTTPRequestHandler):
    """Asks for a call of a tool that does nothing, so often, and says done; notes the gaps in between."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    turns = 0
    gaps: list[Gap]
    answered: Gap | None = None
    pid = 0

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        kind = type(self)
        arrived = Gap(time.perf_counter(), _cpu_of(kind.pid))
        if kind.answered is not None:
            kind.gaps.append(Gap(arrived.wall - kind.answered.wall, arrived.cpu - kind.answered.cpu))
        self.rfile.read(int(self.headers["content-length"]))
        item = _call(len(kind.gaps)) if len(kind.gaps) < kind.turns else _message()
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        stream = [
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
        ]
        body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in stream)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        kind.answered = Gap(time.perf_counter(), _cpu_of(kind.pid))
        self.wfile.flush()


def _cpu_of(pid: int) -> float:
    """Seconds of CPU that all threads of a process have had."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat") if pid else ()
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _call(number: int) -> dict[str, Any]:
    plan = {"plan": [{"step": f"step {number}: " + "x" * 2000, "status": "in_progress"}]}
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": "update_plan",
        "arguments": json.dumps(plan),
    }


def _message() -> dict[str, Any]:
    content = [{"type": "output_text", "text": "done", "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


def measure(path: str, turns: int) -> list[Gap]:
    """The gaps of one run, in their order."""
    handler = type("CountingHandler", (Handler,), {"turns": turns, "gaps": list[Gap]()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(prefix=".codex-bench-", dir=Path.home()) as directory:
            program = Program("ours", path, Path(directory) / "ours" / ".codex")
            url = f"http://127.0.0.1:{server.server_port}/v1"
            write_config(program, url, url)
            cwd = Path(directory) / "repository"
            subprocess.run(["git", "init", "-q", str(cwd)], check=True)
            argv = [program.path, *exec_arguments("-s", "danger-full-access", "work")]
            with subprocess.Popen(
                argv,
                cwd=cwd,
                env=program.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                handler.pid = process.pid
    finally:
        server.shutdown()
        server.server_close()
    return handler.gaps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", default=str(ROOT / ".venv/bin/codex-py"))
    parser.add_argument("--turns", type=int, default=500)
    options = parser.parse_args()
    gaps = measure(options.ours, options.turns)
    # The first ones load what the first call needs.
    first, last = gaps[5 : SAMPLE + 5], gaps[-SAMPLE:]
    print(f"{len(gaps) + 1} requests, per request: first {SAMPLE}, last {SAMPLE}")
    for name in ("wall", "cpu"):
        before, after = (statistics.median(getattr(gap, name) for gap in some) for some in (first, last))
        print(f"{name:<5} {before * 1000:8.2f} ms {after * 1000:8.2f} ms   x{after / before:.2f}", flush=True)
    if after > before * SLACK:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
