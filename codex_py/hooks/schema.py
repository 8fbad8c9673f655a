"""The events of hooks, and reading the hooks of one place. Nothing is run here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.hooks.matching import Condition, Matcher, find_matcher_error, misspelt
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.text.nearest import did_you_mean, nearest
from codex_py.text.sanitize import sanitize_line


class HookEvent(NamedTuple):
    """A point of a session. `subject` is the input field that matchers are for; "" where every hook runs.

    `takes_text` says that plain text on stdout is context for the model, `blocks` that a hook can say no, `closes` that
    the failure of a hook can mean no (`fail_closed`).
    """

    subject: str = ""
    takes_text: bool = False
    blocks: bool = False
    closes: bool = False


HOOK_EVENTS: Final[Mapping[str, HookEvent]] = {
    "PreToolUse": HookEvent("tool_name", blocks=True, closes=True),
    "PostToolUse": HookEvent("tool_name", blocks=True),
    "PostToolUseFailure": HookEvent("tool_name", blocks=True),
    "PermissionRequest": HookEvent("tool_name", blocks=True, closes=True),
    "UserPromptSubmit": HookEvent(takes_text=True, blocks=True, closes=True),
    "SessionStart": HookEvent("source", takes_text=True),
    "SessionEnd": HookEvent("reason"),
    "Stop": HookEvent(blocks=True),
    "SubagentStart": HookEvent("agent_type", takes_text=True),
    "SubagentStop": HookEvent("agent_type", blocks=True),
    "PreCompact": HookEvent("trigger", blocks=True, closes=True),
    "PostCompact": HookEvent("trigger"),
    "Notification": HookEvent("notification_type"),
    "Setup": HookEvent("trigger", takes_text=True),
    "TeammateIdle": HookEvent(blocks=True),
    "TaskCompleted": HookEvent(blocks=True, closes=True),
    "SkillUse": HookEvent("skill_name"),
}


HookLayer: TypeAlias = Literal["managed", "user", "project", "plugin", "skill"]

DEFAULT_TIMEOUT: Final = 600.0
MAX_TIMEOUT: Final = 3600.0
_MAX_HOOKS: Final = 500
_MAX_COMMAND: Final = 16 * 1024
_MAX_LABEL_LENGTH: Final = 80
_TIMEOUTS: Final = ("timeout", "timeout_sec", "timeoutSec")
_KEYS: Final = ("type", "command", "args", *_TIMEOUTS, "async", "fail_closed", "if", "once")
_IGNORED: Final = "is ignored"
# Of these, a `fail_closed` hook that cannot be read is an error: the user or the administrator can correct it.
_OWN: Final = ("managed", "user")
# Types of hooks that only other programs run.
_OTHER_TYPES: Final = ("agent", "http", "mcp", "mcp_tool", "prompt")
_HOOKS: Final = "hooks"
# The key under which Codex CLI stores which hooks are switched off.
_STATE: Final = "state"
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class HookOrigin(Value):
    """Where hooks are configured: the file, if it is one, and the `root` of their project, plugin or skill.

    `skill` is the name of that skill, `plugin` the id of that plugin, and `data` the directory for its own files, which
    outlives its versions. With `for_claude` the plugin was written for Claude Code alone.
    """

    layer: HookLayer
    path: Path | None = None
    root: Path | None = None
    plugin: str = ""
    data: Path | None = None
    for_claude: bool = False
    skill: str = ""

    @property
    def where(self) -> str:
        if self.path is not None:
            return f"`{self.path}`"
        return f"the plugin `{self.plugin}`" if self.plugin else "the command line"

    @property
    def source(self) -> str:
        """The layer in one or two words."""
        if self.skill:
            return f"skill {sanitize_line(self.skill)}"
        return f"plugin {self.plugin}" if self.plugin else self.layer

    @property
    def needs_trust(self) -> bool:
        """Whether other people wrote them, so that they run when the user has agreed, and in the sandbox."""
        return self.layer in ("project", "skill")


class Hook(Value):
    """One command at one event. `timeout` is in seconds; a hook in the `background` is not waited for.

    `condition` narrows a hook for tool calls further than its matcher. With `fail_closed` a failure denies the action.
    A hook of a skill with `once` runs once a session.
    """

    event: str
    matcher: Matcher
    command: str | tuple[str, ...]
    timeout: float
    origin: HookOrigin
    background: bool = False
    condition: Condition = Condition()
    fail_closed: bool = False
    once: bool = False

    @property
    def command_line(self) -> str:
        """The command as one line."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    @property
    def filter_text(self) -> str:
        """The matcher and the condition; "" for everything."""
        matcher, condition = self.matcher.text, self.condition.text
        return f"{matcher} if {condition}".strip() if condition else matcher

    @property
    def label(self) -> str:
        """The beginning of the command, for a message."""
        line = sanitize_line(" ".join(self.command_line.split()))
        return line if len(line) <= _MAX_LABEL_LENGTH else f"{line[: _MAX_LABEL_LENGTH - 1]}…"


