"""Hooks as they are configured: tables of `config.toml` and of `hooks.json` become values. Nothing is run here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from codex_py.hooks.events import MOMENTS
from codex_py.hooks.matching import Matcher, trouble_with
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.text.sanitize import sanitize_line

HookLayer: TypeAlias = Literal["managed", "user", "project", "plugin"]

DEFAULT_TIMEOUT: Final = 600.0
MAX_TIMEOUT: Final = 3600.0
_MOST_HOOKS: Final = 500
_MOST_COMMAND: Final = 16 * 1024
_LONGEST_LABEL: Final = 80
# Where Codex CLI writes down which hooks it may run.
_NO_EVENT: Final = "state"


class HookOrigin(Value):
    """Where hooks are written: the file, if it is one, and the folder of the project or of the plugin they come from.

    `plugin` is the id of that plugin.
    """

    layer: HookLayer
    path: Path | None = None
    root: Path | None = None
    plugin: str = ""

    @property
    def where(self) -> str:
        if self.path is not None:
            return f"`{self.path}`"
        return f"the plugin `{self.plugin}`" if self.plugin else "the command line"


class Hook(Value):
    """One command at one moment. `timeout` is in seconds; nobody waits for one in the `background`."""

    event: str
    matcher: Matcher
    command: str | tuple[str, ...]
    timeout: float
    origin: HookOrigin
    background: bool = False

    @property
    def label(self) -> str:
        """The beginning of the command, for a message."""
        text = self.command if isinstance(self.command, str) else " ".join(self.command)
        line = sanitize_line(" ".join(text.split()))
        return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"


class ReadHooks(NamedTuple):
    """The hooks of one place, in the order they are written, and a line for each entry that is none."""

    hooks: tuple[Hook, ...]
    warnings: tuple[str, ...] = ()


def read_hooks(tables: Mapping[str, Any], origin: HookOrigin) -> ReadHooks:
    """The hooks in the value of `hooks`: by event, each entry with its `hooks`, or with its `command` itself."""
    found: list[Hook] = []
    warnings: list[str] = []
    for event, entries in tables.items():
        if event == _NO_EVENT:
            continue
        if event not in MOMENTS:
            if not isinstance(entries, str):
                warnings.append(_unknown(event, origin))
            continue
        for place, entry in enumerate(_as_entries(entries), 1):
            for made in _hooks_of(event, entry, origin):
                if isinstance(made, Hook):
                    found.append(made)
                else:
                    warnings.append(f"hook {place} of `{event}` in {origin.where} is ignored: {made}")
    if len(found) > _MOST_HOOKS:
        warnings.append(f"only the first {_MOST_HOOKS} of {len(found)} hooks in {origin.where} are used")
    return ReadHooks(tuple(found[:_MOST_HOOKS]), tuple(warnings))


def tables_of(document: object) -> Mapping[str, Any]:
    """The tables of a `hooks.json`: below `hooks`, or the document itself where there is no such key."""
    whole = as_object(document)
    return as_object(whole["hooks"]) if "hooks" in whole else whole


def _as_entries(entries: object) -> Sequence[object]:
    return [cast("object", entries)] if isinstance(entries, dict) else as_list(entries)


def _hooks_of(event: str, entry: object, origin: HookOrigin) -> Iterator[Hook | str]:
    """The hooks of one entry, and reasons in place of those that are none."""
    if not isinstance(entry, dict):
        yield "it is not a table"
        return
    table = as_object(cast("object", entry))
    matcher = table.get("matcher")
    if matcher is None:
        matcher = ""
    if not isinstance(matcher, str):
        yield "its `matcher` is not a text"
        return
    trouble = trouble_with(matcher)
    if trouble is not None:
        yield f"its matcher `{sanitize_line(matcher[:_LONGEST_LABEL])}` is of no use: {trouble}"
        return
    handlers = as_list(table["hooks"]) if "hooks" in table else [table]
    for handler in handlers:
        yield _hook(event, Matcher(matcher), as_object(handler), origin)


def _hook(event: str, matcher: Matcher, handler: Mapping[str, Any], origin: HookOrigin) -> Hook | str:
    kind = handler.get("type", "command")
    if kind != "command":
        return f"hooks of the type `{sanitize_line(str(kind)[:_LONGEST_LABEL])}` are not supported, only `command`"
    command = _command(handler.get("command"))
    if command is None:
        return "it has no `command`"
    if sum(map(len, command)) > _MOST_COMMAND:
        return f"its command is longer than {_MOST_COMMAND // 1024} KiB"
    timeout = handler.get("timeout", handler.get("timeout_sec", DEFAULT_TIMEOUT))
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        return "its `timeout` is not a number of seconds above 0"
    return Hook(
        event=event,
        matcher=matcher,
        command=command,
        timeout=float(min(timeout, MAX_TIMEOUT)),
        origin=origin,
        background=handler.get("async") is True,
    )


def _command(given: object) -> str | tuple[str, ...] | None:
    if isinstance(given, str):
        return given if given.strip() and "\0" not in given else None
    words = as_list(given)
    fit = bool(words) and all(isinstance(word, str) and "\0" not in word for word in words)
    return tuple(words) if fit and words[0] else None


def _unknown(event: str, origin: HookOrigin) -> str:
    shown = sanitize_line(event[:_LONGEST_LABEL])
    near = next((name for name in MOMENTS if name.lower() == event.replace("_", "").lower()), None)
    guess = f"did you mean `{near}`? " if near else ""
    return f"hooks for `{shown}` in {origin.where} are ignored: {guess}there is no such event"
