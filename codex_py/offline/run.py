"""Running the commands a prompt names."""

from __future__ import annotations

from codex_py.offline.failures import looks_like_test_run, read_verdict
from codex_py.offline.intent import Run
from codex_py.offline.result import Result
from codex_py.offline.script import Command, Script, ask
from codex_py.offline.text import excerpt, ticked
from codex_py.offline.verdict import verdict_lines

_PATIENCE = 30_000


def run(wish: Run, cwd: str | None) -> Script:
    """Run each command in its turn; the first that fails ends the row."""
    reports: list[str] = []
    for position, command in enumerate(wish.commands):
        result = yield from ask(Command(command, wish.workdir, patience=_PATIENCE))
        reports.append(report_command(command, result, cwd))
        left = len(wish.commands) - position - 1
        if not result.ok and left:
            reports.append(f"Not run after that: {', '.join(ticked(cmd) for cmd in wish.commands[position + 1 :])}.")
            break
    return "\n\n".join(reports)


def report_command(command: str, result: Result, cwd: str | None) -> str:
    """Exit code, output, and what can be read out of it."""
    shown = ticked(command) if "\n" not in command else "The block"
    if result.running is not None:
        head = f"{shown} is still running (session {result.running}); so far it printed:"
    elif result.ok:
        head = f"{shown} finished with exit code 0"
    else:
        head = f"{shown} failed with exit code {result.exit_code}"
    output = excerpt(result.text)
    if result.running is None:
        head += ":" if output else " and printed nothing."
    parts = [head, output] if output else [head]
    if looks_like_test_run(command):
        parts += verdict_lines(read_verdict(result.text, cwd))
    if hint := hint_for(result):
        parts.append(hint)
    return "\n\n".join(part for part in parts if part)


def hint_for(result: Result) -> str:
    """What to do about a failure whose cause is plain; '' when there is nothing to say."""
    if result.ok or result.running is not None:
        return ""
    if result.denied:
        return (
            "The sandbox refused something this needs; `-s workspace-write` allows writing below the working directory."
        )
    if result.exit_code == 127:
        return "The shell did not find the program: is it installed, and on `PATH`?"
    return ""
