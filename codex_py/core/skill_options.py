"""Applies the front matter of the skills in use to the rest of a turn: model, effort, tools, hooks.

The one resolver for every way a skill is used. The changes end with the turn. `allowed-tools` only takes away:
approvals and sandbox stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.core.fallback import ModelFallback
from codex_py.core.sampling import Sampler
from codex_py.core.session_services import SessionServices
from codex_py.core.turn_context import CurrentSettings, ModelSettings
from codex_py.errors import ModelError, UserError
from codex_py.model.client import TurnState
from codex_py.model.failures import TOO_LONG
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.value import Value
from codex_py.skills.model import Skill
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line
from codex_py.tools.spec import CallLimit, CommandField, EditedFile, OtherFields, PatchText, Tool, TypedText

AppliedOptions: TypeAlias = tuple[tuple[str, str], ...]

_SAME: Final = ("", "inherit", "default")
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_CLAUDE: Final = ("haiku", "sonnet", "opus", "claude", "best", "opusplan")


class SkillOptionsInForce:
    """The options of the skills of the running turn. A value that is refused costs a warning, and nothing else."""

    def __init__(
        self,
        services: SessionServices,
        settings: CurrentSettings,
        fallback: ModelFallback,
        warn: Callable[[str], None],
    ) -> None:
        self._services = services
        self._fallback = fallback
        self._settings = settings
        self._warn = warn
        self._applied: dict[Path, AppliedOptions] = {}
        self._limits: list[CallLimit] = []
        # Those of the model before a skill chose another one, and those to go on with.
        self._before: ModelSettings | None = None
        self._coming: ModelSettings | None = None

    @property
    def limits(self) -> tuple[CallLimit, ...]:
        """The limits on calls; a call has to pass each of them."""
        return tuple(self._limits)

    def begin_turn(self) -> None:
        """Go back to what the user has chosen."""
        self._applied.clear()
        self._limits.clear()
        self._before = self._coming = None
        self._fallback.begin_turn()

    def apply(self, skill: Skill) -> AppliedOptions:
        """Let the options of a skill hold for the rest of the turn, once; those that do, as they are written."""
        path = skill.canonical_path
        if path not in self._applied:
            dynamic = (("dynamic", "true"),) if skill.options.dynamic else ()
            self._applied[path] = (
                *self._apply_model(skill),
                *self._apply_tools(skill),
                *dynamic,
                *self._apply_hooks(skill),
            )
        return self._applied[path]

    def note_fork(self, skill: Skill, role: str) -> None:
        """A skill runs as a subagent, in whose session its other options hold."""
        self._applied[skill.canonical_path] = (("context", "fork"), *((("agent", role),) if role else ()))

    def next_sampler(self, sampler: Sampler) -> Sampler:
        """The sampler for the next request, with the model and the effort that a skill asks for."""
        settings, self._coming = self._coming, None
        if settings is None:
            return sampler
        return _with_settings(sampler, settings)

    def fall_back(self, sampler: Sampler, error: ModelError) -> Sampler | None:
        """The sampler with the user's own model, when the one that a skill asks for is refused; else a fallback."""
        before, self._before = self._before, None
        chosen = sampler.turn.settings
        if before is None or error.retryable or error.unreachable or error.code == TOO_LONG:
            self._before = before
            return self._fallback.next_sampler(sampler, error)
        self._settings.now = self._settings.now.replace(model=before)
        what = f"model `{chosen.model}`" if chosen.model != before.model else f"effort `{chosen.effort}`"
        self._warn(f"the {what} that a skill asks for is refused ({error}); `{before.model}` goes on with this turn")
        return _with_settings(sampler, before)

    def _apply_model(self, skill: Skill) -> AppliedOptions:
        now = self._settings.now
        model = self._usable_model(skill, now.model)
        effort = self._usable_effort(skill)
        if (model or now.model.model, effort or now.model.effort) == (now.model.model, now.model.effort):
            return tuple((key, value) for key, value in (("model", model), ("effort", effort)) if value)
        # The provider is the session's: a skill must not send the conversation to another one.
        op = OverrideTurnContext(model=model or None, effort=effort or None, provider=now.model.provider or None)
        try:
            after, _ = self._services.override(op, now)
        except UserError as error:
            self._refuse(skill, "`model` and `effort`", str(error))
            return ()
        if self._before is None:
            self._before = now.model
        self._coming = after.model
        self._settings.now = now.replace(model=after.model)
        return tuple((key, value) for key, value in (("model", model), ("effort", effort)) if value)

    def _usable_model(self, skill: Skill, now: ModelSettings) -> str:
        model = skill.options.model
        if model.lower() in _SAME:
            return ""
        if model.lower().startswith(_CLAUDE) and "claude" not in now.model:
            self._refuse(skill, f"`model: {model}`", f"this session asks `{now.model}`")
            return ""
        if any(char.isspace() for char in model):
            self._refuse(skill, f"`model: {model}`", "it is not the name of a model")
            return ""
        return model

    def _usable_effort(self, skill: Skill) -> str:
        effort = skill.options.effort
        if effort in _SAME or effort in _EFFORTS:
            return "" if effort in _SAME else effort
        guess = did_you_mean(effort, _EFFORTS)
        self._refuse(skill, f"`effort: {effort}`", guess or f"there are {', '.join(_EFFORTS)}")
        return ""

    def _apply_tools(self, skill: Skill) -> AppliedOptions:
        if not skill.allowed_tools:
            return ()
        limit, unused = read_limit(sanitize_line(skill.name), [sanitize_line(entry) for entry in skill.allowed_tools])
        if unused:
            self._refuse(skill, "of `allowed-tools`", f"these permit nothing here: {', '.join(unused)}")
        self._limits.append(limit)
        return (("allowed-tools", limit.text),)

    def _apply_hooks(self, skill: Skill) -> AppliedOptions:
        run = self._services.tools.hooks.use_skill(skill)
        return (("hooks", ", ".join(run)),) if run else ()

    def _refuse(self, skill: Skill, what: str, why: str) -> None:
        self._warn(f"the skill `{sanitize_line(skill.name)}`: {what} is left out: {why}")


