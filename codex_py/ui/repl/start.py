"""What a terminal session starts with: where, under which settings, and what is asked of it. Cheap to import."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from codex_py.config.load import ConfigRequest, LoadedConfig
from codex_py.config.tui import Tui
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.core.build import ResumeTarget
    from codex_py.core.session import Session


class Place(Value):
    """Where a terminal session works and with which settings; `request` reads them anew. `home` is CODEX_HOME."""

    home: Path
    cwd: Path
    env: Mapping[str, str]
    loaded: LoadedConfig
    tui: Tui
    request: ConfigRequest


class Errand(Value):
    """What to begin with. `verb` is `resume` or `fork`: of the `session` that is named, the last one, or one to choose.

    `anywhere` takes sessions of every folder into account; a fork leaves at the end of turn `turn`.
    """

    prompt: str = ""
    images: tuple[Path, ...] = ()
    verb: str | None = None
    session: str | None = None
    last: bool = False
    anywhere: bool = False
    turn: int | None = None


class Host(Protocol):
    """Who starts this: knows the command line."""

    @property
    def is_ephemeral(self) -> bool:
        """Whether no file of a session is kept."""
        ...

    def place(self) -> Place:
        """The settings as they are now."""
        ...

    def use(self, provider: str) -> None:
        """Ask another provider from now on: `offline`, `ollama` or `lmstudio`."""
        ...

    def only_look(self) -> None:
        """Let commands only read from now on, whatever settings and flags say."""
        ...

    def open(self, place: Place, target: ResumeTarget | None) -> AbstractAsyncContextManager[Session]:
        """A session, closed at the end; raise `UserError` when there can be none."""
        ...
