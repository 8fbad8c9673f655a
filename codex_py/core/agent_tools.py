"""Which tools a role leaves an agent: names of ours, and those Claude Code has for the same work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.protocol.value import Value
from codex_py.tools.lazy import AGENT_TOOLS

_COMMANDS: Final = ("exec_command", "write_stdin", "shell", "shell_command")
_LOOK: Final = (*_COMMANDS, "view_image")
# By the other program's name: our tools that do the work of it.
_OWN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("read", "grep", "glob", "ls", "notebookread", "lsp"), _LOOK),
    **dict.fromkeys(("bash", "bashoutput", "killshell", "killbash"), _LOOK),
    **dict.fromkeys(("write", "edit", "multiedit", "notebookedit"), ("apply_patch", *_LOOK)),
    **dict.fromkeys(("webfetch", "websearch"), ("web_search",)),
    **dict.fromkeys(("task", "agent"), tuple(sorted(AGENT_TOOLS))),
    "todowrite": ("update_plan",),
    "askuserquestion": ("request_user_input",),
    "skill": ("skill",),
    "exec_command": _COMMANDS,
    "shell": _COMMANDS,
}
_WRITING: Final = frozenset(
    {"bash", "write", "edit", "multiedit", "notebookedit", "apply_patch", *_COMMANDS},
)


class ToolChoice(Value):
    """The names that are allowed, None for all, and those that are not whatever else is said.

    An entry that ends in `*` stands for all names that begin like it; `mcp__server` stands for all of its tools.
    `reads_only` says that none of them is there to change anything.
    """

    allowed: frozenset[str] | None
    denied: frozenset[str] = frozenset()
    reads_only: bool = False

    def allows(self, name: str) -> bool:
        """Whether an agent may use the tool of this name."""
        return (self.allowed is None or _matches(name, self.allowed)) and not _matches(name, self.denied)


def choose_tools(names: Sequence[str] | None, denied: Sequence[str]) -> ToolChoice | None:
    """What a role's lists come to; None when they say nothing. Names that nobody knows allow nothing."""
    if (names is None or "*" in names) and not denied:
        return None
    plain = None if names is None or "*" in names else [_plain(name) for name in names]
    gone = {_plain(name).lower() for name in denied}
    if plain is not None:
        plain = [name for name in plain if name.lower() not in gone]
        # It says again what is not in the list; files are read with commands here, whoever may read them.
        gone -= {"bash"} if any("exec_command" in _own_names(name) for name in plain) else set()
    return ToolChoice(
        allowed=None if plain is None else frozenset(own_name for name in plain for own_name in _own_names(name)),
        denied=frozenset(
            own_name for name in map(_plain, denied) if name.lower() in gone for own_name in _denied(name)
        ),
        reads_only=plain is not None and not any(name.lower() in _WRITING for name in plain),
    )


def _own_names(name: str) -> tuple[str, ...]:
    return _OWN_NAMES.get(name.lower(), (name,))


def _denied(name: str) -> tuple[str, ...]:
    """What is taken away with a name: with `Write` the patches, and not the shell that reads files as well."""
    if name.lower() in ("bash", *_COMMANDS):
        return _COMMANDS
    return tuple(own_name for own_name in _own_names(name) if own_name == name or own_name not in _LOOK)


def _plain(name: str) -> str:
    """A name without the pattern of arguments behind it, as in `Bash(git:*)`."""
    return name.partition("(")[0].strip()


def _matches(name: str, entries: frozenset[str]) -> bool:
    if name in entries:
        return True
    return any(
        (entry.endswith("*") and name.startswith(entry[:-1]))
        or (entry.startswith("mcp__") and name.startswith(f"{entry}__"))
        for entry in entries
    )
