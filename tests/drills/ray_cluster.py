"""A batch on a Ray cluster of this machine: a head without tasks and two nodes, one of which is killed on the way."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.drills.batch import BatchDrill
from tests.drills.report import Report

_RAY: Final = str(Path(sys.executable).with_name("ray"))
_SETTINGS: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"}
_STORE: Final = str(100 * 1024 * 1024)


class RayCluster:
    """`address` is what `RAY_ADDRESS` takes; `nodes` are the processes that hold the two nodes."""

    def __init__(self, root: Path) -> None:
        port = _free_port()
        self.address: Final = f"127.0.0.1:{port}"
        self._env: Final = {**os.environ, **_SETTINGS}
        # The paths of its sockets have room for a hundred characters.
        head = ("--head", f"--port={port}", f"--temp-dir={root / 'ray'}", "--num-cpus=0", "--include-dashboard=false")
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start(*head)
            self.nodes: Final = [self._start(f"--address={self.address}", "--num-cpus=2") for _ in range(2)]
        except BaseException:
            self.close()
            raise

    def kill_node(self, number: int) -> None:
        """Lose a node at once, with all that runs there."""
        _kill_tree(self.nodes[number].pid)

    def close(self) -> None:
        """End the cluster."""
        for process in reversed(self._processes):
            _kill_tree(process.pid)
            process.wait()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [_RAY, "start", *arguments, "--block", "--node-ip-address=127.0.0.1", f"--object-store-memory={_STORE}"],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._processes.append(process)
        assert process.stdout is not None
        seen: list[bytes] = []
        for line in process.stdout:
            seen.append(line)
            # The last line before it waits.
            if b"--block" in line:
                return process
        raise RuntimeError(f"Ray has not started:\n{b''.join(seen).decode(errors='replace')}")


def ray_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """`rounds` tasks on the cluster; a third of the way one of its two nodes is lost."""
    with ray_cluster(root) as cluster:
        drill = BatchDrill(root, rounds, seed, "--engine", "ray", RAY_ADDRESS=cluster.address)
        report = drill.play([rounds // 3], lambda: cluster.kill_node(0))
    report.counts["lost nodes"] = 1
    return report


@contextmanager
def ray_cluster(root: Path) -> Generator[RayCluster]:
    """A cluster for as long as the block lasts."""
    cluster = RayCluster(root)
    try:
        yield cluster
    finally:
        cluster.close()


def _kill_tree(top: int) -> None:
    """Kill a process and everything it has started, even if that is in a session of its own."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    waiting = [top]
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
