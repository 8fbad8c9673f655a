"""The live part above the input: the message that streams in, commands that run, the plan, and what goes on."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from prompt_toolkit.utils import get_cwidth

from codex_py.protocol import events
from codex_py.render.entry import ScrollbackEntry, to_fragments
from codex_py.render.event import describe_attempt
from codex_py.render.markdown import MarkdownStream
from codex_py.render.message import is_done, render_final_plan, render_plan, render_plan_now, render_turn_end
from codex_py.render.theme import Theme
from codex_py.render.tool_call import render_background
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.menu import fitted
from codex_py.ui.repl.running import FRAME_SECONDS, RunningAgents, RunningCommands
from codex_py.ui.repl.slash_command import OutputSink

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MAX_HEADING_LENGTH: Final = 60
_HEADING: Final = re.compile(r"\*\*[^*]+\*\*|#{1,6} .+")
# A longer plan is cut, so that there are rows left for the rest and for the answer above it.
_MIN_PLAN: Final = 6
# Events that do not end a message.
_SILENT: Final = (events.ItemRecorded, events.UsageReported, events.QuestionRaised, events.QuestionClosed)

Row = list[tuple[str, str]]


class Live:
    """A listener of a session that holds what is under way, and writes what is finished to `output`.

    `changed` is called when it has to be drawn again. `theme` is asked each time.
    """

    def __init__(
        self,
        output: OutputSink,
        theme: Callable[[], Theme],
        changed: Callable[[], None],
        *,
        animated: bool = True,
        hides_reasoning: bool = False,
    ) -> None:
        self._output = output
        self.theme = theme
        self._changed = changed
        self._animated = animated
        self._hides_reasoning = hides_reasoning
        # What was seen as it came is not shown again as a whole.
        self._has_streamed = False
        self._stream: MarkdownStream | None = None
        # Text that no drawing has shown yet.
        self._incoming: list[str] = []
        self._is_partly_shown = False
        # What waits for the end of a block of code.
        self._held: list[events.Event] = []
        self._thought = ""
        self._doing = ""
        self._retry: events.Retrying | None = None
        self._plan: events.PlanUpdated | None = None
        # As it was when its turn ended, until all of it is done: the next turn may go on with it.
        self._unfinished: events.PlanUpdated | None = None
        self._began: float | None = None
        # The questions that wait for the user.
        self._asking: set[str] = set()
        self._drawn: tuple[ScrollbackEntry, int, Theme, list[Row]] | None = None
        self.commands = RunningCommands()
        self.agents = RunningAgents()

    @property
    def is_working(self) -> bool:
        """Whether a turn is under way."""
        return self._began is not None

    @property
    def is_asking(self) -> bool:
        """Whether a question waits for the user."""
        return bool(self._asking)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not (self.is_working or self._stream or self._plan or len(self.commands) or len(self.agents))

    def go_on_with(self, plan: tuple[events.PlanStep, ...]) -> None:
        """Keep the plan of an earlier run in view, as long as some of it is not done."""
        self._unfinished = _unfinished(events.PlanUpdated(plan))

    def begin(self) -> None:
        """A turn begins."""
        self._began = time.monotonic()
        self._doing, self._retry, self._thought = "Working", None, ""
        self._has_streamed = False
        self._plan = self._unfinished

    def end(self) -> None:
        """It is over, however it ended."""
        self._asking.clear()
        self.finish_text()
        self._finish_plan()
        self._began = None
        self._changed()

    def note_event(self, event: events.Event) -> None:
        """Take in what happened."""
        if not isinstance(event, events.Retrying):
            self._retry = None
        if isinstance(event, events.TextDelta):
            self._incoming.append(event.text)
            self._thought = ""
            self._changed()
            return
        self.take_in()
        match event:
            case events.ReasoningDelta(text):
                self._think(text)
            case events.MessageDone():
                self.finish_text()
                if not self._has_streamed:
                    self._output.event(event)
                self._has_streamed = False
            case events.ReasoningDone():
                self._thought = ""
                if not self._hides_reasoning:
                    self._output.event(event)
            case events.PlanUpdated():
                self._plan = event
                if is_done(event):
                    self.finish_text()
                    self._finish_plan()
            case events.Retrying():
                self._discard_stream(event)
                self._retry = event
            case events.QuestionRaised() | events.QuestionClosed():
                self._note_question(event)
            case events.CompactionStarted():
                self._doing = "Compacting the context"
                self._output.event(event)
            case events.ContextCompacted():
                self._doing = "Working"
                self._output.event(event)
            case events.CommandStarted(by_user=True):
                self.commands.note_event(event)
            case events.CommandStarted() | events.McpCallStarted():
                self.finish_text()
                self._thought = ""
                self.commands.note_event(event)
            case events.CommandFinished() if event.by_user or event.in_background:
                self.commands.note_event(event)
                self._show_beside(event)
            case events.Warned() | events.SettingsChanged() | events.SkillUsed() | events.SkillSuggested(named=True):
                self._show_beside(event)
            case events.AgentChanged():
                self._note_agent(event)
            case events.CommandDetached(call_id, command):
                self.commands.detach(call_id)
                self._output.show(render_background(command))
            case events.CommandOutput() | events.McpCallProgress():
                self.commands.note_event(event)
            case _:
                self._finished(event)
        self._changed()

    def take_in(self) -> None:
        """Show the text that has come since this was called last: for the next frame, and not for a key in between."""
        if self._incoming:
            text = "".join(self._incoming)
            self._incoming.clear()
            self._stream_text(text)

    def finish_text(self) -> None:
        """The message that streams in is over, or something comes between."""
        self.take_in()
        if self._stream is not None:
            for entry in self._stream.finish():
                self._output.show(entry)
            self._stream = None
            self._show_held()

    def rows(self, width: int, height: int) -> list[Row]:
        """At most `height` rows; of what does not fit the end is seen."""
        theme = self.theme()
        foot = self._working_row(width)
        available = max(0, height - len(foot))
        rows = [row for block in self._blocks(width, available, theme) for row in block]
        return [*(rows[-available:] if available else []), *foot]

    def _blocks(self, width: int, available: int, theme: Theme) -> list[list[Row]]:
        block = self._stream.open_block() if self._stream else None
        blocks = [self._open_rows(block, width, theme)] if block else []
        if running := self.commands.entry(animated=self._animated and not self._asking):
            blocks.append(to_fragments(running, width=width, theme=theme))
        if working := self.agents.entry(animated=self._animated and not self._asking):
            blocks.append(to_fragments(working, width=width, theme=theme))
        if self._plan is not None:
            blocks.append(self._plan_rows(self._plan, width, max(_MIN_PLAN, available // 2)))
        return [[[], *rows] for rows in blocks if rows]

    def _open_rows(self, block: ScrollbackEntry, width: int, theme: Theme) -> list[Row]:
        """The rows of the open block, which often is the same as at the last drawing."""
        if self._drawn is None or self._drawn[:3] != (block, width, theme):
            self._drawn = (block, width, theme, to_fragments(block, width=width, theme=theme))
        return self._drawn[3]

    def _plan_rows(self, plan: events.PlanUpdated, width: int, max_rows: int) -> list[Row]:
        """The whole plan where it fits, else the part of it where the work is."""
        if len(plan.steps) < max_rows:
            whole = to_fragments(render_plan(plan), width=width, theme=self.theme())
            if len(whole) <= max_rows:
                return whole
        return to_fragments(render_plan_now(plan, max_rows), width=width, theme=self.theme())

    def _working_row(self, width: int) -> list[Row]:
        if self._began is None:
            return []
        if self._asking:
            return [[], _cut([("class:accent", "? "), ("class:strong", "Waiting for your answer")], width)]
        seconds = time.monotonic() - self._began
        frame = FRAMES[int(seconds / FRAME_SECONDS) % len(FRAMES)] if self._animated else "…"
        doing = f"Thinking: {self._heading()}" if self._thought else self._doing
        row: Row = [("class:accent", f"{frame} "), ("class:strong", doing)]
        row.append(("class:dim", f" ({_elapsed(seconds)} · Esc stops it)"))
        if self._retry is None:
            return [[], _cut(row, width)]
        row[1] = ("class:warn", describe_attempt(self._retry))
        message = ("class:warn", f"  {sanitize_line(self._retry.message)}")
        if sum(get_cwidth(text) for _, text in (*row, message)) <= width:
            return [[], [*row, message]]
        return [[], _cut(row, width), _cut([message], width)]

    def _heading(self) -> str:
        """What the model thinks about: the last heading, else the last line."""
        lines = [line.strip() for line in self._thought.splitlines() if line.strip(" *#")]
        headings = [line for line in lines if _HEADING.fullmatch(line)]
        return sanitize_line([*lines, *headings][-1].strip(" *#")[-_MAX_HEADING_LENGTH:]) if lines else "…"

    def _stream_text(self, text: str) -> None:
        if self._stream is None:
            self._stream = MarkdownStream()
            self._has_streamed = True
            self._is_partly_shown = False
        for entry in self._stream.feed(text):
            self._output.show(entry)
            self._is_partly_shown = True
        if not self._stream.is_inside_code:
            self._show_held()

    def _show_beside(self, event: events.Event) -> None:
        """Show what is no part of the message that streams in: above its open block, and never within code."""
        if self._stream is not None and self._stream.is_inside_code:
            self._held.append(event)
        else:
            self._output.event(event)

    def _show_held(self) -> None:
        held, self._held = self._held, []
        for event in held:
            self._output.event(event)

    def _discard_stream(self, event: events.Retrying) -> None:
        """The message that streams in will come again from its beginning. A line between separates it
        from what is in the scrollback already."""
        if self._stream is not None and self._is_partly_shown:
            self.finish_text()
            self._output.event(event)
        self._stream = None
        self._has_streamed = False
        self._thought = ""
        self._show_held()

    def _think(self, text: str) -> None:
        if not self._hides_reasoning:
            self._thought = (self._thought + text)[-2000:]

    def _note_question(self, event: events.QuestionRaised | events.QuestionClosed) -> None:
        if isinstance(event, events.QuestionRaised):
            self._asking.add(event.question.id)
        else:
            self._asking.discard(event.question_id)

    def _note_agent(self, event: events.AgentChanged) -> None:
        self.agents.note_event(event)
        if event.agent.status != event.was:
            self._show_beside(event)

    def _finished(self, event: events.Event) -> None:
        if isinstance(event, events.CommandFinished | events.McpCallFinished):
            self.commands.note_event(event)
        if isinstance(event, events.TurnCompleted | events.TurnFailed | events.TurnInterrupted):
            self._finish_plan()
            self.commands.clear()
        if not isinstance(event, _SILENT):
            self.finish_text()
        self._output.event(event)
        if isinstance(event, events.TurnCompleted) and self._began is not None:
            self._output.show(render_turn_end(time.monotonic() - self._began, event.turn_usage, event.costs.turn))

    def _finish_plan(self) -> None:
        if self._plan is not None:
            plan, self._plan = self._plan, None
            if plan is not self._unfinished:
                self._output.show(render_final_plan(plan))
            self._unfinished = _unfinished(plan)


def _unfinished(plan: events.PlanUpdated) -> events.PlanUpdated | None:
    return None if is_done(plan) else plan


def _elapsed(seconds: float) -> str:
    minutes, remainder = divmod(int(seconds), 60)
    return f"{minutes}m {remainder:02d}s" if minutes else f"{remainder}s"


def _cut(row: Row, width: int) -> Row:
    pieces: Row = []
    available = width
    for style, text in row:
        shown = text if get_cwidth(text) <= available else fitted(text, available)
        pieces.append((style, shown))
        available -= get_cwidth(shown)
    return pieces
