"""Telling somebody who looks elsewhere that a turn is over or waits for an answer: a bell, or OSC 9."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from codex_py.config.tui import Tui
from codex_py.protocol import events
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.multiplexer import is_inside, passed_on

FOCUS_REPORTS_ON: Final = "\x1b[?1004h"
FOCUS_REPORTS_OFF: Final = "\x1b[?1004l"

_BELL: Final = "\a"
_MAX_LENGTH: Final = 160
_KNOW_OSC_9: Final = ("iterm.app", "iterm2", "wezterm", "ghostty", "kitty", "warpterminal")
# Over ssh mostly this alone tells which terminal it is.
_TERMS: Final = ("xterm-kitty", "xterm-ghostty", "wezterm")


class Notices:
    """A listener of a session. `emit` sends an escape sequence.

    `has_focus` says whether somebody looks; None, before the terminal has reported it, counts as no: a bell too many is
    better than none.
    """

    def __init__(
        self, tui: Tui, env: Mapping[str, str], emit: Callable[[str], None], has_focus: Callable[[], bool | None]
    ) -> None:
        self._tui = tui
        self._uses_osc_9 = tui.notify_by == "osc9" or (tui.notify_by == "auto" and _knows_osc_9(env))
        self._env = env
        self._emit = emit
        self._has_focus = has_focus

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.TurnCompleted(_, last_message):
                self._notify("agent-turn-complete", last_message or "the turn is over")
            case events.TurnFailed(_, message):
                self._notify("agent-turn-complete", message)
            case events.QuestionRaised():
                self._notify("approval-requested", "codex-py waits for your answer")
            case _:
                pass

    def _notify(self, topic: str, message: str) -> None:
        if topic not in self._tui.notify_about or (self._has_focus() and not self._tui.notify_always):
            return
        if not self._uses_osc_9:
            self._emit(_BELL)
            return
        text = sanitize_line(" ".join(message.split()))[:_MAX_LENGTH]
        self._emit(passed_on(f"\x1b]9;{text}\a", self._env))


def _knows_osc_9(env: Mapping[str, str]) -> bool:
    """Whether the terminal shows it; what stands between passes a bell on, but not always this."""
    programs = (env.get(name, "").lower() for name in ("TERM_PROGRAM", "LC_TERMINAL"))
    is_known = env.get("TERM", "") in _TERMS or any(program in _KNOW_OSC_9 for program in programs)
    return is_known and not is_inside(env)
