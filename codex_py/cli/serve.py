"""Runs the servers for editors and SDKs, and opens their sessions with the flags of the command line."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.checkpoints.rewind import describe_files
from codex_py.checkpoints.stored import rewind_stored
from codex_py.cli.options import request_for
from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.core.build import open_session
from codex_py.core.session import Session
from codex_py.core.session_request import SessionRequest
from codex_py.log import report_crash
from codex_py.paths import codex_home
from codex_py.rollout.transcript import RewindChoice
from codex_py.server.threads import SESSION_SOURCE, Opening, RollbackOutcome

ReportCrash: TypeAlias = Callable[[BaseException], str]

_REQUESTER: Final = "the client's request"


class ServerHost:
    """The host of a server that was started with these flags, which apply to every session."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.home = codex_home(os.environ)
        self.env: Mapping[str, str] = os.environ

    def request(self, cwd: Path, settings: Mapping[str, Any]) -> ConfigRequest:
        """The inputs from which the configuration of a directory is loaded."""
        return request_for(self._options, self.home, cwd, chosen=settings).replace(flags_from=_REQUESTER)

    def load(self, cwd: Path, settings: Mapping[str, Any]) -> LoadedConfig:
        """The configuration in force for a directory. Raises `UserError`."""
        return load_config(self.request(cwd, settings))

    def roll_back(self, thread_id: str, choice: RewindChoice) -> RollbackOutcome:
        """Go back in a session that is closed, or see what would happen. Raises `UserError`."""
        notes: list[str] = []
        done = rewind_stored(self.home, thread_id, choice, env=self.env, warn=notes.append)
        message = done.conversation.message if done.conversation else ""
        files = describe_files(done.cwd, done.files)
        return RollbackOutcome(files, tuple(done.lines()), message, (*done.notices(), *notes))

    def open(self, opening: Opening, loaded: LoadedConfig) -> AbstractAsyncContextManager[Session]:
        """A session whose questions are answered, closed at the end. Raises `UserError`."""
        request = SessionRequest(
            loaded=loaded,
            home=self.home,
            cwd=opening.cwd,
            env=self.env,
            originator=opening.originator,
            approval=loaded.config.approval_policy,
            ephemeral=opening.ephemeral,
            resume=opening.target,
            extra_roots=opening.extra_roots,
            can_ask=True,
            source=SESSION_SOURCE,
            instructions=opening.instructions,
            more_servers=opening.servers,
        )
        return open_session(request)


def serve(options: argparse.Namespace, run: Callable[[ServerHost, ReportCrash], Coroutine[Any, Any, int]]) -> int:
    """Run a server for the client that started this program; gives back the exit status."""
    # The objects of start-up stay; from here on the server may run for days.
    gc.freeze()
    gc.enable()
    host = ServerHost(options)
    return asyncio.run(run(host, lambda error: report_crash(host.home / "log", error)))
