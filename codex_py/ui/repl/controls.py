"""What keys do to the input and to the session in front, if there is one yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from codex_py.ui.repl.active_session import ActiveSession
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.input import Composer

_QUIT_SECONDS: Final = 2.0


class Controls:
    """Stands between the keys and the session. `quit_early` leaves while no session is open yet."""

    def __init__(
        self, composer: Composer, cwd: Path, *, draw: Callable[[], None], quit_early: Callable[[], None]
    ) -> None:
        self.session: ActiveSession | None = None
        # None until the terminal reports it.
        self.has_focus: bool | None = None
        # Cuts short what a session does that has been left; None where there is none.
        self.leaving: Callable[[], None] | None = None
        self._composer = composer
        self._cwd = cwd
        self._draw = draw
        self._quit_early = quit_early
        self._submits_when_ready = False
        self._quit_pressed_at = -_QUIT_SECONDS

    @property
    def quits_next(self) -> bool:
        """Whether another Ctrl-C leaves. Whoever has typed since then does not mean to."""
        return not self._composer.text and time.monotonic() - self._quit_pressed_at < _QUIT_SECONDS

    def set_session(self, session: ActiveSession | None) -> None:
        """Make another session the active one; what was sent before there was one goes to it."""
        self.session = session
        self.leaving = None
        self._composer.menu.use(session.sources if session else ())
        if session and self._submits_when_ready:
            self._submits_when_ready = False
            self.submit()
        self._draw()

    def submit(self) -> None:
        """Send what is typed."""
        if self.session is None:
            self._submits_when_ready = True
            return
        self._quit_pressed_at = -_QUIT_SECONDS
        self._send(self.session.submit)

    def steer(self) -> None:
        """Say what is typed to the running turn."""
        if self.session is not None:
            self._send(self.session.steer)

    def press(self, action: str) -> None:
        """Do something that only the session can do."""
        if self.session is not None:
            self.session.press(action)

    def interrupt(self) -> bool:
        """Stop the turn, and say whether there was one; what was queued comes back into the input."""
        if self.leaving is not None:
            self.leaving()
        waiting = self.session.interrupt() if self.session else None
        if waiting:
            self._composer.put_back(waiting)
        return waiting is not None

    def clear(self) -> None:
        """Ctrl-C: the search, the text or the turn goes, in this order; the second one in a row leaves."""
        if self.quits_next:
            self.quit()
            return
        if self._composer.menu.is_search:
            self._composer.close_menu()
        elif self._composer.text:
            self._composer.history.remember_unsent(self._composer.take().text)
        else:
            self.interrupt()
        self._quit_pressed_at = time.monotonic()
        asyncio.get_running_loop().call_later(_QUIT_SECONDS + 0.05, self._draw)
        self._draw()

    def quit(self) -> None:
        """Leave."""
        if self.session is not None:
            self.session.leave()
        elif self.leaving is not None:
            self.leaving()
        else:
            self._quit_early()

    def older(self) -> None:
        """The message queued last, else the one typed before."""
        queued = self.session.take_last_queued() if self.session and not self._composer.text else None
        if queued is not None:
            self._composer.put_back([queued])
        else:
            self._composer.older()

    def paste(self, text: str) -> None:
        """Take a paste."""
        self._composer.paste(text, self.session.cwd if self.session else self._cwd)

    def note_focus(self, *, has_focus: bool) -> None:
        """The window has got or lost the focus."""
        self.has_focus = has_focus

    def _send(self, take: Callable[[Composed], bool]) -> None:
        """What is refused is out of the way of what is typed next, and the history brings it back."""
        if self._composer.text.strip() and not take(message := self._composer.take()):
            self._composer.history.remember_unsent(message.text)