def _with_settings(sampler: Sampler, settings: ModelSettings) -> Sampler:
    turn = sampler.turn
    is_other = settings.model != turn.settings.model
    state = TurnState() if is_other else sampler.turn_state
    return sampler.replace(turn=turn.replace(settings=settings), turn_state=state)


_READING: Final = frozenset(("Read", "Grep", "Glob", "LS", "NotebookRead"))
_WRITING: Final = frozenset(("Edit", "Write", "MultiEdit", "NotebookEdit"))
_SHELL: Final = "Bash"
# Names of tools that other programs have and this one has not: they permit nothing.
_OTHERS: Final = frozenset(
    "WebFetch WebSearch Task Agent TodoWrite TodoRead Skill AskUserQuestion SendMessage BashOutput KillShell KillBash"
    " ExitPlanMode EnterPlanMode ToolSearch LSP".split()
)
_COMMANDS: Final = frozenset(("exec_command", "shell", "shell_command", "write_stdin"))
_PATCHING: Final = frozenset(("apply_patch", "edit_file", "write_file"))
_ENTRY: Final = r"([^\s,()]+)(?:\((.*)\))?"


class ToolLimit(Value):
    """The tools that one skill permits. `programs` are the patterns of `Bash(…)`; `text` is what the skill says."""

    skill: str
    text: str
    names: frozenset[str] = frozenset()
    programs: tuple[str, ...] = ()

    @property
    def _reads(self) -> bool:
        return not self.names.isdisjoint(_READING)

    @property
    def _runs_all(self) -> bool:
        return _SHELL in self.names or not self.names.isdisjoint(_COMMANDS)

    def refuse_tool(self, tool: Tool, name: str, *, types: bool = False) -> str | None:
        """Why a tool must not be called; None for one that may, and for one whose command is judged later.

        `name` is the whole name of the call. `types` says that the call types something into a running command.
        """
        match tool.hook_view:
            case CommandField():
                is_allowed = self._runs_all or self._reads or bool(self.programs)
            case TypedText():
                is_allowed = self._runs_all or not types
            case PatchText() | EditedFile():
                is_allowed = tool.name in self.names or not self.names.isdisjoint(_WRITING)
            case OtherFields(aliases):
                known = {tool.name, name, *aliases, *tool.other_names}
                is_harmless = tool.type == "plans" or (tool.type == "asks" and tool.name != "request_permissions")
                is_read = self._reads and tool.type in ("reads", "searches")
                is_allowed = is_harmless or is_read or not known.isdisjoint(self.names) or self._has_server(name)
        return None if is_allowed or "*" in self.names else self._refusal(f"`{name}`")

    def refuse_command(self, segments: Sequence[tuple[str, ...]] | None, safe: Sequence[tuple[str, ...]]) -> str | None:
        """Why a command must not run: `segments` are its parts, None if unknown; `safe` those that read."""
        if self._runs_all or "*" in self.names:
            return None
        if segments and all(self._permits(words, safe) for words in segments):
            return None
        return self._refusal("this command")

    def refuse_patch(self) -> str | None:
        """Why no patch may be written."""
        is_allowed = not self.names.isdisjoint({*_WRITING, *_PATCHING, "*"})
        return None if is_allowed else self._refusal("a patch")

    def _permits(self, words: tuple[str, ...], safe: Sequence[tuple[str, ...]]) -> bool:
        if (self.programs and words[0] == "cd") or (self._reads and words in safe):
            return True
        return any(_fits(pattern, words) for pattern in self.programs)

    def _has_server(self, name: str) -> bool:
        """Whether a permitted `mcp__server`, or `mcp__server__*`, means the tool."""
        return any(
            name.startswith(f"{permitted.removesuffix('*').rstrip('_')}__")
            for permitted in self.names
            if permitted.startswith("mcp__") and (permitted.count("__") == 1 or permitted.endswith("__*"))
        )

    def _refusal(self, what: str) -> str:
        return f"{what} is not among what the skill `{self.skill}` permits in this turn (`allowed-tools: {self.text}`)"


