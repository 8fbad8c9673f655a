"""`[tui.keymap]`: every action of the terminal session with its name, keys and purpose, and the user's keys for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from codex_py.text.nearest import did_you_mean

# What prompt_toolkit knows, which is not loaded to read the configuration.
_MOVING: Final = "left|right|up|down|home|end|insert|delete|pageup|pagedown"
_KEY: Final = re.compile(
    rf"escape|s-escape|enter|tab|s-tab|backspace|c-space|c-[a-z0-9@\\\]^_]|c-s-[0-9]|(?:c-)?(?:s-)?(?:{_MOVING})"
    r"|(?:c-)?f(?:[1-9]|1[0-9]|2[0-4])"
)
_KEY_NAMES: Final[Mapping[str, str]] = {
    "esc": "escape",
    "return": "enter",
    "page-up": "pageup",
    "page-down": "pagedown",
    "backspace": "c-h",
    "del": "delete",
    "ins": "insert",
    "space": " ",
}


class KeyAction(NamedTuple):
    """Something a key does. `keys` are written as in the configuration: `ctrl-g`, `alt-enter`, `f2`."""

    name: str
    keys: tuple[str, ...]
    purpose: str


ACTIONS: Final = (
    KeyAction("submit", ("enter",), "send the message; while a turn runs, queue it"),
    KeyAction("newline", ("alt-enter", "ctrl-j"), "begin a new line"),
    KeyAction("steer", ("ctrl-s",), "while a turn runs: say it to the running turn"),
    KeyAction("complete", ("tab",), "take what the menu offers"),
    KeyAction("interrupt", ("escape",), "close the menu, stop the turn"),
    KeyAction("clear", ("ctrl-c",), "clear the input, stop the turn; twice: quit"),
    KeyAction("quit", ("ctrl-d",), "quit, when the input is empty"),
    KeyAction("history_search", ("ctrl-r",), "search what was typed before"),
    KeyAction("edit", ("ctrl-g",), "write the message in $EDITOR"),
    KeyAction("paste_image", ("ctrl-v",), "attach the picture of the clipboard"),
    KeyAction("expand", ("ctrl-o",), "show all of what the last call printed; again: of the one before"),
    KeyAction("transcript", ("ctrl-t",), "read the whole session, unfolded"),
    KeyAction("plan_mode", ("shift-tab",), "plan mode on and off"),
    KeyAction("suspend", ("ctrl-z",), "back to the shell; `fg` there goes on"),
    KeyAction("redraw", ("ctrl-l",), "redraw the screen"),
    KeyAction("help", ("f1",), "list commands and keys; also `?` at the start"),
)


def resolve_keys(
    keymap: Mapping[str, Sequence[str]], where: Callable[[str], str] = lambda _: ""
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The keys of every action, as the user wants them, and a line for each setting that makes no sense.

    `where` says where the setting of an action stands.
    """
    chosen = {action.name: action.keys for action in ACTIONS}
    assigned: dict[tuple[str, ...], str] = {}
    warnings: list[str] = []
    for name, keys in keymap.items():
        if name not in chosen:
            guess = did_you_mean(name, chosen) or "`?` lists them"
            warnings.append(f"{_setting(name, where)} is ignored: there is no such action; {guess}")
            continue
        complaints = {key: _complaint(key, name, assigned) for key in keys}
        warnings += [f"`{key}`, for {_setting(name, where)}, {text}" for key, text in complaints.items() if text]
        valid = tuple(key for key in keys if not complaints[key])
        if valid or not keys:
            chosen[name] = valid
        assigned |= {parse_key(key): name for key in valid}
    # A key that the user assigns loses its default action.
    resolved = {
        name: tuple(key for key in keys if assigned.get(parse_key(key), name) == name) for name, keys in chosen.items()
    }
    if not resolved["submit"]:
        warnings.append("no key sends a message; set `tui.keymap.submit`")
    return resolved, tuple(warnings)


def _setting(name: str, where: Callable[[str], str]) -> str:
    return f"`tui.keymap.{name}` {where(name)}".rstrip()


def _complaint(key: str, name: str, assigned: Mapping[tuple[str, ...], str]) -> str:
    """Why a key cannot be assigned to an action; empty when it can."""
    parsed = parse_key(key)
    if not parsed:
        return "is no key; write one as in `ctrl-g`, `alt-enter`, `f2`"
    if len(parsed) == 1 and len(parsed[0]) == 1:
        return "would keep you from writing it; take it with ctrl or alt"
    if assigned.get(parsed, name) != name:
        return f"is the key of `{assigned[parsed]}` already"
    return ""


def parse_key(text: str) -> tuple[str, ...]:
    """A key as prompt_toolkit names it, one or two presses; empty for none that there is."""
    *modifiers, base = [part for part in text.strip().lower().replace("+", "-").split("-") if part] or [""]
    words = {"control": "ctrl", "option": "alt", "meta": "alt"}
    pressed = {words.get(modifier, modifier) for modifier in modifiers}
    if not base or not pressed <= {"ctrl", "alt", "shift"}:
        return ()
    key = base if base == "space" and "ctrl" in pressed else _KEY_NAMES.get(base, base)
    if pressed >= {"shift"} and len(key) == 1:
        key = key.upper()
        pressed -= {"shift"}
    prefix = ("c-" if "ctrl" in pressed else "") + ("s-" if "shift" in pressed else "")
    if prefix or len(key) > 1:
        key = prefix + key
        if not _KEY.fullmatch(key):
            return ()
    return ("escape", key) if "alt" in pressed else (key,)


def format_key(text: str) -> str:
    """A key for a person: `Ctrl-G`."""
    return "-".join(part if part.isupper() else part.capitalize() for part in text.split("-"))
