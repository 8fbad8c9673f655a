"""Before there is a session: whether the folder is trusted, and how to reach a model when nothing is set up."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from codex_py.config.edit import set_value, trust_project
from codex_py.errors import UserError
from codex_py.ui.repl.panels.first_run import KEY_FORM, ask_for_trust, welcome_sheet
from codex_py.ui.repl.panels.forms import FormAsker, Option, Sheet
from codex_py.ui.repl.start import LaunchContext, LaunchHost

RunProgram: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]

_LOGIN: Final = (sys.executable, "-m", "codex_py.cli.main", "login")
_LOCAL: Final = Sheet(
    title="Which local server?",
    subject=(),
    options=(
        Option("o", "Ollama", "ollama"),
        Option("l", "LM Studio", "lmstudio"),
        Option("b", "Back", ""),
    ),
    refusal="",
)


async def settle_trust(asker: FormAsker, host: LaunchHost, launch: LaunchContext) -> LaunchContext | None:
    """The settings that count once it is known whether the folder is trusted; None when the user wants to leave.

    The answer is stored, so that this is asked once; if it cannot be stored it counts for now.
    """
    if launch.loaded.trust != "unknown":
        return launch
    answer = await ask_for_trust(
        asker, launch.loaded, cwd=launch.cwd, home=launch.home, user_home=launch.env.get("HOME", "")
    )
    if answer is None:
        return None
    if answer:
        await asyncio.to_thread(trust_project, launch.home, launch.cwd)
    else:
        root = launch.loaded.project_root or launch.cwd
        set_value(launch.home / "config.toml", ("projects", str(root), "trust_level"), "untrusted")
        host.only_look()
    return host.read_context()


async def reach_a_model(asker: FormAsker, host: LaunchHost, run_program: RunProgram, *, over_ssh: bool) -> bool:
    """Let the user choose how to reach one, and set that up; False when they want to leave."""
    while True:
        match await asker.choose(welcome_sheet(over_ssh=over_ssh)):
            case "quit":
                return False
            case "offline":
                host.use("offline")
                return True
            case "local":
                if server := await asker.choose(_LOCAL):
                    host.use(server)
                    return True
            case "key":
                key = await asker.enter(KEY_FORM)
                if key is not None:
                    await _save_key(key)
                    return True
            case "browser":
                if await run_program(_LOGIN) == 0:
                    return True
            case "code":
                if await run_program([*_LOGIN, "--device-auth"]) == 0:
                    return True


async def _save_key(key: str) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *_LOGIN, "--with-api-key", stdin=pipe, stdout=asyncio.subprocess.DEVNULL, stderr=pipe
    )
    _, complaint = await process.communicate(key.encode() + b"\n")
    if process.returncode:
        raise UserError(f"the key could not be saved: {complaint.decode(errors='replace').strip()[:500]}")
