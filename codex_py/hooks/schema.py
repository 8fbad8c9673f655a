"""Hooks as they are configured, and the moments at which they run. Nothing is run here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.hooks.matching import Condition, Matcher, find_matcher_error
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.text.nearest import did_you_mean, nearest
from codex_py.text.sanitize import sanitize_line


class HookEvent(NamedTuple):
    """`subject` is the input field that matchers are held against, "" where there is none: every hook runs then.

    `takes_text` says that plain text on stdout is context for the model, `blocks` that a hook can say no, `closes` that
    a hook that fails can be one that does (`fail_closed`).
    """

    about: str
    subject: str = ""
    takes_text: bool = False
    blocks: bool = False
    closes: bool = False


HOOK_EVENTS: Final[Mapping[str, HookEvent]] = {
    "PreToolUse": HookEvent("a tool is about to run", "tool_name", blocks=True, closes=True),
    "PostToolUse": HookEvent("a tool has done its work", "tool_name", blocks=True),
    "PostToolUseFailure": HookEvent("a tool has failed", "tool_name", blocks=True),
    "PermissionRequest": HookEvent(
        "the user is about to be asked for permission", "tool_name", blocks=True, closes=True
    ),
    "UserPromptSubmit": HookEvent("the user has said something", takes_text=True, blocks=True, closes=True),
    "SessionStart": HookEvent("a session begins, or its history was replaced", "source", takes_text=True),
    "SessionEnd": HookEvent("a session ends", "reason"),
    "Stop": HookEvent("the model has nothing left to do", blocks=True),
    "SubagentStart": HookEvent("a subagent begins", "agent_type", takes_text=True),
    "SubagentStop": HookEvent("a subagent has nothing left to do", "agent_type", blocks=True),
    "PreCompact": HookEvent("the history is about to be replaced by a summary", "trigger", blocks=True, closes=True),
    "PostCompact": HookEvent("the history was replaced by a summary", "trigger"),
    "Notification": HookEvent("the user is waited for", "notification_type"),
    "Setup": HookEvent("the first session in a project begins", "trigger", takes_text=True),
    "TeammateIdle": HookEvent("a subagent is about to wait for more work", blocks=True),
    "TaskCompleted": HookEvent("a step of the plan is about to be marked as done", blocks=True, closes=True),
    "SkillUse": HookEvent("a skill was selected, or seen to be used", "skill_name"),
}


HookLayer: TypeAlias = Literal["managed", "user", "project", "plugin"]

DEFAULT_TIMEOUT: Final = 600.0
MAX_TIMEOUT: Final = 3600.0
_MAX_HOOKS: Final = 500
_MAX_COMMAND: Final = 16 * 1024
_MAX_LABEL_LENGTH: Final = 80
_TIMEOUTS: Final = ("timeout", "timeout_sec", "timeoutSec")
_KEYS: Final = ("type", "command", "args", *_TIMEOUTS, "async", "fail_closed", "if")
_IGNORED: Final = "is ignored"
# Of a project's, nobody but its authors could correct a mistake before there is a session.
_OWN: Final = ("managed", "user")
# What other programs run beside commands: a question to a model, a request to a server.
_OTHER_TYPES: Final = ("agent", "http", "mcp", "mcp_tool", "prompt")
# Where Codex CLI writes down which hooks it may run, and which are switched off.
_HOOKS: Final = "hooks"
_STATE: Final = "state"
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class HookOrigin(Value):
    """Where hooks are written: the file, if it is one, and the directory of the project or of the plugin they come
    from.

    `plugin` is the id of that plugin, and `data` the directory it may keep files in, which outlives its versions.
    `for_claude` says that it was written for Claude Code alone.
    """

    layer: HookLayer
    path: Path | None = None
    root: Path | None = None
    plugin: str = ""
    data: Path | None = None
    for_claude: bool = False

    @property
    def where(self) -> str:
        if self.path is not None:
            return f"`{self.path}`"
        return f"the plugin `{self.plugin}`" if self.plugin else "the command line"

    @property
    def source(self) -> str:
        """The layer in a word or two."""
        return f"plugin {self.plugin}" if self.plugin else self.layer


class Hook(Value):
    """One command at one moment. `timeout` is in seconds; nobody waits for one in the `background`.

    `condition` narrows a hook of a tool's moment further than its matcher. With `fail_closed` its failure is a no.
    """

    event: str
    matcher: Matcher
    command: str | tuple[str, ...]
    timeout: float
    origin: HookOrigin
    background: bool = False
    condition: Condition = Condition()
    fail_closed: bool = False

    @property
    def command_line(self) -> str:
        """The command as a shell would be given it."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    @property
    def filter_text(self) -> str:
        """What it is for, as it is written: its matcher, and its condition; "" for everything."""
        return f"{self.matcher.text} if {self.condition.text}".strip() if self.condition.text else self.matcher.text

    @property
    def label(self) -> str:
        """The beginning of the command, for a message."""
        line = sanitize_line(" ".join(self.command_line.split()))
        return line if len(line) <= _MAX_LABEL_LENGTH else f"{line[: _MAX_LABEL_LENGTH - 1]}…"


