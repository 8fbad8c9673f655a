"""What keys do: every action with its name, its keys and what it is for; the user's own keys in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES

from codex_py.text.nearest import did_you_mean

_NAMED: Final[Mapping[str, str]] = {
    "esc": "escape",
    "return": "enter",
    "page-up": "pageup",
    "page-down": "pagedown",
    "backspace": "c-h",
    "del": "delete",
    "ins": "insert",
    "space": " ",
}


class Action(NamedTuple):
    """Something a key does. `keys` are written as in the configuration: `ctrl-g`, `alt-enter`, `f2`."""

    name: str
    keys: tuple[str, ...]
    purpose: str


ACTIONS: Final = (
    Action("submit", ("enter",), "send the message; while a turn runs, queue it"),
    Action("newline", ("alt-enter", "ctrl-j"), "begin a new line"),
    Action("steer", ("ctrl-s",), "while a turn runs: say it to the running turn"),
    Action("complete", ("tab",), "take what the menu offers"),
    Action("interrupt", ("escape",), "close the menu, stop the turn"),
    Action("clear", ("ctrl-c",), "clear the input, stop the turn; twice: quit"),
    Action("quit", ("ctrl-d",), "quit, when the input is empty"),
    Action("history_search", ("ctrl-r",), "search what was typed before"),
    Action("edit", ("ctrl-g",), "write the message in $EDITOR"),
    Action("paste_image", ("ctrl-v",), "attach the picture of the clipboard"),
    Action("expand", ("ctrl-o",), "show all of what the last call printed; again: of the one before"),
    Action("transcript", ("ctrl-t",), "read the whole session, unfolded"),
    Action("plan_mode", ("shift-tab",), "plan mode on and off"),
    Action("suspend", ("ctrl-z",), "back to the shell; `fg` there goes on"),
    Action("redraw", ("ctrl-l",), "draw the screen anew"),
    Action("help", ("f1",), "list commands and keys; also `?` at the start"),
)


def resolve_keys(keymap: Mapping[str, Sequence[str]]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The keys of every action, as the user wants them, and a line for each wish that makes no sense."""
    chosen = {action.name: action.keys for action in ACTIONS}
    wished: dict[tuple[str, ...], str] = {}
    warnings: list[str] = []
    for name, keys in keymap.items():
        if name not in chosen:
            guess = did_you_mean(name, chosen) or "`?` lists them"
            warnings.append(f"`tui.keymap.{name}` is ignored: there is no such action; {guess}")
            continue
        complaints = {key: _complaint(key, name, wished) for key in keys}
        warnings += filter(None, complaints.values())
        known = tuple(key for key in keys if not complaints[key])
        if known or not keys:
            chosen[name] = known
        wished |= {parse_key(key): name for key in known}
    # A key that the user has given to something does no longer what it did before.
    left = {
        name: tuple(key for key in keys if wished.get(parse_key(key), name) == name) for name, keys in chosen.items()
    }
    if not left["submit"]:
        warnings.append("no key sends a message; set `tui.keymap.submit`")
    return left, tuple(warnings)


def _complaint(key: str, name: str, wished: Mapping[tuple[str, ...], str]) -> str:
    """Why a key cannot be had for an action; empty when it can."""
    parsed = parse_key(key)
    what = f"`{key}`, for `tui.keymap.{name}`,"
    if not parsed:
        return f"{what} is no key"
    if len(parsed) == 1 and len(parsed[0]) == 1:
        return f"{what} would keep you from writing it; take it with ctrl or alt"
    if wished.get(parsed, name) != name:
        return f"{what} is the key of `{wished[parsed]}` already"
    return ""


def parse_key(text: str) -> tuple[str, ...]:
    """A key as prompt_toolkit names it, one or two presses; empty for none that there is."""
    *modifiers, base = [part for part in text.strip().lower().replace("+", "-").split("-") if part] or [""]
    words = {"control": "ctrl", "option": "alt", "meta": "alt"}
    held = {words.get(one, one) for one in modifiers}
    if not base or not held <= {"ctrl", "alt", "shift"}:
        return ()
    key = _NAMED.get(base, base)
    if held >= {"shift"} and len(key) == 1:
        key = key.upper()
        held -= {"shift"}
    prefix = ("c-" if "ctrl" in held else "") + ("s-" if "shift" in held else "")
    if prefix or len(key) > 1:
        key = prefix + key
        if key not in ALL_KEYS and key not in KEY_ALIASES:
            return ()
    return ("escape", key) if "alt" in held else (key,)


def shown_key(text: str) -> str:
    """A key for a person: `Ctrl-G`."""
    return "-".join(part if part.isupper() else part.capitalize() for part in text.split("-"))


def bind(
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
