"""The commands that still run in the background: looked at, and stopped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from codex_py.paths import short_path
from codex_py.protocol.live_process import LiveProcess
from codex_py.text.shell_line import script_and_shell
from codex_py.ui.repl.panels.forms import FormAsker, ListEntry, ListForm, Option, Sheet, TextLine

_SHOWN_LINES: Final = 4


async def manage_processes(
    asker: FormAsker,
    processes: Callable[[], tuple[LiveProcess, ...]],
    stop: Callable[[int], Awaitable[bool]],
    *,
    user_home: str,
) -> None:
    """Show what runs, until it is closed or nothing runs any more; one that is chosen is stopped after a yes."""
    while (chosen := await asker.pick(running_listing(processes(), user_home=user_home))) is not None:
        process = next((process for process in processes() if process.id == chosen), None)
        if process is not None and await asker.choose(_stop_sheet(process)):
            await stop(chosen)
            if not processes():
                return


def running_listing(processes: tuple[LiveProcess, ...], *, user_home: str) -> ListForm[int]:
    """The commands by their id, the oldest first."""
    return ListForm(
        title="Running in the background",
        entries=tuple(_entry(process, user_home) for process in processes),
        searchable=False,
        empty="nothing runs in the background",
        enter="stop it",
    )


def running_time(seconds: float) -> str:
    """A duration in its two largest units: `42s`, `3m 05s`, `2h 07m`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def _entry(process: LiveProcess, user_home: str) -> ListEntry[int]:
    command = " ".join(script_and_shell(process.command)[0].split())
    title = f"{process.agent}: {command}" if process.agent else command
    facts = [
        f"session {process.id}",
        short_path(process.cwd, user_home),
        "terminal" if process.tty else "",
    ]
    facts.append("outside the sandbox" if process.outside else "")
    tail = "\n".join(process.tail.rstrip().split("\n")[-_SHOWN_LINES:])
    details = [TextLine(" · ".join(filter(None, facts)), "menu.note"), TextLine(tail or "(no output yet)", "output")]
    return ListEntry(process.id, title, running_time(process.seconds), tuple(details), mark="●")


def _stop_sheet(process: LiveProcess) -> Sheet[bool]:
    return Sheet(
        title="Stop this command?",
        subject=(TextLine(script_and_shell(process.command)[0], "strong"),),
        facts=(TextLine("It is killed, with all it has started.", "menu.note"),),
        options=(Option("y", "Yes, stop it", True), Option("n", "No", False)),
        refusal=False,
        default=1,
    )
