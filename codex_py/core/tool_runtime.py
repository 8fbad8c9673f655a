"""What the tools of a session work with. Imported when the first call is on its way: many a session makes none."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.core.approval_rules import load_approvals
from codex_py.core.command_env import environment_rules, key_names
from codex_py.core.session_sandbox import allowances_without_effect, make_sandbox
from codex_py.process.env import withheld_by_value
from codex_py.process.manager import ProcessManager
from codex_py.process.withheld import WithheldEnv
from codex_py.protocol.policy import SandboxPolicy
from codex_py.protocol.value import Value
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.tools.grants import Approvals


class ToolRuntime(Value):
    """Where commands run and live, and what the user has allowed and forbidden of them.

    `allow_partial` is that a sandbox will do which cannot hold everything; `warnings` are about its settings.
    """

    sandbox: Sandbox
    processes: ProcessManager
    approvals: Approvals
    allow_partial: bool = False
    warnings: tuple[str, ...] = ()

    def prepare(self, policy: SandboxPolicy, cwd: Path) -> None:
        """Find out which sandbox works here. One that does not work is reported by the call that needs it."""
        with contextlib.suppress(SandboxUnavailable):
            self.sandbox.prepare(policy, cwd)


def find_withheld_env(config: Config, env: Mapping[str, str]) -> WithheldEnv:
    """What the profiles of shells must not bring back of the user's variables."""
    rules = environment_rules(config)
    return WithheldEnv(rules, key_names(config) | {*withheld_by_value(env, rules)})


def load_tool_runtime(
    loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str], ignore_rules: bool = False
) -> ToolRuntime:
    """Reads the `.rules` files; `ignore_rules` leaves them out."""
    return ToolRuntime(
        sandbox=make_sandbox(loaded, home=home, env=env),
        processes=ProcessManager(find_withheld_env(loaded.config, env)),
        approvals=load_approvals(loaded, home=home, cwd=cwd, ignore_rules=ignore_rules),
        allow_partial=loaded.config.sandbox.allow_partial,
        warnings=tuple(allowances_without_effect(loaded, home=home, env=env)),
    )
