"""Limits a turn to the `allowed-tools` of a skill. A limit only takes away: approvals and sandbox stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from codex_py.protocol.value import Value
from codex_py.tools.spec import CommandField, EditedFile, OtherFields, PatchText, Tool, TypedText

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
