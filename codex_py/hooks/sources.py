"""The hooks of every layer: managed, the user's, those of a project the user trusts, and those of plugins.

`skill_hooks.py` has those of skills.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from codex_py.config.files import read_text, weak_permissions
from codex_py.config.layers import parse_toml
from codex_py.config.load import HOOKS_FILE, LoadedConfig
from codex_py.config.project import MAX_PROJECT_FILE_BYTES, project_files, unsafe_file
from codex_py.errors import UserError
from codex_py.hooks.schema import Hook, HookOrigin, ParsedHooks, disabled_hooks, hook_tables, parse_hooks
from codex_py.hooks.trust import (
    CHANGED,
    HookScripts,
    TrustedHooks,
    copy_scripts,
    entry_fingerprint,
    fingerprint,
    fingerprint_with,
    hook_files,
)
from codex_py.plugins.manifests import enabled_plugins, written_hooks
from codex_py.plugins.record import change_in
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.value import Value
from codex_py.text.files import json_reason
from codex_py.text.sanitize import sanitize_line

_PLUGIN_DATA: Final = "plugins/data"
_MANIFESTS: Final = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json")
_MANAGED: Final = ("managed", "system")
_OUTSIDE: Final = "outside:"
# Of CODEX_HOME, which no command in the sandbox writes.
_COPIES: Final = "cache/hooks"
_REMEDY: Final = "have the file corrected, or removed"
_HOW: Final = "or `/hooks` in a session, shows it and asks"


class FoundHooks(Value):
    """The hooks of a directory in their order. `untrusted` are hooks of the project that the user has not agreed to.

    For the hooks of a skill, its directory is the `project`.

    With `trusts_all` they are among the `hooks` and run. Otherwise only one with `fail_closed` that was trusted before
    it changed is: it does not run, and that means no. `notices` are the same in each session, and shown once.
    """

    project: Path
    hooks: tuple[Hook, ...]
    untrusted: tuple[Hook, ...]
    warnings: tuple[str, ...]
    trusted: TrustedHooks
    trusts_all: bool = False
    notices: tuple[str, ...] = ()

    @property
    def of_the_project(self) -> list[Hook]:
        """The hooks of the project, whether they run or not."""
        every = self.hooks if self.trusts_all else (*self.hooks, *self.waiting)
        return [hook for hook in every if hook.origin.needs_trust]

    @property
    def waiting(self) -> list[Hook]:
        """The untrusted hooks that do nothing."""
        return [hook for hook in self.untrusted if hook not in self.hooks]

    def trust(self, cwd: Path, outside: Collection[Hook] = ()) -> None:
        """Store that the project's hooks may run as they are now. Raises `UserError`.

        Hooks in `outside`, and hooks that ran outside the sandbox before and have not changed, run outside it.
        """
        hooks = self.of_the_project
        prints = [*(fingerprint(hook, cwd) for hook in hooks), *(entry_fingerprint(hook) for hook in hooks)]
        free = [hook for hook in hooks if hook in outside or self.runs_outside(hook, cwd)]
        self.trusted.put(self.project, [*prints, *(_OUTSIDE + fingerprint(hook, cwd) for hook in free)])

    def runs_outside(self, hook: Hook, cwd: Path) -> bool:
        """Whether the user lets a hook of the project run outside the sandbox, as it is now."""
        return self.trusted.has(self.project, _OUTSIDE + fingerprint(hook, cwd))

    def outside(
        self, hook: Hook, start: PreparedCommand, project: Path, may_write: Callable[[Path], bool]
    ) -> PreparedCommand | None:
        """The command of a hook that runs outside the sandbox, with checked scripts; None when it does not run there.

        Raises `CodexError`.
        """
        files = hook_files(hook, start.cwd)
        if not self.trusted.has(self.project, _OUTSIDE + fingerprint_with(hook, files)):
            return None
        return copy_scripts(hook, start, HookScripts(files, project, self.trusted.home / _COPIES, may_write))

    def distrust(self) -> None:
        """Store that none of the project's hooks may run. Raises `UserError`."""
        self.trusted.put(self.project, ())

    def has_changed(self, hook: Hook) -> bool:
        """Whether a hook was trusted before it, or a file it names, changed."""
        return self.trusted.has(self.project, entry_fingerprint(hook))

    def refusal(self, hook: Hook, cwd: Path) -> str | None:
        """Why a hook of the project or of a plugin must not run in a directory now; None when it may."""
        if hook.origin.plugin and hook.origin.root is not None:
            change = change_in(self.trusted.home, hook.origin.plugin, hook.origin.root)
            return f"is not run: its plugin `{hook.origin.plugin}` has changed: {change}" if change else None
        may_run = self.trusts_all or self.trusted.has(self.project, fingerprint(hook, cwd))
        return None if may_run else CHANGED


