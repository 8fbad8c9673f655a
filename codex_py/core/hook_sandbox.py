"""The sandbox of a project's hooks: that of the session, as its settings are when the hook starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from codex_py.config.load import LoadedConfig
from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.errors import CodexError
from codex_py.hooks.command import Start
from codex_py.hooks.engine import Confine
from codex_py.protocol.policy import SandboxPolicy

_OUTSIDE = "`codex-py hooks trust --outside` lets one run without a sandbox"


class HookSandbox(NamedTuple):
    """What holds a project's hooks, and which real paths the commands of the session may write."""

    confine: Confine
    may_write: Callable[[Path], bool]


def hook_sandbox(
    loaded: LoadedConfig, *, home: Path, env: Mapping[str, str]
) -> Callable[[SandboxPolicy, Path], HookSandbox]:
    """What gives the sandbox for a policy and a session's folder. Nothing is tried out before the first hook."""
    sandbox = ProgramSandbox(loaded, home=home, env=env)

    def confine(start: Start, policy: SandboxPolicy, cwd: Path) -> Start:
        try:
            wrapped = sandbox.wrap(start.argv, policy=policy, cwd=cwd, workdir=start.cwd)
        except CodexError as error:
            raise CodexError(f"is not run: {error}; {_OUTSIDE}") from error
        return Start(
            wrapped.argv,
            start.cwd,
            {**start.env, **wrapped.env},
            wrapped.fds,
            wrapped.release,
            wrapped.cleanup,
            wrapped.has_begun,
        )

    return lambda policy, cwd: HookSandbox(
        partial(confine, policy=policy, cwd=cwd), partial(sandbox.may_write, policy=policy, cwd=cwd)
    )
