"""`notify`: a program of the user's that is run when a turn is completed."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import UserError
from codex_py.programs import program_finder
from codex_py.protocol import events
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.policy import SandboxPolicy, extra_roots
from codex_py.text.files import os_reason

# The kernel takes no argument of 128 KiB.
_MAX_BYTES: Final = 120 * 1024


class NotifyingSession(NamedTuple):
    """The session whose turns are reported. `client` is the front end's name."""

    thread_id: str
    cwd: Path
    client: str
    policy: Callable[[], SandboxPolicy]


class Notifier:
    """A listener that starts the program with the turn as one JSON argument, and does not wait for it.

    The argument is the one Codex CLI gives, key for key; long texts in it are cut in the middle. `warn` hears of a
    program that cannot be started.
    """

    def __init__(
        self, command: Sequence[str], warn: Callable[[str], None], session: NotifyingSession, env: Mapping[str, str]
    ) -> None:
        self._command = tuple(command)
        self._warn = warn
        self._session = session
        self._env = dict(env)
        self._messages: tuple[str, ...] = ()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.TurnStarted(_, messages):
                self._messages = messages
            case events.TurnCompleted(turn_id, last_message):
                self._start(_argument(self._session, turn_id, self._messages, last_message))
            case _:
                pass

    def _start(self, argument: str) -> None:
        try:
            cwd = self._session.cwd
            programs = program_finder(self._env, cwd, extra_roots(self._session.policy()))
            program = programs.find_chosen(self._command[0], "`notify`")
            # A session of its own: what ends this program, or its terminal, does not end the other.
            started = subprocess.Popen(
                [program, *self._command[1:], argument],
                cwd=cwd,
                # Python would load modules from the project, where commands may write.
                env={**self._env, "PATH": programs.trusted_path(), "PYTHONSAFEPATH": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except UserError as error:
            self._warn(str(error))
            return
        except (OSError, ValueError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else str(error)
            self._warn(f"cannot start `{self._command[0]}`, the program of `notify`: {reason}")
            return
        # Somebody has to take note of its end, or it stays in the table of processes.
        threading.Thread(target=started.wait, daemon=True).start()


def _argument(session: NotifyingSession, turn_id: str, messages: Sequence[str], answer: str | None) -> str:
    turn: dict[str, Any] = {
        "type": "agent-turn-complete",
        "thread-id": session.thread_id,
        "turn-id": turn_id,
        "cwd": str(session.cwd),
        "client": session.client,
        "input-messages": list(messages),
        "last-assistant-message": answer,
    }
    encoded = encode_json(turn)
    if len(encoded) > _MAX_BYTES:
        from codex_py.text.shorten import shortened  # the seam: hardly any turn is so long

        encoded = encode_json(shortened(turn, _MAX_BYTES, encode_json))
    return encoded.decode()
