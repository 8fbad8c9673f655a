"""`exec` for a person: the work as it goes on stderr. The answer itself goes to stdout, elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from codex_py.exec.jsonl import describe_retry
from codex_py.protocol import events
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.text.sanitize import sanitize, sanitize_line

_OUTPUT_LINES: Final = 24
_RULE: Final = "--------"
_BOLD: Final = "1"
_DIM: Final = "2"
_RED: Final = "31"
_GREEN: Final = "32"
_YELLOW: Final = "33"
_MAGENTA: Final = "35"
_CYAN: Final = "36"
_STEP_MARKS: Final = {"completed": ("[x]", _GREEN), "in_progress": ("[>]", _YELLOW), "pending": ("[ ]", _DIM)}


class HumanPrinter:
    """A listener that writes lines through `write`. Everything from outside is made harmless first."""

    def __init__(self, write: Callable[[str], None], *, prompt: str, version: str, color: bool) -> None:
        self._write = write
        self._prompt = prompt
        self._version = version
        self._color = color
        self._last_shown: str | None = None
        self._last_retry = ""

    def __call__(self, event: events.Event) -> None:
        if not isinstance(event, events.Retrying):
            self._last_retry = ""
        match event:
            case events.SessionStarted():
                self._banner(event)
            case events.TurnStarted():
                self._line(self._paint("user", _CYAN))
                self._line(sanitize(self._prompt))
            case events.MessageDone(text):
                self._line(self._paint("codex", _MAGENTA, _BOLD))
                self._line(sanitize(text))
            case events.ReasoningDone(text):
                self._line(self._paint(sanitize(text), _DIM))
            case events.Warned(message):
                self._line(self._paint("warning:", _YELLOW) + f" {sanitize_line(message)}")
            case events.Retrying():
                self._retry(sanitize_line(describe_retry(event)))
            case events.TurnFailed(_, message):
                self._line(self._paint("ERROR:", _RED, _BOLD) + f" {sanitize_line(message)}")
            case events.TurnInterrupted():
                self._line(self._paint("turn interrupted", _YELLOW))
            case events.TurnCompleted():
                self._line(self._paint("tokens used", _DIM))
                self._line(f"{event.usage.uncached_total:,}")
            case _:
                self._tool(event)

    def _retry(self, line: str) -> None:
        """A server that is waited for says the same again and again: that is one line."""
        if line != self._last_retry:
            self._last_retry = line
            self._line(self._paint("ERROR:", _RED) + f" {line}")

    def _tool(self, event: events.Event) -> None:
        match event:
            case events.CommandStarted():
                self._command(event)
            case events.CommandFinished():
                self._command_finished(event)
            case events.PatchStarted():
                self._line(self._paint("apply patch", _CYAN))
            case events.PatchFinished():
                self._patch_finished(event)
            case events.PlanUpdated():
                self._plan(event)
            case events.SkillUsed(name, _, path, kind):
                how = {"explicit": "skill:", "read": "skill read:", "script": "skill script:"}[kind]
                self._line(f"{self._paint(how, _CYAN)} {sanitize_line(name)} ({sanitize_line(str(path))})")
            case events.WebSearched(_, query):
                self._line(self._paint("web search:", _CYAN) + f" {sanitize_line(query)}")
            case _:
                pass

    def _banner(self, event: events.SessionStarted) -> None:
        settings = {
            "workdir": str(event.cwd),
            "model": event.model,
            "provider": event.provider,
            "approval": event.approval,
            "sandbox": describe_sandbox(event.sandbox),
            "reasoning effort": event.effort or "none",
            "reasoning summaries": event.summary or "none",
            "session id": event.thread_id,
        }
        self._line(self._paint(f"codex-py v{self._version}", _BOLD))
        self._line(_RULE)
        for name, value in settings.items():
            self._line(f"{self._paint(name + ':', _BOLD)} {sanitize_line(value)}")
        if event.resumed:
            self._line(f"{self._paint('resumed:', _BOLD)} {event.resumed} items")
        if event.notice:
            self._line(f"{self._paint('note:', _YELLOW)} {sanitize_line(event.notice)}")
        self._line(_RULE)

    def _command(self, event: events.CommandStarted | events.CommandFinished) -> None:
        self._line(self._paint("exec", _CYAN))
        self._line(f"{self._paint(sanitize_line(event.command), _BOLD)} in {sanitize_line(str(event.cwd))}")
        self._last_shown = event.call_id

    def _command_finished(self, event: events.CommandFinished) -> None:
        if self._last_shown != event.call_id:
            # Another command began meanwhile: say again whose result this is.
            self._command(event)
        took = describe_seconds(event.seconds)
        match event.status, event.exit_code:
            case "in_progress", _:
                self._line(self._paint(f" still running after {took}:", _DIM))
            case "declined", _:
                self._line(self._paint(" declined:", _YELLOW))
            case _, 0:
                self._line(self._paint(f" succeeded in {took}:", _GREEN))
            case _, None:
                self._line(self._paint(f" stopped after {took}:", _RED))
            case _, code:
                self._line(self._paint(f" exited {code} in {took}:", _RED))
        self._output(event.output)

    def _patch_finished(self, event: events.PatchFinished) -> None:
        self._line(self._paint("patch: completed", _GREEN) if event.ok else self._paint("patch: failed", _RED))
        for change in event.changes:
            target = f" -> {change.move_path}" if change.move_path else ""
            self._line(f"{change.kind} {sanitize_line(f'{change.path}{target}')}")
            for line in sanitize(change.diff).splitlines():
                self._line(self._paint_diff(line))
        if not event.ok:
            self._output(event.output)

    def _plan(self, event: events.PlanUpdated) -> None:
        self._line(self._paint("plan", _CYAN))
        if event.explanation:
            self._line(self._paint(sanitize_line(event.explanation), _DIM))
        for step in event.steps:
            mark, colour = _STEP_MARKS[step.status]
            self._line(f"{self._paint(mark, colour)} {sanitize_line(step.text)}")

    def _output(self, output: str) -> None:
        """A long output is shown by its ends: an error is at the end, what ran is at the start."""
        lines = sanitize(output).rstrip("\n").split("\n") if output.strip() else []
        if len(lines) > _OUTPUT_LINES:
            half = _OUTPUT_LINES // 2
            lines = [*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]]
        for line in lines:
            self._line(self._paint(line, _DIM))

    def _paint_diff(self, line: str) -> str:
        match line[:1]:
            case "+":
                return self._paint(line, _GREEN)
            case "-":
                return self._paint(line, _RED)
            case "@":
                return self._paint(line, _CYAN)
            case _:
                return line

    def _paint(self, text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self._color and text else text

    def _line(self, text: str) -> None:
        self._write(text + "\n")


def describe_sandbox(policy: SandboxPolicy) -> str:
    """A policy in one line, with the folders that can be written beside the working directory."""
    match policy:
        case ReadOnly():
            return "read-only"
        case DangerFullAccess():
            return "danger-full-access"
        case WorkspaceWrite():
            extra = [] if policy.exclude_slash_tmp else ["/tmp"]
            extra += [] if policy.exclude_tmpdir_env_var else ["$TMPDIR"]
            writable = ", ".join(["workdir", *extra, *map(str, policy.writable_roots)])
            network = {True: " (network access enabled)", "loopback": " (network: loopback only)"}
            return f"workspace-write [{writable}]{network.get(policy.network_access, '')}"


def describe_seconds(seconds: float) -> str:
    """A duration a person reads at a glance: `35ms`, `2.4s`, `3m 05s`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02d}s"
