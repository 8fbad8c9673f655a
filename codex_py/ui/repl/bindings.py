"""From keys to what they do: the input's own keys, those of the menu, and those of the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters
from typing import Any, Final

from prompt_toolkit.application.current import get_app
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

from codex_py.config.keymap import parse_key
from codex_py.ui.repl.controls import Controls
from codex_py.ui.repl.input import Composer
from codex_py.ui.repl.key_parser import FOCUS_IN, FOCUS_OUT

# What only the session can do.
_OF_SESSION: Final = ("edit", "paste_image", "expand", "transcript", "plan_mode", "help")


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
    _bind(bindings, keys["interrupt"], lambda _: _escape(composer, controls), when=Condition(_escape_is_ours) | is_open)
    _bind(bindings, keys["quit"], _press(controls.quit), when=Condition(lambda: not composer.text))
    _bind_movement(bindings, composer, controls)

    @bindings.add(Keys.BracketedPaste)
    def _(event: KeyPressEvent) -> None:
        controls.paste(event.data)

    bindings.add("?", filter=Condition(lambda: not composer.text))(_press(lambda: controls.press("help")))
    return bindings


def focus_bindings(controls: Controls) -> KeyBindings:
    """What the terminal reports by keys of its own, whatever is in front."""
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
        controls.interrupt()


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
