"""Events as plain lines: for `exec` on stderr, `sessions show`, and terminals that cannot be drawn on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from codex_py import __version__
from codex_py.protocol import events
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.policy import approval_name, describe_sandbox
from codex_py.protocol.readable import describe_options
from codex_py.protocol.status import AgentState
from codex_py.protocol.usage import Costs
from codex_py.text.display import describe_changes, describe_seconds, ends_of, first_words
from codex_py.text.sanitize import sanitize, sanitize_line

_RULE: Final = "--------"
_BOLD: Final = "1"
_DIM: Final = "2"
_RED: Final = "31"
_GREEN: Final = "32"
_YELLOW: Final = "33"
_MAGENTA: Final = "35"
_CYAN: Final = "36"
_SHOWN_ARGUMENTS: Final = 500
_BRIEF_DIFF_LINES: Final = 60
_AGENT_ENDS: Final = {"completed": "done", "errored": "failed", "interrupted": "interrupted", "shutdown": "closed"}
_STEP_MARKS: Final = {"completed": ("[x]", _GREEN), "in_progress": ("[>]", _YELLOW), "pending": ("[ ]", _DIM)}


class PlainPrinter:
    """A listener that gives lines, without their ends, to `write`. Everything from outside is sanitized first.

    With `brief` it leaves out what the user has typed or seen, reasoning, and the output of what went well.
    """

    def __init__(self, write: Callable[[str], None], *, color: bool = False, brief: bool = False) -> None:
        self.write: Final = write
        self._color = color
        self._brief = brief
        self._last_shown: str | None = None
        self._last_retry = ""
        self._agent_tokens: dict[str, int] = {}
        self._used: events.UsageReported | None = None

    def __call__(self, event: events.Event) -> None:
        if not isinstance(event, events.Retrying):
            self._last_retry = ""
        match event:
            case (
                events.SessionStarted()
                | events.TurnStarted()
                | events.ReasoningDone()
                | events.McpCallProgress()
                | events.TurnCompleted()
            ) if self._brief:
                pass
            case events.SessionStarted():
                self._banner(event)
            case events.TurnStarted(_, messages):
                self._used = None
                self.write(self._paint("user", _CYAN))
                self.write(sanitize("\n".join(messages)))
            case events.MessageDone(text):
                self.write(self._paint("codex", _MAGENTA, _BOLD))
                self.write(sanitize(text))
            case events.ReasoningDone(text):
                self.write(self._paint("thinking", _MAGENTA))
                self.write(self._paint(sanitize(text), _DIM))
            case events.Warned(message):
                # Hooks have more than a line to say. What follows is set in, so that it passes for nothing else.
                reply = sanitize(message.strip()).replace("\n", "\n  ")
                self.write(self._paint("warning:", _YELLOW) + f" {reply}")
            case events.Retrying():
                self._retry(sanitize_line(describe_retry(event)))
            case events.UsageReported():
                self._used = event
            case events.TurnFailed(_, message):
                if self._used is not None and not self._brief:
                    # Paid for all the same. The error stays the last line.
                    self.write(self._paint(f"turn: {self._used.turn.in_words()}", _DIM))
                    self._cost(self._used.costs)
                self.write(self._paint("ERROR:", _RED, _BOLD) + f" {sanitize_line(message)}")
            case events.TurnInterrupted():
                self.write(self._paint("turn interrupted", _YELLOW))
            case events.FilesChanged(_, changed, deleted):
                self.write(self._paint(describe_changes(changed, deleted), _DIM))
            case events.TurnCompleted():
                self._usage(event)
            case events.AgentChanged(agent):
                self._agent_tokens[agent.id] = agent.tokens
                self._tool(event)
            case _:
                self._tool(event)

    def _usage(self, event: events.TurnCompleted) -> None:
        self.write(self._paint(f"turn: {event.turn_usage.in_words()}", _DIM))
        if event.usage != event.turn_usage:
            self.write(self._paint(f"session: {event.usage.in_words()}", _DIM))
        if any(self._agent_tokens.values()):
            self.write(self._paint(f"agents: {sum(self._agent_tokens.values()):,} tokens of their own", _DIM))
        self._cost(event.costs)
        # Last, because scripts that know Codex CLI look for it here.
        self.write(self._paint("tokens used", _DIM))
        self.write(f"{event.usage.uncached_total:,}")

    def _cost(self, costs: Costs) -> None:
        session = f", session {costs.session.in_words()}" if costs.session != costs.turn else ""
        agents = f", agents {costs.agents.in_words()} of it" if costs.agents.requests else ""
        self.write(self._paint(f"cost: {costs.turn.in_words()}{session}{agents}", _DIM))

    def _retry(self, line: str) -> None:
        """Print a retry, but not a repeated one: waiting for a server repeats the same message."""
        if line != self._last_retry:
            self._last_retry = line
            self.write(self._paint("ERROR:", _RED) + f" {line}")

    def _tool(self, event: events.Event) -> None:
        match event:
            case events.CommandStarted():
                self._command(event)
            case events.CommandFinished():
                self._command_finished(event)
            case events.PatchStarted():
                self.write(self._paint("apply patch", _CYAN))
            case events.PatchFinished():
                self._patch_finished(event)
            case events.PatchRejected(_, reason):
                self.write(self._paint("patch: not applied", _RED))
                self._output(reason)
            case events.CommandInput(_, command, text) if text:
                shown = f"{first_words(text, _SHOWN_ARGUMENTS)} to {command}"
                self.write(self._paint("typed:", _CYAN) + f" {sanitize_line(shown)}")
            case events.ToolCallFinished(_, tool, ok=ok, seconds=seconds, output=output):
                ending = f"succeeded{_took(seconds)}" if ok else "failed"
                self.write(self._paint(f"{sanitize_line(tool)}: {ending}", _CYAN if ok else _RED))
                self._output("" if ok else output)
            case events.McpCallStarted() | events.McpCallProgress() | events.McpCallFinished():
                self._mcp_call(event)
            case events.AgentChanged(agent, was) if agent.status != was:
                self._agent(agent)
            case events.CompactionStarted(_, tokens):
                self.write(self._paint("compacting context:", _CYAN) + f" about {tokens:,} tokens")
            case events.ContextCompacted(before, after):
                self.write(self._paint("context compacted:", _CYAN) + f" about {before:,} tokens before, {after:,} now")
            case events.PlanUpdated():
                self._plan(event)
            case events.SkillUsed(name, _, path, use) as used:
                how = {"explicit": "skill:", "read": "skill read:", "script": "skill script:"}[use]
                about = f": {sanitize_line(describe_options(used.applied))}" if used.applied else ""
                self.write(f"{self._paint(how, _CYAN)} {sanitize_line(name)} ({sanitize_line(str(path))}){about}")
            case events.SkillSuggested(name, _, path, True):
                self.write(f"{self._paint('skill named:', _CYAN)} {sanitize_line(name)} ({sanitize_line(str(path))})")
            case events.WebSearched(_, query):
                self.write(self._paint("web search:", _CYAN) + f" {sanitize_line(query)}")
            case _:
                pass

    def _banner(self, event: events.SessionStarted) -> None:
        settings = {
            "workdir": str(event.cwd),
            "model": event.model,
            "provider": event.provider,
            "approval": approval_name(event.approval),
            "sandbox": describe_sandbox(event.sandbox),
            "reasoning effort": event.effort or "none",
            "reasoning summaries": event.summary or "none",
            "session id": event.thread_id,
        }
        self.write(self._paint(f"codex-py v{__version__}", _BOLD))
        self.write(_RULE)
        for name, value in settings.items():
            self.write(f"{self._paint(name + ':', _BOLD)} {sanitize_line(value)}")
        if event.resumed:
            self.write(f"{self._paint('resumed:', _BOLD)} {event.resumed} items")
        if event.notice:
            self.write(f"{self._paint('note:', _YELLOW)} {sanitize_line(event.notice)}")
        self.write(_RULE)

    def _command(self, event: events.CommandStarted | events.CommandFinished) -> None:
        self.write(self._paint("exec", _CYAN))
        self.write(f"{self._paint(sanitize_line(event.command), _BOLD)} in {sanitize_line(str(event.cwd))}")
        self._last_shown = event.call_id

    def _command_finished(self, event: events.CommandFinished) -> None:
        if self._last_shown != event.call_id:
            # Another command has started since: repeat which command this is the result of.
            self._command(event)
        output = ends_of(event.output)
        if self._brief and event.status == "completed" and not event.by_user:
            output = []
        colon = ":" if output or not self._brief else ""
        match event.status, event.exit_code:
            case "in_progress", _:
                ending, color = f"still running{_took(event.seconds, 'after')}", _DIM
            case "declined", _:
                ending, color = "declined", _YELLOW
            case _, 0:
                ending, color = f"succeeded{_took(event.seconds)}", _GREEN
            case _, None:
                ending, color = f"stopped{_took(event.seconds, 'after')}", _RED
            case _, code:
                ending, color = f"exited {code}{_took(event.seconds)}", _RED
        self.write(self._paint(f" {ending}{colon}", color))
        self._dim_lines(output)

    def _mcp_call(self, event: events.McpCallStarted | events.McpCallProgress | events.McpCallFinished) -> None:
        match event:
            case events.McpCallStarted(_, server, tool, arguments):
                shown = f"{server}.{tool} {encode_json(arguments).decode(errors='replace')[:_SHOWN_ARGUMENTS]}"
                self.write(f"{self._paint('mcp:', _CYAN)} {sanitize_line(shown)}")
            case events.McpCallProgress(_, done, total, message):
                far = f"{done:g}" + (f" of {total:g}" if total else "")
                self.write(self._paint(f" {sanitize_line(f'{far} {message}'.strip())}", _DIM))
            case events.McpCallFinished(_, server, tool):
                colour = {"completed": _GREEN, "failed": _RED, "declined": _YELLOW}[event.status]
                name = sanitize_line(f"{server}.{tool}")
                output = ends_of(event.error or ("" if self._brief else event.output))
                colon = ":" if output or not self._brief else ""
                self.write(self._paint(f" {name} {event.status}{_took(event.seconds)}{colon}", colour))
                self._dim_lines(output)

    def _agent(self, agent: AgentState) -> None:
        """A line when an agent starts, and one with its last message when it ends."""
        if agent.status == "pending_init":
            return
        name = self._paint(f"{sanitize_line(agent.title)}:", _CYAN)
        if agent.is_at_work:
            self.write(f"{name} works on: {sanitize_line(first_words(agent.task, _SHOWN_ARGUMENTS))}")
            return
        colour = {"completed": _GREEN, "errored": _RED}.get(agent.status, _YELLOW)
        self.write(f"{name} {self._paint(_AGENT_ENDS.get(agent.status, agent.status), colour)}")
        self._output(agent.message or "")

    def _patch_finished(self, event: events.PatchFinished) -> None:
        self.write(self._paint("patch: completed", _GREEN) if event.ok else self._paint("patch: failed", _RED))
        for change in event.changes:
            target = f" -> {change.move_path}" if change.move_path else ""
            self.write(f"{change.kind} {sanitize_line(f'{change.path}{target}')}")
            diff = ends_of(change.diff, _BRIEF_DIFF_LINES) if self._brief else sanitize(change.diff).splitlines()
            for line in diff:
                self.write(self._paint_diff(line))
        if not event.ok:
            self._output(event.output)

    def _plan(self, event: events.PlanUpdated) -> None:
        self.write(self._paint("plan", _CYAN))
        if event.explanation:
            self.write(self._paint(sanitize_line(event.explanation), _DIM))
        for step in event.steps:
            mark, colour = _STEP_MARKS[step.status]
            self.write(f"{self._paint(mark, colour)} {sanitize_line(step.text)}")

    def _output(self, output: str) -> None:
        self._dim_lines(ends_of(output))

    def _dim_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(self._paint(line, _DIM))

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


def _took(seconds: float, word: str = "in") -> str:
    """How long something took; stored calls do not always say."""
    return f" {word} {describe_seconds(seconds)}" if seconds > 0 else ""


def describe_retry(event: events.Retrying) -> str:
    """One line on a retry; it begins as in Codex CLI."""
    if event.limit is None:
        return f"Reconnecting... waiting for network ({event.message})"
    return f"Reconnecting... {event.attempt}/{event.limit} ({event.message})"
