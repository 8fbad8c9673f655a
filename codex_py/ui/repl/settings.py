"""How the user wants the terminal session: the table `[tui]`, read once, and what of it makes no sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.render.theme import AUTO, THEME_NAMES

NotificationMethod: TypeAlias = Literal["auto", "osc9", "bel"]

_EVENTS: Final = ("agent-turn-complete", "approval-requested")


class Tui(Value):
    """The settings. `notify_about` are the events to be told of, and `always` tells of them in the foreground too.

    `keymap` gives the keys of actions by their name.
    """

    theme: str = AUTO
    vim: bool = False
    screen_reader: bool = False
    animations: bool = True
    title: bool = True
    notify_about: frozenset[str] = frozenset(_EVENTS)
    notify_by: NotificationMethod = "auto"
    notify_always: bool = False
    keymap: Mapping[str, tuple[str, ...]] = {}
    warnings: tuple[str, ...] = ()


def read_tui(table: Mapping[str, Any], env: Mapping[str, str]) -> Tui:
    """The settings of a `[tui]` table; what is of the wrong kind counts as not set, and is told in `warnings`."""
    reader = _Reader(table)
    keymap = reader.keymap()
    return Tui(
        theme=reader.word("theme", THEME_NAMES, AUTO),
        vim=reader.flag("vim_mode_default", default=False),
        screen_reader=reader.flag("screen_reader", default=False) or env.get("CODEX_PY_SCREEN_READER") == "1",
        animations=reader.flag("animations", default=True),
        title=table.get("terminal_title") != [],
        notify_about=reader.notifications(),
        notify_by=reader.word("notification_method", ("auto", "osc9", "bel"), "auto"),
        notify_always=reader.word("notification_condition", ("unfocused", "always"), "unfocused") == "always",
        keymap=keymap,
        warnings=tuple(reader.warnings),
    )


class _Reader:
    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self.warnings: list[str] = []

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._table.get(key, default)
        if isinstance(value, bool):
            return value
        self._warn(key, value, "true or false")
        return default

    def word(self, key: str, words: tuple[str, ...], default: str) -> Any:
        value = self._table.get(key, default)
        if value in words:
            return value
        self._warn(key, value, "one of " + ", ".join(f"`{word}`" for word in words))
        return default

    def notifications(self) -> frozenset[str]:
        value = self._table.get("notifications", True)
        words = _words(value)
        if isinstance(value, bool):
            return frozenset(_EVENTS) if value else frozenset()
        if isinstance(value, list):
            return frozenset(_EVENTS).intersection(words)
        self._warn("notifications", value, "true, false or a list of events")
        return frozenset(_EVENTS)

    def keymap(self) -> dict[str, tuple[str, ...]]:
        """Tables in it are groups of actions, whose names do not count."""
        found: dict[str, tuple[str, ...]] = {}
        keymap = as_object(wished := self._table.get("keymap", {}))
        if keymap != wished:
            self._warn("keymap", wished, "a table of actions and their keys")
        for name, value in keymap.items():
            for action, keys in (as_object(value) or {name: value}).items():
                words = _words(keys)
                if isinstance(keys, str):
                    found[action] = (keys,)
                elif isinstance(keys, list):
                    found[action] = words
                else:
                    self._warn(f"keymap.{action}", keys, "a key or a list of keys")
        return found

    def _warn(self, key: str, value: object, wanted: str) -> None:
        self.warnings.append(f"`tui.{key}` is `{value}`, which is not {wanted}")


def _words(value: object) -> tuple[str, ...]:
    return tuple(word for word in as_list(value) if isinstance(word, str))
