"""The settings of the terminal session in `[tui]`, and the keys of its actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.config.keys import KeyPath
from codex_py.config.value_types import TableKey, allowed_words
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.text.nearest import did_you_mean, nearest

# What prompt_toolkit knows, which is not loaded to read the configuration.
_MOVING: Final = "left|right|up|down|home|end|insert|delete|pageup|pagedown"
_KEY: Final = (
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


class KeyAction(Value):
    """An action with its default keys, written as in the configuration: `ctrl-g`, `alt-enter`, `f2`."""

    name: str
    keys: tuple[str, ...]
    purpose: str


ACTIONS: Final = (
    KeyAction("submit", ("enter",), "send the message; while a turn runs, queue it"),
    KeyAction("newline", ("alt-enter", "ctrl-j"), "begin a new line"),
    KeyAction("steer", ("ctrl-s",), "while a turn runs: say it to the running turn"),
    KeyAction("complete", ("tab",), "take what the menu offers; mention a skill that is named in words"),
    KeyAction("interrupt", ("escape",), "close the menu, stop the turn"),
    KeyAction("clear", ("ctrl-c",), "clear the input, stop the turn; twice: quit"),
    KeyAction("quit", ("ctrl-d",), "quit, when the input is empty"),
    KeyAction("history_search", ("ctrl-r",), "search what was typed before"),
    KeyAction("edit", ("ctrl-g",), "write the message in $EDITOR"),
    KeyAction("paste_image", ("ctrl-v",), "attach the picture of the clipboard"),
    KeyAction("expand", ("ctrl-o",), "show all of what the last call printed; again: of the one before"),
    KeyAction("transcript", ("ctrl-t",), "read the whole session, unfolded"),
    KeyAction("raw", ("f2",), "show the last answer as it was written, to select from"),
    KeyAction("plan_mode", ("shift-tab",), "plan mode on and off"),
    KeyAction("suspend", ("ctrl-z",), "back to the shell; `fg` there goes on"),
    KeyAction("redraw", ("ctrl-l",), "redraw the screen"),
    KeyAction("help", ("f1",), "list commands and keys; also `?` at the start"),
)


def resolve_keys(
    keymap: Mapping[str, Sequence[str]], where: Callable[[str], str] = lambda _: ""
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """The keys of every action, as the user has set them, and a warning for each invalid setting.

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
        return "is not a key; write one as in `ctrl-g`, `alt-enter`, `f2`"
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
        if not re.fullmatch(_KEY, key):
            return ()
    return ("escape", key) if "alt" in pressed else (key,)


def format_key(text: str) -> str:
    """A key for a person: `Ctrl-G`."""
    return "-".join(part if part.isupper() else part.capitalize() for part in text.split("-"))


NotificationMethod: TypeAlias = Literal["auto", "osc9", "bel"]

# Those of `render.theme`, which draws them.
THEMES: Final = ("auto", "dark", "light", "mono")
STATUS_FIELDS: Final = ("model", "effort", "context", "directory", "branch", "sandbox", "running", "tokens", "cost")
STATUS_FIELD: Final = r"\{([\w-]+)\}"
_EVENTS: Final = ("agent-turn-complete", "approval-requested")
TABLE_KEYS: Final = (
    TableKey("theme", "auto", "colours (auto | dark | light | mono)"),
    TableKey("vim_mode_default", sample=False, purpose="edit messages with the keys of vi"),
    TableKey("screen_reader", sample=False, purpose="plain lines, nothing is drawn twice"),
    TableKey("animations", sample=True, purpose="show that work goes on by moving signs"),
    TableKey("terminal_title", ["project"], "an empty list leaves the title of the window alone"),
    TableKey("notifications", list(_EVENTS), "what to notify about; `false` for nothing, `true` for both"),
    TableKey("notification_method", "auto", "how (auto | osc9 | bel)"),
    TableKey("notification_condition", "unfocused", "when (unfocused | always)"),
    TableKey(
        "status_line",
        "{model} · {context} · {branch}",
        "a text with {model}, {effort}, {context}, {directory}, {branch}, {sandbox}, {running}, {tokens} and {cost}, "
        'or `{ command = "…" }`, whose first line is shown',
    ),
    TableKey("keymap", {"newline": ["alt-enter", "ctrl-j"]}, "actions and their keys; `?` in a session lists both"),
)
KEYS: Final = tuple(key.name for key in TABLE_KEYS)


class Tui(Value):
    """The settings. `notify_about` are the events to notify about, and `always` notifies in the foreground too.

    `keymap` gives the keys of actions by their name. The status line is the usual one where neither of the two is set.
    """

    theme: str = THEMES[0]
    vim: bool = False
    screen_reader: bool = False
    animations: bool = True
    title: bool = True
    notify_about: frozenset[str] = frozenset(_EVENTS)
    notify_by: NotificationMethod = "auto"
    notify_always: bool = False
    keymap: Mapping[str, tuple[str, ...]] = {}
    status_line: str = ""
    status_command: str = ""


