"""Keeps the numbers of the status line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from prompt_toolkit.formatted_text import StyleAndTextTuples

from codex_py.core.git_checkout import read_git_state
from codex_py.core.turn_context import TurnSettings
from codex_py.protocol import events
from codex_py.protocol.policy import mode_of
from codex_py.protocol.usage import TokenUsage, context_share
from codex_py.render.status import Status, status_segments

_MIN_WIDTH_FOR_HINT: Final = 60


class StatusKeeper:
    """A listener of a session; `settings` are those of its next turn, `home` is shown as `~`."""

    def __init__(self, settings: Callable[[], TurnSettings], home: Path | None) -> None:
        self._settings = settings
        self._home = home
        self._total = TokenUsage()
        self._filled: float | None = None
        self._branch = ""
        self.look_at_branch()

    def note_event(self, event: events.Event) -> None:
        """Note what changes the status."""
        match event:
            case events.UsageReported(last, total, window):
                self._total = total
                self._filled = context_share(last, window)
            case events.CommandFinished() | events.SettingsChanged() | events.TurnCompleted():
                self.look_at_branch()
            case _:
                pass

    def look_at_branch(self) -> None:
        """Read the branch again: a command may have changed it."""
        git = read_git_state(self._settings().cwd)
        self._branch = (git.branch if git else None) or ""

    def now(self) -> Status:
        """What the line shows now."""
        settings = self._settings()
        return Status(
            model=settings.model.model,
            effort=settings.model.effort,
            cwd=settings.cwd,
            sandbox=mode_of(settings.sandbox_policy),
            context_left=None if self._filled is None else 1 - self._filled,
            tokens=self._total.total_tokens,
            cached_share=self._total.cached_share if self._total.input_tokens else None,
            branch=self._branch,
            plan=settings.plan,
            home=self._home,
        )

    def fragments(self, width: int, *, hint: str = "", is_needed: bool = True) -> StyleAndTextTuples:
        """The line, with a hint at its end if it fits; a needed one replaces segments of the line."""
        available = width - 2 - (len(hint) + 2 if is_needed and width >= _MIN_WIDTH_FOR_HINT else 0)
        segments = status_segments(self.now(), max(1, available))
        shown: StyleAndTextTuples = [("", "  "), *((f"class:{style}", text) for text, style in segments)]
        used = 2 + sum(len(text) for text, _ in segments)
        if hint and width - used > len(hint) + 2:
            shown.append(("class:menu.note", " " * (width - used - len(hint) - 1) + hint))
        return shown if width > 2 else []
