"""The environment of tool processes: the user's without secrets, with variables that keep output plain."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from codex_py.config.sections import ShellEnvironmentPolicy
from codex_py.paths import make_private_dir
from codex_py.programs import bundled_ripgrep
from codex_py.protocol.value import Value
from codex_py.text.credentials import has_credential

DEFAULT_EXCLUDES: Final = (
    *("*KEY*", "*SECRET*", "*TOKEN*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*COOKIE*"),
    *("*_PWD", "*_AUTH", "*_DSN", "*_PAT"),
)

_CORE: Final = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"),
    *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"),
)
_WILDCARDS: Final = frozenset("*?[")
_FORCED: Final = {
    "NO_COLOR": "1",
    "TERM": "dumb",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LC_CTYPE": "C.UTF-8",
    "COLORTERM": "",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "CODEX_CI": "1",
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS": "1",
}


class WithheldEnv(Value):
    """The variables that commands must not get: `names`, and those that `rules` exclude by name or value."""

    rules: ShellEnvironmentPolicy = ShellEnvironmentPolicy()
    names: frozenset[str] = frozenset()

    def holds(self, name: str, value: str) -> bool:
        """Whether commands must not get this variable from a profile."""
        rules = self.rules
        if name in self.names or matches_glob(name, rules.exclude):
            return True
        if rules.ignore_default_excludes or matches_glob(name, rules.allow):
            return False
        return matches_glob(name, DEFAULT_EXCLUDES) or has_credential(value)


def tool_environment(
    env: Mapping[str, str],
    rules: ShellEnvironmentPolicy,
    *,
    secrets: Collection[str] = (),
    extra: Mapping[str, str] | None = None,
    home: Path | None = None,
) -> dict[str, str]:
    """The variables of `env` that a tool process inherits under `rules`.

    A variable whose name looks like a secret is left out, and so is one whose value holds a credential of a known
    shape (see `withheld_by_value`). `secrets` are names that are never inherited whatever the rules say, such as the
    providers' key variables; only an explicit `set` brings one back. `extra` is what the session tells its commands
    (`CODEX_THREAD_ID` and the like). Where there is a `PATH`, a directory below `home` with the bundled `rg` ends it
    unless `rg` is found anyway.
    """
    inherited = _inherited(env, rules, frozenset(secrets))
    inherited.update(rules.set)
    if rules.include_only:
        inherited = {name: value for name, value in inherited.items() if matches_glob(name, rules.include_only)}
    inherited.update(_FORCED)
    inherited.update(extra or {})
    if "PATH" in inherited:
        inherited["PATH"] = with_bundled_tools(inherited["PATH"], home)
    return inherited


def withheld_by_value(env: Mapping[str, str], rules: ShellEnvironmentPolicy) -> tuple[str, ...]:
    """The variables that are kept from tool processes only because their value holds a credential, sorted.

    `rules.allow` passes one on; `rules.ignore_default_excludes` passes all on.
    """
    if rules.ignore_default_excludes:
        return ()
    names = _by_name(env, rules, frozenset(rules.set))
    return tuple(sorted(name for name in names if _is_withheld(name, env[name], rules)))


def matches_glob(name: str, globs: Collection[str]) -> bool:
    """Whether one of the globs matches the name of a variable, regardless of case."""
    if not globs:
        return False
    name = name.upper()
    return any(_is_match(name, glob.upper()) for glob in globs)


def with_bundled_tools(path: str, home: Path | None) -> str:
    """A `PATH` through which `rg` is found, if `home` can be written; the user's comes before the bundled one.

    The directory that is added, `bin` below `home`, holds nothing else: our own `python` and `pip`, which lie beside
    the bundled `rg`, must not be found in place of the user's.
    """
    program = bundled_ripgrep()
    if home is None or program is None or find_executable("rg", path):
        return path
    directory = home / "bin"
    link, new = directory / "rg", directory / f".rg-{os.getpid()}"
    try:
        if not link.is_symlink() or str(link.readlink()) != program:
            make_private_dir(directory)
            new.symlink_to(program)
            new.replace(link)
    except OSError:
        return path
    return f"{path}{os.pathsep}{directory}" if path else str(directory)


def front_activated(path: str, env: Mapping[str, str]) -> str:
    """A `PATH` made by a profile, with the virtual environments that are activated in `env` at its front again."""
    active = {f"{env[name]}/bin" for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if env.get(name)}
    front = [directory for directory in env.get("PATH", "").split(os.pathsep) if directory in active]
    rest = [directory for directory in path.split(os.pathsep) if directory not in front]
    return os.pathsep.join(dict.fromkeys(front)) + os.pathsep + os.pathsep.join(rest) if front else path


def find_executable(name: str, path: str) -> str | None:
    """Where `name` is found in the absolute directories of `path`; None when in none of them."""
    for directory in path.split(os.pathsep):
        if not directory.startswith("/"):
            continue  # A relative directory would mean something else for every command.
        candidate = f"{directory}/{name}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):  # noqa: PTH112 - start-up: one string, many probes
            return candidate
    return None


def _inherited(env: Mapping[str, str], rules: ShellEnvironmentPolicy, secrets: frozenset[str]) -> dict[str, str]:
    names = _by_name(env, rules, secrets)
    return {
        name: env[name] for name in names if rules.ignore_default_excludes or not _is_withheld(name, env[name], rules)
    }


def _is_withheld(name: str, value: str, rules: ShellEnvironmentPolicy) -> bool:
    return not matches_glob(name, rules.allow) and has_credential(value)


def _by_name(env: Mapping[str, str], rules: ShellEnvironmentPolicy, secrets: frozenset[str]) -> list[str]:
    """The variables that the rules about names let through."""
    match rules.inherit:
        case "none":
            return []
        case "core":
            names = [name for name in env if name.upper() in _CORE]
        case "all":
            names = list(env)
    excludes = () if rules.ignore_default_excludes else DEFAULT_EXCLUDES
    return [
        name
        for name in names
        if name not in secrets
        and not matches_glob(name, rules.exclude)
        and (not matches_glob(name, excludes) or matches_glob(name, rules.allow))
    ]


def _is_match(name: str, glob: str) -> bool:
    """`fnmatchcase`, without a compiled expression for `*X` and `*X*`: every start asks about every variable."""
    text = glob[1:].removesuffix("*")
    if not glob.startswith("*") or not _WILDCARDS.isdisjoint(text):
        return fnmatchcase(name, glob)
    return text in name if glob.endswith("*") else name.endswith(text)
