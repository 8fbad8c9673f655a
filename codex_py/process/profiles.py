"""Reads the profile of a login shell once per session; commands start with what it left, and without the profile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Final

from codex_py.process.env import WithheldEnv, front_activated, with_bundled_tools
from codex_py.process.session import RunningCommand
from codex_py.process.shells import has_posix_syntax, quote_word, shell_argv
from codex_py.process.spawn import CommandSpec
from codex_py.process.sweep import MARKER
from codex_py.protocol.command import MAX_STARTS
from codex_py.protocol.value import Value

_SECONDS: Final = 10.0
_MAX_BYTES: Final = 1024 * 1024
# Variables that belong to one process, or are set for each command.
_OWN: Final = frozenset({"PWD", "OLDPWD", "SHLVL", "_", "CODEX_TOOL_CALL_ID", MARKER})
_FIXED_OPTIONS: Final = (b"login_shell", b"restricted_shell")
# Functions that bash cannot read back are left out. `>|` writes in spite of `set -C`.
_BASH_PROBE: Final = """\
{{
    /usr/bin/env -0
    builtin printf '\\0'
    builtin umask
    builtin shopt -p
    builtin declare -f | BASH_ENV= "$BASH" --norc -O extglob -n && builtin declare -f
    builtin printf '\\0'
}} >|/dev/fd/{fd}
"""
_POSIX_PROBE: Final = "\\exec /usr/bin/env -0 >|/dev/fd/{fd}"
_OTHER_PROBE: Final = "exec /usr/bin/env -0 >/dev/fd/{fd}"


class Profile(Value):
    """The effects of a profile. The default is a profile that does nothing."""

    changed: Mapping[str, str] = MappingProxyType({})
    removed: frozenset[str] = frozenset()
    statements: bytes = b""
    """For bash: umask, options and functions."""

    def apply(self, spec: CommandSpec) -> CommandSpec:
        """`spec` with the effects of the profile; the descriptor it may add is the spec's to close."""
        env = {name: value for name, value in {**spec.env, **self.changed}.items() if name not in self.removed}
        if not self.statements or "POSIXLY_CORRECT" in env:  # then bash does not read BASH_ENV
            return spec.replace(env=env)
        fd = _open_memory()
        # A BASH_ENV of the user's own is read after the profile, as in a login shell.
        own = b"unset BASH_ENV"
        if (path := env.get("BASH_ENV")) is not None:
            own = b'export BASH_ENV=%b; [ ! -r "$BASH_ENV" ] || . "$BASH_ENV"' % os.fsencode(quote_word(path))
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(b"exec %d<&-\n%b\n%b\n" % (fd, self.statements, own))
        os.lseek(fd, 0, os.SEEK_SET)
        return spec.replace(env={**env, "BASH_ENV": f"/dev/fd/{fd}"}, fds=(*spec.fds, fd))


class LoginProfiles:
    """The profiles of a session's shells. Variables that are `withheld` from commands are taken from none of them.

    `home` is for `with_bundled_tools`.
    """

    def __init__(
        self,
        run: Callable[[CommandSpec, float], Awaitable[RunningCommand]],
        withheld: WithheldEnv | None = None,
        home: Path | None = None,
    ) -> None:
        self._run = run
        self._withheld = withheld or WithheldEnv()
        self._home = home
        self._profiles: dict[str, Profile] = {}
        self._reading = asyncio.Lock()

    async def read(
        self,
        shell: str,
        spec: CommandSpec,
        wrap: Callable[[CommandSpec], CommandSpec],
        warn: Callable[[str], None],
    ) -> Profile:
        """The effects of the profile of `shell` on the environment of `spec`; `wrap` puts the probe into the sandbox.

        A profile that cannot be read within ten seconds changes nothing, and `warn` gets a line about it, once.
        """
        async with self._reading:  # calls that run at once read it once
            if shell not in self._profiles:
                found = await self._probe(shell, spec, wrap)
                if found is None:
                    warn(f"cannot read the login profile of `{shell}`: commands run in the environment of codex-py")
                self._profiles[shell] = found or Profile()
            return self._profiles[shell]

    async def _probe(self, shell: str, spec: CommandSpec, wrap: Callable[[CommandSpec], CommandSpec]) -> Profile | None:
        is_bash = Path(shell).name == "bash"
        script = _BASH_PROBE if is_bash else _POSIX_PROBE if has_posix_syntax(shell) else _OTHER_PROBE
        answer = _open_memory()
        try:
            for _ in range(MAX_STARTS):
                fd = os.dup(answer)
                probe = spec.replace(argv=shell_argv(shell, script.format(fd=fd), login=True), fds=(fd,))
                try:
                    wrapped = wrap(probe)
                except BaseException:
                    probe.discard()
                    raise
                ran = await self._run(wrapped, _SECONDS)
                if not ran.never_began:
                    return self._found(wrapped.env, os.pread(answer, 2 * _MAX_BYTES, 0), is_bash=is_bash)
        finally:
            os.close(answer)
        return None

    def _found(self, before: Mapping[str, str], answer: bytes, *, is_bash: bool) -> Profile | None:
        """Read the answer of a probe: variables with a NUL each, and for bash the rest with a NUL on both sides."""
        block, rest = answer, b""
        if is_bash:
            block, _, rest = answer.partition(b"\0\0")
        if not block or not answer.endswith(b"\0") or len(rest) > _MAX_BYTES:
            return None
        entries = block.decode("utf-8", "surrogateescape").strip("\0").split("\0")
        after = dict(entry.split("=", 1) for entry in entries if "=" in entry)
        if "PATH" in after:
            after["PATH"] = with_bundled_tools(front_activated(after["PATH"], before), self._home)
        changed = {
            name: value
            for name, value in after.items()
            if name not in _OWN
            and before.get(name) != value
            and (name in before or not self._withheld.holds(name, value))
        }
        removed = frozenset(
            name for name in before.keys() - after.keys() - _OWN if name.isascii() and name.isidentifier()
        )
        lines = rest.removesuffix(b"\0").split(b"\n")
        lines = [line for line in lines if not (line.startswith(b"shopt -") and line.endswith(_FIXED_OPTIONS))]
        return Profile(changed=changed, removed=removed, statements=b"umask " + b"\n".join(lines) if is_bash else b"")


def _open_memory() -> int:
    """An empty file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("profile", os.MFD_CLOEXEC)
    with TemporaryFile() as file:
        return os.dup(file.fileno())