def find_hooks(loaded: LoadedConfig, *, home: Path, cwd: Path, trusts_all: bool = False) -> FoundHooks:
    """The hooks of every place where they are configured; what cannot be read is a warning.

    With `trusts_all` a project's hooks run without the user's agreement, unless the project is marked as untrusted.
    """
    managed = list(_managed(loaded))
    others: list[ParsedHooks] = []
    if loaded.config.features.hooks and not loaded.requirements.managed_hooks_only:
        off = frozenset(key for _, tables in loaded.hooks for key in disabled_hooks(tables))
        others = [*_users(loaded, home, off), *_projects(loaded, home, cwd, off), *_plugins(loaded, home)]
    project = loaded.project_root or cwd
    return trusted_of([*managed, *others], project, TrustedHooks(home), cwd, trusts_all=trusts_all)


def trusted_of(
    reads: Sequence[ParsedHooks], project: Path, trusted: TrustedHooks, cwd: Path, *, trusts_all: bool
) -> FoundHooks:
    """The hooks that were read, told apart by the user's trust for a project or the directory of a skill."""

    def still_denies(hook: Hook) -> bool:
        return hook.fail_closed and trusted.has(project, entry_fingerprint(hook))

    every = [hook for read in reads for hook in read.hooks]
    untrusted = [hook for hook in every if hook.origin.needs_trust and not trusted.has(project, fingerprint(hook, cwd))]
    found = FoundHooks(
        project=project,
        hooks=tuple(hook for hook in every if trusts_all or hook not in untrusted or still_denies(hook)),
        untrusted=tuple(untrusted),
        warnings=tuple(warning for read in reads for warning in read.warnings),
        trusted=trusted,
        trusts_all=trusts_all,
        notices=tuple(read.notice for read in reads if read.notice),
    )
    return found.replace(warnings=(*found.warnings, *_not_trusted(found)))


def hook_faults(loaded: LoadedConfig, home: Path, cwd: Path) -> tuple[str, ...]:
    """A line for each hook that is ignored, or that keeps a session from starting."""
    try:
        return find_hooks(loaded, home=home, cwd=cwd).warnings
    except UserError as error:
        return (f"{error}; {error.hint}" if error.hint else str(error),)


def _managed(loaded: LoadedConfig) -> Iterator[ParsedHooks]:
    required = loaded.requirements
    if required.source is not None:
        yield parse_hooks(required.hooks, HookOrigin("managed", required.source.layer.path))
    yield from _layers(loaded, managed=True)
    yield _read_file(loaded.system / HOOKS_FILE, "managed")


def _users(loaded: LoadedConfig, home: Path, off: Collection[str]) -> Iterator[ParsedHooks]:
    yield from _layers(loaded, managed=False, off=off)
    yield _read_file(home / HOOKS_FILE, "user", off)


def _layers(loaded: LoadedConfig, *, managed: bool, off: Collection[str] = ()) -> Iterator[ParsedHooks]:
    for layer, tables in loaded.hooks:
        if (layer.layer_type in _MANAGED) == managed:
            yield parse_hooks(tables, HookOrigin("managed" if managed else "user", layer.path), off)


