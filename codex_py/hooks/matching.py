"""Which hooks a tool call is for: matchers and conditions as Claude Code and Codex CLI read them, within limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from codex_py.protocol.encoding import as_list
from codex_py.protocol.value import Value
from codex_py.text.nearest import nearest

_MAX_LETTERS: Final = 1024
# Longer names are cut: the time of a search grows with them.
_MAX_NAME_LENGTH: Final = 128
# In one alternative of a pattern. Each can scan the whole name again.
_MAX_REPEATS: Final = 3
_BETWEEN_COMMANDS: Final = re.compile(r"[;&|\n(){}`]")
# What may come before a command: keywords of the shell, programs that run another program, variables.
_BEFORE: Final = re.compile(
    r"(?:(?:if|then|elif|else|while|until|do|time|!|exec|command|builtin|env|sudo|doas|nohup|nice|setsid|stdbuf|timeout"
    r"|xargs)\s+|-\S+\s+|\d\S*\s+|[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|\S*)\s+)+"
)
_MAX_COMMAND: Final = 64 * 1024
_PLAIN: Final = re.compile(r"[A-Za-z0-9_ ,|-]*")
# What the subject of an event is usually called, here and in other programs.
_USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "tool_name": (
        *("Bash", "Edit", "Write", "MultiEdit", "Read", "Grep", "Glob", "Task", "Skill", "TodoWrite"),
        *("edit_file", "write_file"),
        *("NotebookEdit", "WebFetch", "WebSearch", "AskUserQuestion", "SendMessage"),
        *("exec_command", "write_stdin", "apply_patch", "update_plan", "view_image", "request_user_input"),
        *("request_permissions", "skill", "shell", "shell_command", "spawn_agent", "send_input", "wait_agent"),
        *("close_agent", "list_agents", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
    ),
    "source": ("startup", "resume", "clear", "compact"),
    "trigger": ("manual", "auto", "init", "maintenance"),
    "reason": ("clear", "logout", "prompt_input_exit", "other"),
}


class Matcher(Value):
    """A matcher as it is written; "" and `*` match every name."""

    text: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def words(self) -> list[str]:
        """The names it lists; none where it is a regular expression."""
        return [word.strip() for word in re.split(r"[|,]", self.text)] if _PLAIN.fullmatch(self.text) else []

    def fits(self, name: str) -> bool:
        """Whether this name is one of its words, or its regular expression is found in the name."""
        if self.text in ("", "*"):
            return True
        if _PLAIN.fullmatch(self.text):
            return name in self.words
        return re.search(self.text, name[:_MAX_NAME_LENGTH]) is not None


class Condition(Value):
    """A hook's `if`: the name of a tool, or a rule such as `Bash(git push*)` or `Edit(*.py)`; "" holds for all calls.

    In doubt it holds: better a hook that runs too often than one that protects nothing.
    """

    text: str = ""

    def __str__(self) -> str:
        return self.text

    def holds(self, names: Iterable[str], tool_input: Mapping[str, Any]) -> bool:
        """Whether it holds for a call with these names: for its command, a part of it, or one of its files."""
        tool, _, pattern = self.text.partition("(")
        if not any(fnmatchcase(name, tool.strip() or "*") for name in names):
            return False
        pattern = pattern.removesuffix(")").strip()
        subjects = list(_subjects(tool_input))
        return pattern in ("", "*") or not subjects or any(_is_like(subject, pattern) for subject in subjects)


def misspelt(words: Iterable[str], subject: str) -> Iterator[tuple[str, str]]:
    """Each word that is nearly, and not quite, what a subject of events is usually called, with that name."""
    known = _USUAL.get(subject, ())
    for word in words:
        if word not in known and (near := nearest(word, known)):
            yield word, near


def _subjects(tool_input: Mapping[str, Any]) -> Iterator[str]:
    """The texts that a pattern is compared with; none where there are none, or where the command is too long."""
    command, path = tool_input.get("command"), tool_input.get("file_path")
    paths = [path_value for path_value in (path, *as_list(tool_input.get("file_paths"))) if isinstance(path_value, str)]
    if paths:
        yield from (name for path_value in paths for name in (path_value, path_value.rpartition("/")[2]))
    elif isinstance(command, str) and len(command) <= _MAX_COMMAND:
        yield command
        for part in dict.fromkeys(" ".join(path_value.split()) for path_value in _BETWEEN_COMMANDS.split(command)):
            yield part
            if before := _BEFORE.match(part):
                yield part[before.end() :]
                # The argument of an option, such as `-u me`.
                yield part[before.end() :].partition(" ")[2] if " -" in before[0] else ""


def _is_like(subject: str, pattern: str) -> bool:
    """Whether a text matches a pattern, in which `*` matches anything."""
    written = pattern.replace("[", "[[]").replace("?", "[?]")
    stem = written.removesuffix(":*").removesuffix(" *")
    patterns = (written,) if stem == written else (stem, f"{stem} *")
    # A pattern for files matches below any directory.
    return any(fnmatchcase(subject, glob) or fnmatchcase(subject, f"*/{glob.removeprefix('./')}") for glob in patterns)


def find_matcher_error(matcher: str) -> str | None:
    """Why a text is not a valid matcher, None when it is."""
    if len(matcher) > _MAX_LETTERS:
        return f"it is longer than {_MAX_LETTERS} letters"
    if _PLAIN.fullmatch(matcher) or matcher == "*":
        return None
    try:
        re.compile(matcher)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    return "its repetitions could take for ever" if _is_slow(matcher) else None


def _is_slow(pattern: str) -> bool:
    """Whether a search may take more than cubic time in the length of the name."""
    if re.search(r"\\[1-9]|\(\?P=", pattern):
        return True
    repeats = [0]
    # For each open group, whether it can match the same text in several ways.
    opened: list[bool] = []
    before = ""
    last_varies = False
    for sign in _signs(pattern):
        varies = False
        if sign == "(":
            opened.append(False)
        elif sign == ")":
            varies = bool(opened) and opened.pop()
        elif sign in ("*", "+", "{"):
            if last_varies:
                return True
            repeats[-1] += 1
            opened[:] = [True] * len(opened)
        elif sign == "|" and not opened:
            repeats.append(0)
        elif sign == "|" or (sign == "?" and before != "("):
            opened[:] = [True] * len(opened)
        before, last_varies = sign, varies
    return max(repeats) > _MAX_REPEATS


def _signs(pattern: str) -> Iterator[str]:
    """The characters of a pattern, with a letter in place of each escape and each set in brackets."""
    for found in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", pattern, re.DOTALL):
        yield found[0] if len(found[0]) == 1 else "a"
