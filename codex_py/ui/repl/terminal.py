"""The terminal: what it can do, its control sequences (also through tmux and GNU screen), and notifications. Cheap to
import.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TextIO

from codex_py.config.tui import Tui
from codex_py.programs import is_over_ssh
from codex_py.protocol import events
from codex_py.protocol.questions import ApprovalQuestion, ChoiceQuestion, Question
from codex_py.text.sanitize import sanitize_line

# GNU screen passes on so much at once.
_PIECE: Final = 700


def is_inside(env: Mapping[str, str]) -> bool:
    """Whether one of them stands between, here or, as far as is known, on the user's machine."""
    return bool(env.get("TMUX") or env.get("STY")) or env.get("TERM", "").startswith(("tmux", "screen"))


def passed_on(sequence: str, env: Mapping[str, str]) -> str:
    """The sequence so that one that runs here passes it on; tmux does only with `allow-passthrough`."""
    if env.get("TMUX"):
        return through_tmux(sequence)
    if env.get("STY"):
        pieces = (sequence[start : start + _PIECE] for start in range(0, len(sequence), _PIECE))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


def through_tmux(sequence: str) -> str:
    """The sequence as tmux passes it on."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


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
            case events.QuestionRaised(question):
                self._notify("approval-requested", f"Your answer is needed: {_subject(question)}")
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


def _subject(question: Question) -> str:
    """The subject of a question, in a few words."""
    match question:
        case ApprovalQuestion():
            return f"may it write {question.files[0].name}?" if question.files else f"may it run {question.command}"
        case ChoiceQuestion():
            return question.question
        case _:
            return "codex-py has a question"


def _knows_osc_9(env: Mapping[str, str]) -> bool:
    """Whether the terminal shows it; what stands between passes a bell on, but not always this."""
    programs = (env.get(name, "").lower() for name in ("TERM_PROGRAM", "LC_TERMINAL"))
    is_known = env.get("TERM", "") in _TERMS or any(program in _KNOW_OSC_9 for program in programs)
    return is_known and not is_inside(env)


# Modes to reset before the terminal is restored: reports, bracketed paste, a hidden or odd cursor, colours.
USUAL_CURSOR: Final = "\x1b[0 q"
RESTORE: Final = f"\x1b[?1004l\x1b[?2031l\x1b[>4m\x1b[?2026l\x1b[?2004l\x1b[?25h{USUAL_CURSOR}\x1b[0m"
_SAVE_TITLE: Final = "\x1b[22;2t"
_RESTORE_TITLE: Final = "\x1b[23;2t"
_MAX_TITLE: Final = 80
_ESCAPE_SECONDS: Final = 0.05
_ESCAPE_SECONDS_OVER_SSH: Final = 0.2


def escape_seconds(env: Mapping[str, str]) -> float:
    """How long an Escape waits for what would make a sequence of it, which over ssh may come in pieces."""
    return _ESCAPE_SECONDS_OVER_SSH if is_over_ssh(env) else _ESCAPE_SECONDS


def use_utf_8(*streams: TextIO) -> None:
    """Speak UTF-8 with a terminal, whatever the locale: over ssh it often is none, or one that this machine lacks."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def is_capable(env: Mapping[str, str]) -> bool:
    """Whether something can be drawn: both ends are a terminal, and it knows escape sequences."""
    return sys.stdin.isatty() and sys.stdout.isatty() and env.get("TERM", "") not in ("", "dumb", "unknown")


def opening(cwd: Path, *, title: bool) -> str:
    """The sequences a session begins with."""
    return _SAVE_TITLE + title_sequence(cwd, working=False) if title else ""


def closing(*, title: bool) -> str:
    """The sequences that give the terminal back as it was."""
    return RESTORE + (_RESTORE_TITLE if title else "")


def title_sequence(cwd: Path, *, working: bool, asking: bool = False) -> str:
    """What the window is called: the directory, and whether something is going on in it or an answer is needed."""
    mark = "? answer needed · " if asking else "⠿ " if working else ""
    return f"\x1b]2;{mark}{sanitize_line(cwd.name or '/')[:_MAX_TITLE]} · codex-py\a"


def give_back(descriptor: int, *, title: bool, awaits_answer: bool = False) -> None:
    """Restore the terminal, whatever state the drawing was in; a terminal that is gone is no trouble. With
    `awaits_answer` its pending reports are discarded.
    """
    with contextlib.suppress(OSError, termios.error):
        os.write(descriptor, closing(title=title).encode())
        if awaits_answer:
            termios.tcflush(descriptor, termios.TCIFLUSH)


# The colours of text and background; every terminal answers the last one, so that no answer is waited for in vain.
ASK_COLORS: Final = "\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[c"
PLACEHOLDER: Final = "Ask anything · / commands · $ skills · @ files · ! shell · ? help"
PROMPT: Final = "› "
STARTING: Final = "  starting…"
# From these heights on an empty row stands above the prompt, and one above the status.
GAP_FROM, ROOMY_FROM = 7, 13
