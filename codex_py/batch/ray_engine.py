"""The engine of a Ray cluster: each run is a Ray task, on a node that has this program and sees the same paths.

Ray places the tasks, repeats those whose node or worker is lost, and holds the resources; nothing of that is ours. A
run that is repeated goes on in its session.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from codex_py.batch.engine import WORKER, Job, OnLine
from codex_py.errors import UserError
from codex_py.text.sanitize import sanitize_line

_LOST_NODES: Final = 5
_STOP_SECONDS: Final = 8.0
# What belongs to a node and not to the batch.
_OF_NODES: Final = ("PATH", "LD_", "PYTHON", "RAY_", "VIRTUAL_ENV", "TMPDIR")


class RayEngine:
    """Runs jobs on the cluster of `RAY_ADDRESS`, or on the one of this machine; each takes `cpus` of a node."""

    def __init__(self, env: Mapping[str, str], cpus: float) -> None:
        """Connect. Raises `UserError` where there is no Ray, or no cluster."""
        try:
            self._ray: Any = import_module("ray")
        except ImportError as error:
            raise UserError("`--engine ray` needs Ray", hint="install `codex-py[ray]`") from error
        address = os.environ.get("RAY_ADDRESS") or "auto"
        try:
            self._ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            reason = sanitize_line(str(error).partition("\n")[0])[:200]
            raise UserError(f"no Ray cluster at `{address}`: {reason}", hint="`ray start --head` starts one") from error
        self._env = {name: value for name, value in env.items() if not name.startswith(_OF_NODES)}
        remote = self._ray.remote(num_cpus=cpus, max_retries=_LOST_NODES)
        self._run_job: Any = remote(run_on_node)

    async def run(self, job: Job, on_line: OnLine | None) -> int:
        """As `Engine` says. The lines of a run stay on its node until they are among its artifacts."""
        if on_line is not None:
            on_line(b'{"type":"item.started","item":{"type":"waiting for or running on Ray"}}')
        stdin = str(job.stdin) if job.stdin else os.devnull
        shows = on_line is None
        ref = self._run_job.remote(job.arguments, str(job.cwd), stdin, str(job.log), shows, self._env)
        try:
            return int(await ref)
        except self._ray.exceptions.RayError:
            # Ray has repeated it as often as it may.
            return -signal.SIGKILL
        finally:
            self._ray.cancel(ref)

    async def aclose(self) -> None:
        """As `Engine` says; the cluster stays."""
        self._ray.shutdown()


def run_on_node(
    arguments: tuple[str, ...], cwd: str, stdin: str, log: str, logs_output: bool, env: Mapping[str, str]
) -> int:
    """Run a job here, to its end; it ends when this process does."""
    command = (*WORKER, str(os.getpid()), *arguments)
    with Path(stdin).open("rb") as source, Path(log).open("ab") as messages:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **env},
            stdin=source,
            stdout=messages if logs_output else subprocess.DEVNULL,
            stderr=messages,
            start_new_session=True,
        )
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