def _projects(loaded: LoadedConfig, home: Path, cwd: Path, off: Collection[str]) -> Iterator[ParsedHooks]:
    top = loaded.project_root or cwd
    for name in ("config.toml", HOOKS_FILE):
        for path in project_files(cwd, loaded.project_root, home, name):
            origin = HookOrigin("project", path, top)
            if loaded.trust == "untrusted":
                yield ParsedHooks((), (f"`{path}` is ignored: you marked the project as untrusted",))
                continue
            unsafe = unsafe_file(path, top)
            if unsafe is not None:
                yield ParsedHooks((), (f"`{path}` is ignored: {unsafe}",))
                continue
            try:
                tables = _tables_in(path, limit=MAX_PROJECT_FILE_BYTES)
            except UserError as error:
                # A fault in a `config.toml` is reported where the settings are read.
                yield ParsedHooks((), () if path.suffix == ".toml" else (str(error),))
                continue
            yield parse_hooks(tables, origin, off)


def _plugins(loaded: LoadedConfig, home: Path) -> Iterator[ParsedHooks]:
    for plugin in enabled_plugins(home, loaded.config.plugins):
        data = home / _PLUGIN_DATA / plugin.id.replace("@", "-")
        for written in written_hooks(plugin):
            for_claude, for_codex = (os.path.lexists(plugin.root / directory) for directory in _MANIFESTS)
            origin = HookOrigin("plugin", written.path, plugin.root, plugin.id, data, for_claude and not for_codex)
            yield parse_hooks(hook_tables(written.document), origin)


def _read_file(path: Path, layer: Literal["managed", "user"], off: Collection[str] = ()) -> ParsedHooks:
    """The hooks of a `hooks.json` of the user or the administrator.

    Raises `UserError` for an administrator's file that cannot be used: nothing runs without its restrictions.
    """
    weak = weak_permissions(path) if path.exists() else None
    try:
        if weak is not None:
            raise UserError(f"{weak}; until then `{path.name}` is ignored" if layer == "user" else weak)
        tables = _tables_in(path)
    except UserError as error:
        if layer == "managed":
            raise UserError(str(error), hint=f"nothing runs without an administrator's hooks: {_REMEDY}") from error
        return ParsedHooks((), (str(error),))
    return parse_hooks(tables, HookOrigin(layer, path), off)


def _tables_in(path: Path, *, limit: int = 1024 * 1024) -> Mapping[str, Any]:
    text = read_text(path, limit=limit)
    if text is None:
        return {}
    if path.suffix == ".toml":
        return as_object(parse_toml(text, path).get("hooks"))
    try:
        document: object = decode_json(text)
    except ValueError as error:
        raise UserError(f"cannot read `{path}`: not JSON: {json_reason(error)}") from error
    if not isinstance(document, dict):
        raise UserError(f"cannot read `{path}`: not a JSON object")
    return hook_tables(cast("object", document))


def _not_trusted(found: FoundHooks) -> Iterator[str]:
    if found.trusts_all:
        if found.untrusted:
            count, are = _counted(found.untrusted)
            yield f"{count} {are} run without your agreement (`--dangerously-bypass-hook-trust`)"
        return
    skill = next((hook.origin.skill for hook in found.untrusted if hook.origin.skill), "")
    how = f"`codex-py hooks trust{f' --skill {shlex.quote(sanitize_line(skill))}' if skill else ''}`, {_HOW}"
    changed = [hook for hook in found.untrusted if found.has_changed(hook)]
    if changed:
        count, are = _counted(changed)
        yield (
            f"{count} {are} not run: a file that {'it names' if len(changed) == 1 else 'they name'} has changed since "
            f"you trusted {'it' if len(changed) == 1 else 'them'} ({how})"
            + ("; with `fail_closed`, what it guards is denied" if any(hook.fail_closed for hook in changed) else "")
        )
    new = [hook for hook in found.untrusted if hook not in changed]
    if new:
        count, are = _counted(new)
        brings = f"what a {'skill' if skill else 'project'} brings"
        yield f"{count} {are} not run: {brings} runs only when you have agreed to it ({how})"


def _counted(hooks: Sequence[Hook]) -> tuple[str, str]:
    files = ", ".join(dict.fromkeys(hook.origin.where for hook in hooks))
    return (f"1 hook in {files}", "is") if len(hooks) == 1 else (f"{len(hooks)} hooks in {files}", "are")