class ParsedHooks(NamedTuple):
    """The hooks of one place, in the order they are written, and a line for each entry that is none.

    `notice` tells of hooks that are well written and of a type that only other programs run; it does not change from
    one session to the next.
    """

    hooks: tuple[Hook, ...]
    warnings: tuple[str, ...] = ()
    notice: str = ""


class _OtherType(NamedTuple):
    name: str


def parse_hooks(tables: Mapping[str, Any], origin: HookOrigin, off: Collection[str] = ()) -> ParsedHooks:
    """The hooks in the value of `hooks`: by event, each entry with its `hooks`, or with its `command` itself.

    Those are left out that `off` names: by file, event, entry and handler, as `switched_off` gives them.
    """
    found: list[Hook] = []
    warnings: list[str] = []
    others: list[str] = []
    for event, entries in tables.items():
        if event == _STATE:
            continue
        if event == _HOOKS:
            warnings.append(f"`hooks` in {origin.where} is ignored: it is not a table with a list for each event")
            continue
        if event not in HOOK_EVENTS:
            if not isinstance(entries, str):
                warnings.append(_unknown(event, origin))
            continue
        if not isinstance(entries, dict | list):
            warnings.append(f"hooks for `{event}` in {origin.where} are ignored: they are not a list of tables")
        for position, entry in enumerate(_as_entries(cast("object", entries)), 1):
            spot = f"{origin.path}:{_CAPITAL.sub('_', event).lower()}:{position - 1}"
            for made in _hooks_of(event, entry, origin, lambda number, spot=spot: f"{spot}:{number}" in off):
                if isinstance(made, Hook):
                    found.append(made)
                elif isinstance(made, _OtherType):
                    others.append(made.name)
                else:
                    label = f"hook {position} of `{event}` in {origin.where} {made}"
                    if origin.layer in _OWN and _closes(entry):
                        raise UserError(label, hint="it is `fail_closed`, so that nothing runs without it: correct it")
                    warnings.append(label)
    if len(found) > _MAX_HOOKS:
        warnings.append(f"only the first {_MAX_HOOKS} of {len(found)} hooks in {origin.where} are used")
    return ParsedHooks(tuple(found[:_MAX_HOOKS]), tuple(warnings), _not_run(others, origin))


def hook_tables(document: object) -> Mapping[str, Any]:
    """The tables of a `hooks.json`: below `hooks`, or the document itself where there is no such key.

    Nothing where it switches all of them off.
    """
    whole = as_object(document)
    if whole.get("disableAllHooks") is True:
        return {}
    inner = whole.get(_HOOKS, whole)
    # What is none is kept in sight, so that `read_hooks` tells of it.
    return as_object(cast("object", inner)) if isinstance(inner, dict) or not inner else {_HOOKS: inner}


def disabled_hooks(tables: Mapping[str, Any]) -> Iterator[str]:
    """The hooks that the user has switched off, in the form Codex CLI writes that down."""
    for key, state in as_object(tables.get(_STATE)).items():
        if as_object(state).get("enabled") is False:
            yield key


def _closes(entry: object) -> bool:
    """Whether an entry, or a hook in it, is to stop what it guards when it fails."""
    table = as_object(entry)
    return any(as_object(handler).get("fail_closed") for handler in (table, *as_list(table.get("hooks"))))


def _as_entries(entries: object) -> Sequence[object]:
    return [cast("object", entries)] if isinstance(entries, dict) else as_list(entries)


