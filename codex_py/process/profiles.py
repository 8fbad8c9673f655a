"""Runs the profile of a login bash once per session, and withholds secret variables that profiles export.

A profile may take a second, as version managers do, and its output would be in that of every command. So once bash has
read it, later commands start with its results: exported variables, functions, options and the umask. Other shells
read their profiles each time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from codex_py.process.env import DEFAULT_EXCLUDES, EnvironmentRules, matches_glob
from codex_py.process.shells import has_posix_syntax, quote_word
from codex_py.process.sweep import MARKER
from codex_py.protocol.value import Value
from codex_py.text.credentials import has_credential

# Globs that can match the name of a variable.
_GLOB: Final = r"[A-Z0-9_*?\[\]!-]+"
# The commonest credentials for awk, some of which know no `{16,}`; `has_credential` knows more.
_TAIL: Final = "[A-Za-z0-9_-]" * 16
_START: Final = "(^|[^A-Za-z0-9])"
_SHAPES: Final = (
    f"{_START}(gh[opsur]_|github_pat_|glpat-|sk-|[rs]k_live_|xox[a-z]-|npm_|pypi-|hf_|AKIA|AIza|eyJ){_TAIL}"
    "|-----BEGIN [A-Z ]*PRIVATE KEY|://[^/@:]*:[^/@]+@"
)


class WithheldEnv(Value):
    """The variables that commands must not get: `names`, and those that `rules` exclude by name or value."""

    rules: EnvironmentRules = EnvironmentRules()
    names: frozenset[str] = frozenset()

    def holds(self, name: str, value: str) -> bool:
        """Whether commands must not get this variable from a profile."""
        rules = self.rules
        if name in self.names or matches_glob(name, rules.exclude):
            return True
        if rules.ignore_default_excludes or matches_glob(name, rules.allow):
            return False
        return matches_glob(name, DEFAULT_EXCLUDES) or has_credential(value)

    def unset_script(self, passed: Collection[str]) -> str:
        """POSIX shell, one line, that unsets what a profile exported, except the variables `passed` to the shell.

        Names and the commonest shapes only: a shell cannot ask `has_credential`. The `names` go without awk.
        """
        passed_names = " ".join(sorted(filter(_is_identifier, passed)))
        names = " ".join(sorted(name for name in self.names if _is_identifier(name) and name not in passed))
        condition = self._condition()
        plain = f"unset {names}; " if names else ""
        if not condition:
            return plain
        program = (
            "BEGIN { for (n in ENVIRON) if (n ~ /^[A-Za-z_][A-Za-z0-9_]*$/"
            f' && !index(" {passed_names} ", " " n " ") && ({condition})) printf "unset %s;", n }}'
        )
        return f"{plain}eval \"$(command -p awk '{program}')\"; "

    def _condition(self) -> str:
        """For awk, where `n` is the name of a variable."""
        rules = self.rules
        found = [f"toupper(n) ~ /{_expression(rules.exclude)}/"] if _expression(rules.exclude) else []
        if not rules.ignore_default_excludes:
            allowed = _expression(rules.allow)
            unless = f" && toupper(n) !~ /{allowed}/" if allowed else ""
            shapes = _SHAPES.replace("/", "\\/")
            found.append(f"(toupper(n) ~ /{_expression(DEFAULT_EXCLUDES)}/ || ENVIRON[n] ~ /{shapes}/){unless}")
        return " || ".join(found)


def _expression(globs: Collection[str]) -> str:
    usable = [glob.upper() for glob in globs if re.fullmatch(_GLOB, glob.upper())]
    translated = [glob.replace("*", ".*").replace("?", ".").replace("[!", "[^") for glob in usable]
    return f"^({'|'.join(translated)})$" if translated else ""


def _is_identifier(name: str) -> bool:
    return name.isascii() and name.isidentifier()


_MAX_BYTES: Final = 1024 * 1024
# Variables that belong to one process, or are set for each command.
_OWN: Final = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV", "CODEX_TOOL_CALL_ID", MARKER})
_EXPORTED_FUNCTION: Final = ("BASH_FUNC_", "%%")
_FIXED_OPTIONS: Final = (b"login_shell", b"restricted_shell")

# Read by bash after its profile, and by every other bash that the profile starts, in which it has no effect. If bash
# cannot read its own functions back, there is no answer.
_LESSON: Final = """\
builtin shopt -q login_shell || return 0
unset BASH_ENV
builtin declare -f | "$BASH" -O extglob -n && {{
    command -p env -0
    builtin printf '\\0'
    builtin umask
    builtin shopt -p
    builtin declare -f
    builtin printf '\\0'
}} >&{answer} 2>/dev/null
exec {answer}>&- {script}<&-
"""


class ShellStart:
    """How to start a shell: as a login shell or not, and with which `fds`, as in `PreparedCommand`.

    `no_profile` says that a login shell need not read its profile. `before` runs before the command, in the same line.
    """

    def __init__(
        self,
        *,
        login: bool,
        no_profile: bool = False,
        fds: tuple[int, ...] = (),
        lesson: _Lesson | None = None,
        before: str = "",
    ) -> None:
        self.login = login
        self.no_profile = no_profile
        self.fds = fds
        self._lesson = lesson
        self._before = before

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment to start it with, based on `env`."""
        if self._lesson is not None:
            self._lesson.before = dict(env)
        return {**env, "BASH_ENV": f"/dev/fd/{self.fds[0]}"} if self.fds else dict(env)

    def script(self, text: str) -> str:
        """`text` with the descriptors closed first: what is written to them affects later commands."""
        text = self._before + text
        closed = " ".join(f"{fd}>&-" for fd in self.fds)
        return f"exec {closed}; {text}" if self._lesson is not None else text


