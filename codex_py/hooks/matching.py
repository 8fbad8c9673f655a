"""Which hooks a name is for: matchers as Claude Code and Codex CLI read them, within bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from codex_py.protocol.encoding import as_list
from codex_py.protocol.value import Value

_MAX_LETTERS: Final = 1024
# What is longer is cut before it is looked at: the time of a search grows with it.
_MAX_NAME_LENGTH: Final = 128
# Of one alternative. Each can scan the whole name again.
_MAX_REPEATS: Final = 3
_BETWEEN_COMMANDS: Final = re.compile(r"[;&|\n(){}`]")
# What may stand before a command in its part of a script: words of the shell, programs that run another, variables.
_BEFORE: Final = re.compile(
    r"(?:(?:if|then|elif|else|while|until|do|time|!|exec|command|builtin|env|sudo|doas|nohup|nice|setsid|stdbuf|timeout"
    r"|xargs)\s+|-\S+\s+|\d\S*\s+|[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|\S*)\s+)+"
)
_MAX_COMMAND: Final = 64 * 1024
_PLAIN: Final = re.compile(r"[A-Za-z0-9_ ,|-]*")


class Matcher(Value):
    """`text` as it was written; "" and `*` are for every name."""

    text: str = ""

    def __str__(self) -> str:
        return self.text

    def fits(self, name: str) -> bool:
        """Whether it is for this name: one of its words, or, when it has other signs than words do, found in it."""
        if self.text in ("", "*"):
            return True
        if _PLAIN.fullmatch(self.text):
            return name in (word.strip() for word in re.split(r"[|,]", self.text))
        return re.search(self.text, name[:_MAX_NAME_LENGTH]) is not None


class Condition(Value):
    """A hook's `if`: the name of a tool, or a rule such as `Bash(git push*)` or `Edit(*.py)`; "" holds for all calls.

    In doubt it holds: a hook that runs once too often says nothing, one that does not run guards nothing.
    """

    text: str = ""

    def __str__(self) -> str:
        return self.text

    def holds(self, names: Iterable[str], tool_input: Mapping[str, Any]) -> bool:
        """Whether it is for a call with these names and this input: its command, a part of that, or its file."""
        tool, _, pattern = self.text.partition("(")
        if not any(fnmatchcase(name, tool.strip() or "*") for name in names):
            return False
        pattern = pattern.removesuffix(")").strip()
        subjects = list(_subjects(tool_input))
        return pattern in ("", "*") or not subjects or any(_is_like(subject, pattern) for subject in subjects)


def _subjects(tool_input: Mapping[str, Any]) -> Iterator[str]:
    """What a pattern is held against; nothing where there is nothing of that kind, or too much to go through."""
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
                # The word of an option, such as `-u me`.
                yield part[before.end() :].partition(" ")[2] if " -" in before[0] else ""


def _is_like(subject: str, pattern: str) -> bool:
    """Whether a text is like a pattern, in which `*` stands for anything."""
    written = pattern.replace("[", "[[]").replace("?", "[?]")
    stem = written.removesuffix(":*").removesuffix(" *")
    patterns = (written,) if stem == written else (stem, f"{stem} *")
    # A pattern for files is for those below any directory.
    return any(fnmatchcase(subject, glob) or fnmatchcase(subject, f"*/{glob.removeprefix('./')}") for glob in patterns)


def find_matcher_error(matcher: str) -> str | None:
    """Why a text is no matcher, None when it is one."""
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
    """Whether a search may take longer than the third power of the name's length allows."""
    if re.search(r"\\[1-9]|\(\?P=", pattern):
        return True
    repeats = [0]
    # For each group that is open, whether it can match one text in several ways.
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
    """What means something in a pattern, character by character: an escape or a set in brackets is one letter."""
    for found in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", pattern, re.DOTALL):
        yield found[0] if len(found[0]) == 1 else "a"