def read_tui(table: Mapping[str, Any], env: Mapping[str, str]) -> Tui:
    """The settings of a `[tui]` table; a value of the wrong kind counts as not set, and `tui_problems` names it."""
    return _read(_Reader(table), env)


class TuiProblem(NamedTuple):
    """A key of `[tui]` that is ignored and the reason, or with `part` only that word of its value."""

    key: str
    reason: str
    part: str = ""


def tui_problems(table: Mapping[str, Any]) -> list[TuiProblem]:
    """The settings of a `[tui]` table, and the words in them, that are ignored.

    Other programs have more keys there, so an unknown one is only named when a known one is near.
    """
    reader = _Reader(table)
    _read(reader, {})
    unknown = [
        TuiProblem(key, f"there is no such key; did you mean `tui.{near}`?")
        for key in table
        if key not in KEYS and (near := nearest(key, KEYS))
    ]
    return reader.problems + unknown


def keymap_problems(table: Mapping[str, Any], where: Callable[[KeyPath], str]) -> tuple[str, ...]:
    """A line for each key in `[tui.keymap]` that is ignored; `where` says where a setting stands."""
    groups = {action: (name,) for name, inner in as_object(table.get("keymap")).items() for action in as_object(inner)}
    keymap = read_tui(table, {}).keymap
    return resolve_keys(keymap, lambda action: where(("tui", "keymap", *groups.get(action, ()), action)))[1]


def _read(reader: _Reader, env: Mapping[str, str]) -> Tui:
    return Tui(
        theme=reader.word("theme", THEMES),
        vim=reader.flag("vim_mode_default", default=False),
        screen_reader=reader.flag("screen_reader", default=False) or env.get("CODEX_PY_SCREEN_READER") == "1",
        animations=reader.flag("animations", default=True),
        title=reader.has_title,
        notify_about=reader.notifications(),
        notify_by=reader.word("notification_method", ("auto", "osc9", "bel")),
        notify_always=reader.word("notification_condition", ("unfocused", "always")) == "always",
        keymap=reader.keymap(),
        **reader.status_line(),
    )


class _Reader:
    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self.problems: list[TuiProblem] = []

    @property
    def has_title(self) -> bool:
        value = self._table.get("terminal_title")
        if value is not None and not isinstance(value, list):
            self._note("terminal_title", "it must be a list: an empty one leaves the title alone")
        return value != []

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._table.get(key, default)
        if isinstance(value, bool):
            return value
        self._note(key, allowed_words(("true", "false")))
        return default

    def word(self, key: str, words: tuple[str, ...]) -> Any:
        """One of the words; the first is the default."""
        value = self._table.get(key, words[0])
        if value in words:
            return value
        guess = did_you_mean(value, words) if isinstance(value, str) else ""
        self._note(key, f"{guess} {allowed_words(words)}".lstrip())
        return words[0]

    def status_line(self) -> dict[str, str]:
        """A text or a command; a list, as other programs have it, counts for nothing."""
        value = self._table.get("status_line", [])
        if isinstance(value, str):
            for name in re.findall(STATUS_FIELD, value):
                if name not in STATUS_FIELDS:
                    guess = did_you_mean(name, STATUS_FIELDS) or f"there are {', '.join(STATUS_FIELDS)}"
                    self._note("status_line", f"there is no such field; {guess}", f"{{{name}}}")
            return {"status_line": value}
        command = as_object(value).get("command")
        if isinstance(command, str) and command.strip():
            return {"status_command": command}
        if not isinstance(value, list):
            self._note("status_line", "it must be a text, or a table with `command`")
        return {}

    def notifications(self) -> frozenset[str]:
        value = self._table.get("notifications", True)
        words = _words(value)
        if isinstance(value, bool):
            return frozenset(_EVENTS) if value else frozenset()
        if isinstance(value, list):
            # Other programs have more events.
            for word in words:
                if word not in _EVENTS and (guess := did_you_mean(word, _EVENTS)):
                    self._note("notifications", f"there is no such event; {guess}", word)
            return frozenset(_EVENTS).intersection(words)
        self._note("notifications", "it must be `true`, `false` or a list of events")
        return frozenset(_EVENTS)

    def keymap(self) -> dict[str, tuple[str, ...]]:
        """Tables in it are groups of actions, whose names do not count."""
        found: dict[str, tuple[str, ...]] = {}
        keymap = as_object(configured := self._table.get("keymap", {}))
        if keymap != configured:
            self._note("keymap", "it must be a table of actions and their keys")
        for name, value in keymap.items():
            for action, keys in (as_object(value) or {name: value}).items():
                words = _words(keys)
                if isinstance(keys, str):
                    found[action] = (keys,)
                elif isinstance(keys, list):
                    found[action] = words
                else:
                    self._note("keymap", "it must be a key or a list of keys", action)
        return found

    def _note(self, key: str, reason: str, part: str = "") -> None:
        self.problems.append(TuiProblem(key, reason, part))


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for word in as_list(value) if isinstance(word, str))
