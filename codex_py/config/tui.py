"""The table `[tui]`: the settings of the terminal session, and what is wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.keymap import resolve_keys
from codex_py.config.keys import KeyPath
from codex_py.config.kinds import allowed_words
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.text.nearest import did_you_mean, nearest

NotificationMethod: TypeAlias = Literal["auto", "osc9", "bel"]

# Those of `render.theme`, which draws them.
THEMES: Final = ("auto", "dark", "light", "mono")
KEYS: Final = (
    *("theme", "vim_mode_default", "screen_reader", "animations", "terminal_title", "keymap"),
    *("notifications", "notification_method", "notification_condition"),
)
_EVENTS: Final = ("agent-turn-complete", "approval-requested")


class Tui(Value):
    """The settings. `notify_about` are the events to notify about, and `always` notifies in the foreground too.

    `keymap` gives the keys of actions by their name.
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


def read_tui(table: Mapping[str, Any], env: Mapping[str, str]) -> Tui:
    """The settings of a `[tui]` table; a value of the wrong kind counts as not set, and `tui_problems` names it."""
    return _read(_Reader(table), env)


def tui_problems(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The keys of a `[tui]` table that are ignored, each with the reason.

    Other programs have more keys there, so an unknown one is only named when a known one is near.
    """
    reader = _Reader(table)
    _read(reader, {})
    unknown = [(key, near) for key in table if key not in KEYS and (near := nearest(key, KEYS))]
    return [*reader.problems, *((key, f"there is no such key; did you mean `tui.{near}`?") for key, near in unknown)]


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
    )


class _Reader:
    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self.problems: list[tuple[str, str]] = []

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

    def notifications(self) -> frozenset[str]:
        value = self._table.get("notifications", True)
        words = _words(value)
        if isinstance(value, bool):
            return frozenset(_EVENTS) if value else frozenset()
        if isinstance(value, list):
            # Other programs have more events.
            for word in words:
                if word not in _EVENTS and (guess := did_you_mean(word, _EVENTS)):
                    self._note("notifications", f"there is no event `{word}`; {guess}")
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
                    self._note("keymap", f"`{action}` must be a key or a list of keys")
        return found

    def _note(self, key: str, reason: str) -> None:
        self.problems.append((key, reason))


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for word in as_list(value) if isinstance(word, str))
