"""Where `exec` keeps its sessions (`--session-dir`), and where the directories that they name are now (`--cwd-map`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.checkpoints.workspace_patch import mapped_path
from codex_py.core.build import SessionRequest
from codex_py.core.session_settings import choose_policy
from codex_py.errors import UsageError
from codex_py.paths import is_directory, make_private_dir, real_path, user_home
from codex_py.protocol.policy import DangerFullAccess
from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.sandbox.policy import writable_roots
from codex_py.text.files import os_reason

# No program starts without these.
_SYSTEM: Final = ("/bin", "/dev", "/etc", "/lib", "/proc", "/usr")


def read_cwd_map(arguments: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The directories of `--cwd-map`: before, and now. Raises `UsageError`."""
    pairs: list[tuple[str, str]] = []
    for argument in arguments:
        old, equals, new = argument.partition("=")
        if not equals or not old.startswith("/"):
            raise UsageError(f"`--cwd-map` needs OLD=NEW, not `{argument}`", hint="OLD is an absolute path")
        if not is_directory(Path(new)) or not new:
            raise UsageError(f"`--cwd-map` names `{new}`, which is not a directory here")
        pairs.append((os.path.normpath(old), real_path(new)))
    return tuple(pairs)


def place_session(session: SessionRequest, chosen: str | None, moved: Sequence[tuple[str, str]]) -> SessionRequest:
    """The request with the sessions of `--session-dir`, which commands do not see, and after a move."""
    if chosen is not None:
        directory = _session_directory(chosen, session)
        sandbox = session.loaded.config.sandbox
        hidden = sandbox.replace(deny_read=(*sandbox.deny_read, str(directory)))
        loaded = session.loaded.replace(config=session.loaded.config.replace(sandbox=hidden))
        session = session.replace(session_dir=directory, loaded=loaded)
    target = session.resume
    if target is not None and target.thread_id is None and not target.any_directory and moved:
        before = mapped_path(str(session.cwd), [(new, old) for old, new in moved])
        found = list_sessions(session.state_home, SessionQuery(session.cwd))
        if not found:
            session = session.replace(resume=target.replace(cwd=Path(before)))
    return session


def _session_directory(chosen: str, session: SessionRequest) -> Path:
    if not chosen:
        raise UsageError("`--session-dir` is empty", hint="name a directory")
    directory = Path(real_path(Path(chosen).absolute()))
    found = (Path(path) for path in session.env.get("PATH", "").split(":") if path.startswith("/"))
    for needed in (session.cwd, user_home(session.env), *_SYSTEM, *found):
        if directory in (real := Path(real_path(needed)), *real.parents):
            raise UsageError(
                f"cannot keep sessions in `{chosen}`: commands could not read `{needed}`, as they may read no session",
                hint="name a directory of its own",
            )
    policy = choose_policy(session.loaded, session.extra_roots)
    if not isinstance(policy, DangerFullAccess):
        roots = [root.path for root in writable_roots(policy, session.cwd, session.env, home=session.home)]
        holder = next((root for root in roots if directory == root or root in directory.parents), None)
        if holder is not None:
            raise UsageError(
                f"cannot keep sessions in `{chosen}`: commands may write to `{holder}`", hint="name another directory"
            )
    try:
        make_private_dir(directory)
    except OSError as error:
        raise UsageError(f"cannot keep sessions in `{chosen}`: {os_reason(error)}") from error
    if not is_directory(directory) or not os.access(directory, os.W_OK | os.X_OK):
        raise UsageError(f"cannot keep sessions in `{chosen}`: it is not a directory that you may write to")
    return directory
