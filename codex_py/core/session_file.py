"""The file a session is written to: a new one, the one it goes on with, or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from codex_py import __version__
from codex_py.core.git_checkout import read_git_state
from codex_py.core.session_request import SessionRequest
from codex_py.protocol.encoding import timestamp
from codex_py.rollout.format import SessionMeta, SubagentSource
from codex_py.rollout.recorder import NullRecorder, Recorder, RolloutRecorder

if TYPE_CHECKING:
    from codex_py.rollout.reader import StoredSession


class SessionFile:
    """Opens the recorders of the sessions of one request: that of the session, and those of its agents."""

    def __init__(self, request: SessionRequest, stored: StoredSession | None) -> None:
        self._request = request
        self._stored = stored

    @property
    def home(self) -> Path:
        return self._request.home

    def open(self, thread_id: str, *, instructions: str, warn: Callable[[str], None]) -> Recorder:
        """The recorder of the session itself."""
        request, stored = self._request, self._stored
        if request.ephemeral:
            return NullRecorder()
        inherited = None
        if stored is not None:
            if not request.forks:
                return RolloutRecorder.resume(stored, warn=warn)
            from codex_py.core.resume import inherited_from  # the seam: only to fork

            inherited = inherited_from(stored)
        meta = self._meta(thread_id, instructions).replace(forked_from_id=stored.meta.id if stored else None)
        return RolloutRecorder.create(request.home, meta, warn=warn, inherited=inherited)

    def open_agent(
        self,
        thread_id: str,
        source: SubagentSource,
        *,
        stored: StoredSession | None,
        instructions: str,
        warn: Callable[[str], None],
    ) -> Recorder:
        """The recorder of an agent of the session; with `stored` it goes on with an earlier one."""
        if self._request.ephemeral:
            return NullRecorder()
        if stored is not None:
            return RolloutRecorder.resume(stored, warn=warn)
        meta = self._meta(thread_id, instructions).replace(source="subagent", subagent=source)
        return RolloutRecorder.create(self._request.home, meta, warn=warn)

    def _meta(self, thread_id: str, instructions: str) -> SessionMeta:
        request = self._request
        return SessionMeta(
            id=thread_id,
            timestamp=timestamp(),
            cwd=str(request.cwd),
            originator=request.originator,
            cli_version=__version__,
            source=request.source or ("cli" if request.can_ask else "exec"),
            model_provider=request.loaded.config.model_provider,
            base_instructions=instructions,
            git=read_git_state(request.cwd),
        )