class LoginProfiles:
    """The profiles of a session's shells. Variables that are `withheld` from commands are taken from none of them."""

    def __init__(self, withheld: WithheldEnv | None = None) -> None:
        self._withheld = withheld or WithheldEnv()
        self._statements: dict[str, bytes | None] = {}
        self._lessons: dict[str, _Lesson] = {}

    def start(self, shell: str, env: Mapping[str, str]) -> ShellStart:
        """How to start `shell` so that a command has the environment that its profile makes of `env`."""
        if Path(shell).name != "bash" or "BASH_ENV" in env or not hasattr(os, "memfd_create"):
            return ShellStart(login=True, before=self._unset_script(shell, env))
        lesson = self._lessons.get(shell)
        if lesson is not None and lesson.is_over():
            self._statements[shell] = lesson.statements(self._withheld)
            self._lessons.pop(shell).close()
        if shell not in self._statements:
            return self._teach(shell, env)
        statements = self._statements[shell]
        if statements is None:
            return ShellStart(login=True, before=self._unset_script(shell, env))
        script = os.memfd_create("profile", os.MFD_CLOEXEC)
        os.write(script, b"exec %d<&-\nunset BASH_ENV\n%b" % (script, statements))
        return ShellStart(login=True, no_profile=True, fds=(script,))

    def close(self) -> None:
        """Close the lessons that are still open."""
        for lesson in self._lessons.values():
            lesson.close()
        self._lessons.clear()

    def _unset_script(self, shell: str, env: Mapping[str, str]) -> str:
        return self._withheld.unset_script(env.keys()) if has_posix_syntax(shell) else ""

    def _teach(self, shell: str, env: Mapping[str, str]) -> ShellStart:
        """Start a shell that reports what its profile does; it replaces an older one, which may have been killed."""
        if shell in self._lessons:
            self._lessons.pop(shell).close()
        answer = os.memfd_create("answer", os.MFD_CLOEXEC)
        script = os.memfd_create("lesson", os.MFD_CLOEXEC)
        os.write(script, _LESSON.format(answer=answer, script=script).encode())
        lesson = self._lessons[shell] = _Lesson(os.dup(answer))
        return ShellStart(login=True, fds=(script, answer), lesson=lesson, before=self._unset_script(shell, env))


class _Lesson:
    """Reads what a shell reports about its profile; `before` is the environment it was started with."""

    def __init__(self, answer: int) -> None:
        self.before: Mapping[str, str] = {}
        self._answer = answer

    def is_over(self) -> bool:
        env_block, rest = self._read_answer()
        return bool(env_block) and rest.endswith(b"\0")

    def statements(self, withheld: WithheldEnv) -> bytes | None:
        """Bash statements with the effects of the profile; None when they would be too long."""
        env_block, rest = self._read_answer()
        found = dict(_variable(entry) for entry in env_block.split(b"\0"))
        after = {name: value for name, value in found.items() if name in self.before or not withheld.holds(name, value)}
        umask, *lines = rest.removesuffix(b"\0").split(b"\n")
        options = [line for line in lines if line.startswith(b"shopt -")]
        functions = lines[len(options) :]
        statements = b"\n".join(
            [
                *_exports(self.before, after),
                b"umask " + umask,
                *(line for line in options if not line.endswith(_FIXED_OPTIONS)),
                *functions,
                *(f"export -f {name}".encode() for name in _exported_functions(after)),
            ]
        )
        return statements + b"\n" if len(statements) < _MAX_BYTES else None

    def close(self) -> None:
        os.close(self._answer)

    def _read_answer(self) -> tuple[bytes, bytes]:
        """The variables, each but the last with a NUL after it; and umask, options and functions, a NUL at the end."""
        env_block, _, rest = os.pread(self._answer, 2 * _MAX_BYTES, 0).partition(b"\0\0")
        return env_block, rest


def _variable(entry: bytes) -> tuple[str, str]:
    name, _, value = entry.decode("utf-8", "surrogateescape").partition("=")
    return name, value


def _exports(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[bytes]:
    for name, value in after.items():
        if _is_name(name) and name not in _OWN and before.get(name) != value:
            yield f"export {name}={quote_word(value)}".encode("utf-8", "surrogateescape")
    for name in before.keys() - after.keys() - _OWN:
        if _is_name(name):
            yield f"unset {name}".encode()


def _exported_functions(after: Mapping[str, str]) -> Iterator[str]:
    begin, end = _EXPORTED_FUNCTION
    for name in after:
        if name.startswith(begin) and name.endswith(end):
            yield quote_word(name[len(begin) : -len(end)])


def _is_name(name: str) -> bool:
    """Whether bash treats it as a variable."""
    return name.isascii() and name.isidentifier()