def read_limit(skill: str, entries: Sequence[str]) -> tuple[ToolLimit, list[str]]:
    """The limit of a skill's `allowed-tools`, and those of its entries that permit nothing here."""
    names: set[str] = set()
    programs: list[str] = []
    unused: list[str] = []
    for entry in entries:
        found = re.fullmatch(_ENTRY, entry)
        name, within = (found[1], found[2]) if found else (entry, "")
        if name == _SHELL and within is not None and within.strip() not in ("", "*", ":*"):
            programs.append(within.strip())
        elif name == _SHELL or (within is None and _is_known(name)):
            names.add(name)
        else:
            unused.append(entry)
    return ToolLimit(skill, ", ".join(entries), frozenset(names), tuple(programs)), unused


def _is_known(name: str) -> bool:
    # Names in lower case are ours, or those of MCP servers.
    return name == "*" or name in _READING | _WRITING | _OTHERS or name[:1].islower()


def _fits(pattern: str, words: tuple[str, ...]) -> bool:
    """Whether a command is one of a pattern: `git add:*` and `git add *` begin with these words, others are whole."""
    if pattern.endswith((":*", " *")):
        start = pattern[:-2].split()
        return "*" not in pattern[:-2] and list(words[: len(start)]) == start
    if "*" not in pattern:
        return list(words) == pattern.split()
    expression = ".*".join(map(re.escape, pattern.split("*")))
    return re.fullmatch(expression, " ".join(words)) is not None
