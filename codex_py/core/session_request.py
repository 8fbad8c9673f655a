"""The request of a front end that opens a session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codex_py.config.load import LoadedConfig
from codex_py.protocol.policy import ApprovalPolicy
from codex_py.protocol.usage import BudgetLimits
from codex_py.protocol.value import Value


class ResumeTarget(Value):
    """Which stored session to go on with: by id or name, else the newest one, of this directory or of any.

    With `fork` a new session goes on in its place, from the end of turn `turn` (counted from 1), else of the last one.
    `cwd` is the directory that the newest session is looked for in, in place of that of the request.
    """

    thread_id: str | None = None
    any_directory: bool = False
    fork: bool = False
    turn: int | None = None
    cwd: Path | None = None


class SessionRequest(Value):
    """The request of a front end. `cwd` is a real path; `extra_roots` are writable too with workspace-write.

    `can_ask` says that the front end answers the session's questions; `ignore_rules` leaves `.rules` files out.
    Where it does not, `hooked_approval` takes the place of `approval` as soon as hooks can answer for the user.
    With `trusts_hooks` a project's hooks run without approval.
    `more_servers` are tables of MCP servers that the front end brings, for this session alone.
    `source` is the kind of program that session lists show, `instructions` stand in place of the base instructions.
    With `install_dependencies` MCP servers that named skills need are added without a question. `follows` says that the
    user has left another session for this one. `limits` are what this run may spend. `thread_id` is the id of a new
    session; without it one is made. `session_dir` has what is kept of sessions, in place of `home`.
    """

    loaded: LoadedConfig
    home: Path
    cwd: Path
    env: Mapping[str, str]
    originator: str
    approval: ApprovalPolicy
    hooked_approval: ApprovalPolicy | None = None
    ephemeral: bool = False
    resume: ResumeTarget | None = None
    extra_roots: tuple[Path, ...] = ()
    can_ask: bool = False
    ignore_rules: bool = False
    trusts_hooks: bool = False
    install_dependencies: bool = False
    follows: bool = False
    source: str = ""
    instructions: str | None = None
    more_servers: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    limits: BudgetLimits = BudgetLimits()
    thread_id: str = ""
    session_dir: Path | None = None

    @property
    def state_home(self) -> Path:
        """Where sessions, checkpoints, logs and the ledger of skills are."""
        return self.session_dir or self.home

    @property
    def forks(self) -> bool:
        """Whether a new session goes on in the place of the stored one."""
        return self.resume is not None and self.resume.fork
