"""Before there is a session: whether the folder is trusted, and how to reach a model when nothing is set up."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from codex_py.config.edit import set_value, trust_project
from codex_py.errors import UserError
from codex_py.ui.repl.panels.first_run import KEY_FORM, ask_for_trust, welcome_sheet
from codex_py.ui.repl.panels.forms import Asker, Option, Sheet
from codex_py.ui.repl.start import Host, Place

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


async def settle_trust(asker: Asker, host: Host, place: Place) -> Place | None:
    """The settings that count once it is known whether the folder is trusted; None when the user wants to leave.

    The answer is kept, so that this is asked once; where it cannot be kept it counts for now.
    """
    if place.loaded.trust != "unknown":
        return place
    answer = await ask_for_trust(
        asker, place.loaded, cwd=place.cwd, home=place.home, user_home=place.env.get("HOME", "")
    )
    if answer is None:
        return None
    if answer:
        await asyncio.to_thread(trust_project, place.home, place.cwd)
    else:
        root = place.loaded.project_root or place.cwd
        set_value(place.home / "config.toml", ("projects", str(root), "trust_level"), "untrusted")
        host.only_look()
    return host.place()


async def reach_a_model(asker: Asker, host: Host, run_program: RunProgram, *, over_ssh: bool) -> bool:
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
                    await _keep_key(key)
                    return True
            case "browser":
                if await run_program(_LOGIN) == 0:
                    return True
            case "code":
                if await run_program([*_LOGIN, "--device-auth"]) == 0:
                    return True


async def _keep_key(key: str) -> None:
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(
        *_LOGIN, "--with-api-key", stdin=pipe, stdout=asyncio.subprocess.DEVNULL, stderr=pipe
    )
    _, complaint = await running.communicate(key.encode() + b"\n")
    if running.returncode:
        raise UserError(f"the key could not be kept: {complaint.decode(errors='replace').strip()[:500]}")