def _hooks_of(
    event: str, entry: object, origin: HookOrigin, is_off: Callable[[int], bool]
) -> Iterator[Hook | _OtherType | str]:
    """The hooks of one entry, and what is wrong with it or with them."""
    if not isinstance(entry, dict):
        yield f"{_IGNORED}: it is not a table"
        return
    table = as_object(cast("object", entry))
    matcher = table.get("matcher")
    if matcher is None:
        matcher = ""
    if not isinstance(matcher, str):
        yield f"{_IGNORED}: its `matcher` is not a text"
        return
    trouble = find_matcher_error(matcher)
    if trouble is not None:
        yield f"{_IGNORED}: its matcher `{sanitize_line(matcher[:_MAX_LABEL_LENGTH])}` is wrong: {trouble}"
        return
    handlers = table.get("hooks", [table])
    if not isinstance(handlers, list):
        yield f"{_IGNORED}: its `hooks` is not a list"
        return
    for number, handler in enumerate(map(as_object, as_list(cast("object", handlers)))):
        if is_off(number):
            continue
        made = _hook(event, Matcher(matcher), handler, origin)
        if isinstance(made, _OtherType):
            yield made
            continue
        if not isinstance(made, Hook):
            yield f"{_IGNORED}: {made}"
            continue
        yield from _misspelled(handler)
        if _seconds(handler) is None:
            # A guard with another limit is worth more than none.
            yield f"has a `timeout` that is not a number of seconds above 0: {DEFAULT_TIMEOUT:g} is used"
        yield made


def _misspelled(handler: Mapping[str, Any]) -> Iterator[str]:
    """A line for each key that is nearly one of ours; other programs have more keys, which are none of our business."""
    for key in handler:
        if key not in _KEYS and (near := nearest(key, _KEYS)):
            yield f"has an unknown key `{sanitize_line(key[:_MAX_LABEL_LENGTH])}`; did you mean `{near}`?"


def _hook(event: str, matcher: Matcher, handler: Mapping[str, Any], origin: HookOrigin) -> Hook | _OtherType | str:
    handler_type = handler.get("type", "command")
    if handler_type in _OTHER_TYPES:
        return _OtherType(str(handler_type))
    if handler_type != "command":
        label = sanitize_line(str(handler_type)[:_MAX_LABEL_LENGTH])
        return f"hooks of the type `{label}` are not supported, only `command`"
    command = _command(handler)
    if command is None:
        near = nearest("command", handler)
        return "it has no `command`" + (f", only `{sanitize_line(near)}`" if near and near != "command" else "")
    if sum(map(len, command)) > _MAX_COMMAND:
        return f"its command is longer than {_MAX_COMMAND // 1024} KiB"
    closed = handler.get("fail_closed", False)
    if not isinstance(closed, bool):
        return "its `fail_closed` is neither true nor false"
    if closed and not HOOK_EVENTS[event].closes:
        able = ", ".join(f"`{name}`" for name, moment in HOOK_EVENTS.items() if moment.closes)
        return f"`fail_closed` is for {able}"
    if closed and handler.get("async") is True:
        return "with `async` nobody waits for it, so that it cannot be `fail_closed`"
    only = handler.get("if")
    if only is not None and not (isinstance(only, str) and HOOK_EVENTS[event].subject == "tool_name"):
        return "its `if` is a rule for tool calls, and it is not one or this event has none"
    return Hook(
        event=event,
        matcher=matcher,
        command=command,
        timeout=_seconds(handler) or DEFAULT_TIMEOUT,
        origin=origin,
        background=handler.get("async") is True,
        condition=Condition((only or "").strip()),
        fail_closed=closed,
    )


def _seconds(handler: Mapping[str, Any]) -> float | None:
    """The time a hook has, None for what is no time."""
    value = next((handler[key] for key in _TIMEOUTS if handler.get(key) is not None), DEFAULT_TIMEOUT)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return float(min(value, MAX_TIMEOUT))


def _command(handler: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    """A line for a shell, or the words of a program that is started without one; None for neither."""
    value: object = handler.get("command")
    if isinstance(value, str) and isinstance(handler.get("args"), list):
        value = [value, *handler["args"]]
    if isinstance(value, str):
        return value if value.strip() and "\0" not in value else None
    words = as_list(value)
    fit = bool(words) and all(isinstance(word, str) and "\0" not in word for word in words)
    return tuple(words) if fit and words[0] else None


def _not_run(types: Sequence[str], origin: HookOrigin) -> str:
    if not types:
        return ""
    count = "1 hook" if len(types) == 1 else f"{len(types)} hooks"
    shown = ", ".join(f"`{name}`" for name in dict.fromkeys(types))
    of = f"of the type {shown}" if len(set(types)) == 1 else f"of the types {shown}"
    return f"{count} {of} in {origin.where} {'is' if len(types) == 1 else 'are'} not run: only `command` is supported"


def _unknown(event: str, origin: HookOrigin) -> str:
    shown = sanitize_line(event[:_MAX_LABEL_LENGTH])
    guess = did_you_mean(event, HOOK_EVENTS)
    return f"hooks for `{shown}` in {origin.where} are ignored: there is no such event" + (
        f"; {guess}" if guess else ""
    )
