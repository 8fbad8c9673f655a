"""What a terminal session starts with: the directory, the settings, the first prompt and its host. Cheap to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from codex_py.config.load import ConfigRequest, LoadedConfig
from codex_py.config.tui import Tui
from codex_py.core.session_request import ResumeTarget, SessionRequest
from codex_py.protocol.policy import SandboxMode
from codex_py.protocol.value import Value
from codex_py.rollout.transcript import RewindChoice


class LaunchContext(Value):
    """The directory and settings of a terminal session; `request` reads the settings again. `home` is CODEX_HOME."""

    home: Path
    cwd: Path
    env: Mapping[str, str]
    loaded: LoadedConfig
    tui: Tui
    request: ConfigRequest

    @property
    def accepts_full_access(self) -> bool:
        """Whether the user does not want to be asked about sessions without a sandbox."""
        return self.loaded.config.notice.get("hide_full_access_warning") is True


class LaunchOptions(Value):
    """What to begin with. `verb` is `resume` or `fork`: of the `session` that is named, the last one, or one to choose.

    `anywhere` includes the sessions of every directory; a fork leaves at the end of turn `turn`. `shown` stands for a
    prompt with an attachment.
    """

    prompt: str = ""
    images: tuple[Path, ...] = ()
    verb: str | None = None
    session: str | None = None
    last: bool = False
    anywhere: bool = False
    turn: int | None = None
    shown: str = ""


class RewindTurn(Value):
    """A turn that can be gone back before; `files` says in words what it changed, and is empty for nothing."""

    number: int
    time: str
    message: str
    files: str


class RewindPreview(Value):
    """The effect of a rewind, in lines; `diffs` are those of the files in conflict, of which there are `conflicts`."""

    lines: tuple[str, ...]
    diffs: tuple[str, ...]
    conflicts: int


class Rewound(Value):
    """The result of a rewind, in lines; `message` is the user's message in the turn it went back before."""

    lines: tuple[str, ...]
    message: str = ""


class RewindHost(Protocol):
    """Knows the states that a session can go back to. Its methods block: for a thread. They raise `UserError`."""

    def turns(self, thread_id: str) -> Sequence[RewindTurn]:
        """The turns of a session, the first one first."""
        ...

    def preview(self, thread_id: str, request: RewindChoice) -> RewindPreview:
        """The effect a rewind would have; nothing in the workspace is written."""
        ...

    def rewind(self, thread_id: str, request: RewindChoice) -> Rewound:
        """Rewind a session that is closed."""
        ...


class LaunchHost(Protocol):
    """Who starts this: knows the command line."""

    @property
    def is_ephemeral(self) -> bool:
        """Whether no session file is written."""
        ...

    def read_context(self) -> LaunchContext:
        """The settings as they are now."""
        ...

    def use(self, provider: str, model: str | None = None) -> None:
        """Ask another provider from now on, `offline` or a configured one, for `model` or for its usual one."""
        ...

    @property
    def waives_sandbox(self) -> bool:
        """Whether a flag named dangerous turns the sandbox off: it counts as approval."""
        ...

    def use_sandbox(self, mode: SandboxMode) -> None:
        """Run commands in this sandbox from now on, whatever settings and flags say."""
        ...

    def rewinds(self) -> RewindHost:
        """The host that rewinds stored sessions."""
        ...

    def prepare(self, launch: LaunchContext, target: ResumeTarget | None) -> SessionRequest:
        """The request for the session that is opened next; from now on the process may last for hours."""
        ...
