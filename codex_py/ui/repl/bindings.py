"""Key bindings of the input, the menu and the session, and what the keys do to the active session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from string import ascii_letters
from typing import Any, Final, Protocol

from prompt_toolkit.application.current import get_app
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

from codex_py.config.tui import parse_key
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.input import Composer
from codex_py.ui.repl.layout import LayoutParts
from codex_py.ui.repl.menu import MenuSource
from codex_py.ui.repl.terminal_input import FOCUS_IN, FOCUS_OUT


class NamesInWords(Protocol):
    """The skills that the message names in words."""

    @property
    def can_mention(self) -> bool: ...

    def mention(self) -> None: ...


class ActiveSession(Protocol):
    """The services of the active session for the keys and the screen. Every method returns at once."""

    surroundings: LayoutParts
    sources: Sequence[MenuSource]

    @property
    def named(self) -> NamesInWords: ...

    @property
    def cwd(self) -> Path: ...

    def submit(self, message: Composed) -> bool:
        """Take a message or a command; False when it was neither."""
        ...

    def steer(self, message: Composed) -> bool:
        """Send it to the running turn; a command is taken like one that is sent, with the same answer."""
        ...

    def interrupt(self) -> Sequence[Composed] | None:
        """Stop what runs; gives back what was queued, None when nothing ran."""
        ...

    def take_last_queued(self) -> Composed | None:
        """The message queued last, to be changed; None when none is."""
        ...

    def press(self, action: str) -> None:
        """Do what a key stands for, by the name of the action."""
        ...

    def leave(self) -> None:
        """Quit."""
        ...


_QUIT_SECONDS: Final = 2.0
_AGAIN_SECONDS: Final = 1.0


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
        self._escape_pressed_at = -_AGAIN_SECONDS

    def escape(self) -> None:
        """Stop the turn; pressed twice on an empty input, go back before a turn."""
        again = time.monotonic() - self._escape_pressed_at < _AGAIN_SECONDS
        self._escape_pressed_at = time.monotonic()
        if again and not self._composer.text:
            self._escape_pressed_at = -_AGAIN_SECONDS
            self.press("rewind")
        else:
            self.interrupt()

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

    @property
    def can_mention(self) -> bool:
        """Whether a skill is named in words that can become a mention."""
        return self.session is not None and self.session.named.can_mention

    def mention(self) -> None:
        """Turn the name of a skill that is written in words into a mention."""
        if self.session is not None:
            self.session.named.mention()

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
        """Send the typed message. A refused one is removed from the line; the history brings it back."""
        if self._composer.text.strip() and not take(message := self._composer.take()):
            self._composer.history.remember_unsent(message.text)


# What only the session can do.
_OF_SESSION: Final = ("edit", "paste_image", "expand", "transcript", "raw", "plan_mode", "help")


def session_bindings(
    keys: Mapping[str, tuple[str, ...]], composer: Composer, controls: Controls, *, suspend: Callable[[], None]
) -> KeyBindings:
    """All keys that count while the input is in front. `suspend` gives the terminal back to the shell for a while."""
    bindings = KeyBindings()
    menu = composer.menu
    is_open = Condition(lambda: menu.is_open)
    actions: dict[str, Callable[[], None]] = {
        **{name: lambda name=name: controls.press(name) for name in _OF_SESSION},
        "steer": controls.steer,
        "clear": controls.clear,
        "suspend": suspend,
        "redraw": lambda: get_app().renderer.clear(),
        "history_search": lambda: _search(composer),
        "submit": lambda: _submit(composer, controls),
        "newline": lambda: composer.buffer.newline(copy_margin=False),
    }
    _bind_hasty_escape(bindings, composer, controls)
    for name, act in actions.items():
        _bind(bindings, keys[name], _press(act))
    _bind(bindings, keys["complete"], lambda _: composer.accept(or_first=True), when=is_open)
    _bind(bindings, keys["complete"], _press(controls.mention), when=Condition(lambda: controls.can_mention) & ~is_open)
    _bind(bindings, keys["interrupt"], lambda _: _escape(composer, controls), when=Condition(_escape_is_ours) | is_open)
    _bind(bindings, keys["quit"], _press(controls.quit), when=Condition(lambda: not composer.text))
    _bind_movement(bindings, composer, controls)

    @bindings.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        controls.paste(event.data)

    bindings.add("?", filter=Condition(lambda: not composer.text))(_press(lambda: controls.press("help")))
    return bindings


def focus_bindings(controls: Controls) -> KeyBindings:
    """Bindings for focus changes, which the terminal reports as keys. They work with any panel in front."""
    bindings = KeyBindings()
    bindings.add(FOCUS_IN)(_press(lambda: controls.note_focus(has_focus=True)))
    bindings.add(FOCUS_OUT)(_press(lambda: controls.note_focus(has_focus=False)))
    return bindings


def is_navigating() -> bool:
    """Whether letters are commands, as in the normal mode of vi."""
    app = get_app()
    return app.editing_mode is EditingMode.VI and app.vi_state.input_mode is InputMode.NAVIGATION


def _bind_hasty_escape(bindings: KeyBindings, composer: Composer, controls: Controls) -> None:
    """Alt with a letter moves about in words: without any, it was Escape and a letter that came in one piece."""
    nothing_typed = Condition(lambda: not composer.text and _escape_is_ours())
    for letter in ascii_letters:

        @bindings.add("escape", letter, filter=nothing_typed)
        def _(event: KeyPressEvent) -> None:
            _escape(composer, controls)
            composer.buffer.insert_text(event.data)


def _bind_movement(bindings: KeyBindings, composer: Composer, controls: Controls) -> None:
    menu = composer.menu
    is_open = Condition(lambda: menu.is_open)
    is_chosen = Condition(lambda: menu.is_search or menu.selected_offer is not None)
    at_top = Condition(lambda: composer.buffer.document.cursor_position_row == 0)
    at_bottom = Condition(lambda: composer.buffer.document.on_last_line)
    for keys, by in ((("up", "c-p"), -1), (("down", "c-n"), 1)):
        for key in keys:
            bindings.add(key, filter=is_chosen if by < 0 else is_open)(_press(lambda by=by: menu.move(by)))
    bindings.add("up", filter=~is_chosen & at_top)(_press(controls.older))
    bindings.add("down", filter=~is_open & at_bottom & Condition(lambda: composer.history.is_browsing))(
        _press(composer.newer)
    )
    # As with the arrows, where vi has no line to go to.
    bindings.add("k", filter=vi_navigation_mode & at_top)(_press(controls.older))
    bindings.add("j", filter=vi_navigation_mode & at_bottom & Condition(lambda: composer.history.is_browsing))(
        _press(composer.newer)
    )
    typing = Condition(lambda: not is_navigating())
    for key in ("backspace", "c-h"):
        bindings.add(key, filter=typing)(_press(composer.delete_before))


def _submit(composer: Composer, controls: Controls) -> None:
    """Enter: takes what the menu offers, and sends when that is a whole command or there is no menu."""
    text = composer.buffer.document
    if composer.menu.is_open:
        is_search = composer.menu.is_search
        offer = composer.accept()
        if is_search or (offer is not None and not offer.runs):
            return
    elif text.char_before_cursor == "\\" and text.is_cursor_at_the_end:
        composer.buffer.delete_before_cursor(1)
        composer.buffer.newline(copy_margin=False)
        return
    controls.submit()
    _begin_typing()


def _search(composer: Composer) -> None:
    _begin_typing()
    composer.search_history()


def _begin_typing() -> None:
    """In vi mode letters are text from here on, not commands."""
    get_app().vi_state.input_mode = InputMode.INSERT


def _escape(composer: Composer, controls: Controls) -> None:
    if composer.menu.is_open:
        composer.close_menu()
    else:
        controls.escape()


def _escape_is_ours() -> bool:
    """In vi mode the first Escape ends the typing."""
    return get_app().editing_mode is not EditingMode.VI or is_navigating()


def _press(act: Callable[[], object]) -> Callable[[KeyPressEvent], None]:
    def pressed(_: KeyPressEvent) -> None:
        act()

    return pressed


def _bind(
    bindings: KeyBindings,
    keys: Sequence[str],
    act: Callable[[KeyPressEvent], Any],
    *,
    when: Any = True,
) -> None:
    """Let each of the keys do something, while a filter holds."""
    for key in keys:
        if parsed := parse_key(key):
            bindings.add(*parsed, filter=when)(act)