class ParsedHooks(NamedTuple):
    """The hooks of one place in their order, and a warning for each entry that cannot be used.

    `notice` names hooks of a type that only other programs run. It is the same in each session.
    """

    hooks: tuple[Hook, ...]
    warnings: tuple[str, ...] = ()
    notice: str = ""


class _OtherType(NamedTuple):
    name: str


def parse_hooks(tables: Mapping[str, Any], origin: HookOrigin, off: Collection[str] = ()) -> ParsedHooks:
    """The hooks in a table `hooks`: lists by event, whose entries have their own `hooks` or are a hook themselves.

    `off` are those to leave out, as `disabled_hooks` gives them.
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
            warnings += _misspelt_names(event, entry, f"hook {position} of `{event}` in {origin.where}")
            key = f"{origin.path}:{_CAPITAL.sub('_', event).lower()}:{position - 1}"
            for made in _hooks_of(event, entry, origin, [name for name in off if name.startswith(f"{key}:")]):
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
    """The table in a `hooks.json`: its key `hooks`, or else the document itself; empty when all hooks are disabled."""
    whole = as_object(document)
    if whole.get("disableAllHooks") is True:
        return {}
    inner = whole.get(_HOOKS, whole)
    # What is not a table is kept, so that `parse_hooks` warns about it.
    return as_object(cast("object", inner)) if isinstance(inner, dict) or not inner else {_HOOKS: inner}


def disabled_hooks(tables: Mapping[str, Any]) -> Iterator[str]:
    """The keys of hooks that the user has switched off, as Codex CLI writes them: file, event, entry and handler."""
    for key, state in as_object(tables.get(_STATE)).items():
        if as_object(state).get("enabled") is False:
            yield key


def _closes(entry: object) -> bool:
    """Whether an entry, or a hook in it, has `fail_closed`."""
    table = as_object(entry)
    return any(as_object(handler).get("fail_closed") for handler in (table, *as_list(table.get("hooks"))))


def _as_entries(entries: object) -> Sequence[object]:
    return [cast("object", entries)] if isinstance(entries, dict) else as_list(entries)


def _hooks_of(event: str, entry: object, origin: HookOrigin, off: Collection[str]) -> Iterator[Hook | _OtherType | str]:
    """The hooks of one entry, and the end of a warning for each fault."""
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
        if any(name.endswith(f":{number}") for name in off):
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
            # A hook with another timeout is better than none.
            yield f"has a `timeout` that is not a number of seconds above 0: {DEFAULT_TIMEOUT:g} is used"
        yield made


def _misspelt_names(event: str, entry: object, label: str) -> Iterator[str]:
    """A line for each name of a matcher or an `if` that is nearly one there is."""
    table, subject = as_object(entry), HOOK_EVENTS[event].subject
    conditions = [str(as_object(handler).get("if", "")) for handler in (table, *as_list(table.get("hooks")))]
    words = [*Matcher(str(table.get("matcher", ""))).words, *(text.partition("(")[0] for text in conditions)]
    for word, near in misspelt(words, subject):
        yield f"{label} is for `{word}`, and there is no such {subject.partition('_')[0]}; did you mean `{near}`?"


def _misspelled(handler: Mapping[str, Any]) -> Iterator[str]:
    """Report keys that look like misspelt known ones. Other programs have more keys, so unknown ones are allowed."""
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
        return "an `async` hook cannot be `fail_closed`: its result comes too late to deny anything"
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
        once=origin.layer == "skill" and handler.get("once") is True,
    )


def _seconds(handler: Mapping[str, Any]) -> float | None:
    """The timeout of a hook, None when it is not valid."""
    value = next((handler[key] for key in _TIMEOUTS if handler.get(key) is not None), DEFAULT_TIMEOUT)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return float(min(value, MAX_TIMEOUT))


def _command(handler: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    """A command line for a shell, or the arguments of a program; None when there is neither."""
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
