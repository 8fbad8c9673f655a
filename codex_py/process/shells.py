"""Which shell runs a command line, how it is called, and how its words are quoted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.paths import is_directory, is_there
from codex_py.process.env import find_executable

# Runs that one kind of quoting can hold. `^` is kept to the start of a single-quoted run and a backslash out of all of
# them but double quotes: shells disagree about both.
_PLAIN: Final = r"[+\-./:@\]_0-9A-Za-z]+\Z"
_SINGLE: Final = r"\^?[^'^\\]*"
_DOUBLE: Final = r"[^`$!^]*"


def join_words(words: Iterable[str]) -> str:
    """Quote each word where it needs it; a POSIX shell reads the result back as the same words."""
    return " ".join(quote_word(word) for word in words)


def quote_word(word: str) -> str:
    """One word: bare when it is plain, else as few quoted runs as can hold it, single quotes preferred."""
    if not word:
        return "''"
    if re.match(_PLAIN, word):
        return word
    runs: list[str] = []
    position = 0
    while position < len(word):
        run, position = _next_run(word, position)
        runs.append(run)
    return "".join(runs)


def _next_run(word: str, start: int) -> tuple[str, int]:
    single = re.compile(_SINGLE).match(word, start)
    double = re.compile(_DOUBLE).match(word, start)
    assert single is not None and double is not None  # both match the empty string
    if single.end() >= double.end() and single.end() > start:
        return f"'{single.group()}'", single.end()
    escaped = double.group().replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"', double.end()


_KNOWN: Final = ("bash", "zsh", "sh")
# Those that understand `NAME=value;`.
_ASSIGNING: Final = frozenset((*_KNOWN, "ash", "dash", "ksh", "mksh"))
# What login profiles usually reset PATH to; a shell named by its bare name is looked for here too.
_USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def user_shell(env: Mapping[str, str]) -> str:
    """The path of the user's own shell when it is bash, zsh or sh and runs; else the best one there is."""
    chosen = env.get("SHELL", "")
    if chosen.startswith("/") and Path(chosen).name in _KNOWN and os.access(chosen, os.X_OK):
        return chosen
    for name in ("/bin/bash", "/usr/bin/bash", "/bin/zsh"):
        if os.access(name, os.X_OK):
            return name
    return "/bin/sh"


def find_shell(name: str, env: Mapping[str, str]) -> str:
    """The shell the model asked for by path or by bare name; raise `ToolError` when it cannot be run."""
    path = name if "/" in name else find_executable(name, f"{env.get('PATH', '')}:{_USUAL_PATH}")
    if path is None or not path.startswith("/"):
        raise ToolError(f"cannot use shell `{name}`: not found")
    if not is_there(Path(path)):
        raise ToolError(f"cannot use shell `{name}`: no such file")
    if is_directory(Path(path)) or not os.access(path, os.X_OK):
        raise ToolError(f"cannot use shell `{name}`: not an executable file")
    return path


def has_posix_syntax(shell: str) -> bool:
    """Whether a shell understands `NAME=value;` and what else POSIX says, by its name."""
    return Path(shell).name in _ASSIGNING


def shell_argv(shell: str, script: str, *, login: bool) -> tuple[str, ...]:
    """The argument vector that makes `shell` run `script`."""
    return (shell, "-lc" if login else "-c", script)


def argv_without_profile(shell: str, script: str) -> tuple[str, ...]:
    """The argument vector that makes `shell` run `script` without the files it reads at start: zsh needs `-f`."""
    return (shell, *(("-f",) if Path(shell).name == "zsh" else ()), "-c", script)


def with_fixed_path(script: str, shell: str, path: str) -> str:
    """`script` with `path` as its `PATH`, whatever the profile of the `shell` makes of that; for a shell that assigns.

    The assignment stays on the script's first line, so that the line numbers of the shell's messages remain true.
    """
    return f"PATH={quote_word(path)}; {script}" if has_posix_syntax(shell) else script
