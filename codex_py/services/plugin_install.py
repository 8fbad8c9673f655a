"""Installs a plugin: finds it in its source, copies and checks it, and moves it to its directory in one step."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import UsageError, UserError
from codex_py.paths import PLUGIN_CACHE, is_directory, make_private_dir
from codex_py.plugins.manifests import Plugin, inside, plugin_directory, read_json, read_manifest, read_plugin
from codex_py.plugins.record import forget_record, record_plugin
from codex_py.protocol.encoding import as_list, as_object
from codex_py.services.git_fetch import git_source
from codex_py.services.plugin_fetch import copy_plugin, fetch
from codex_py.services.work_directory import discard, work_directory
from codex_py.skills.namespace import MANIFEST_DIRECTORIES

_MARKETS: Final = (".agents/plugins/marketplace.json", ".claude-plugin/marketplace.json")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
# The keys of a marketplace entry that stand in for the plugin's manifest.
_OF_MANIFEST: Final = ("name", "version", "description", "skills", "mcpServers", "hooks", "apps")


class PluginRequest(NamedTuple):
    """What to install: a directory or a repository's URL, and optionally a path or a marketplace's plugin in it."""

    source: str
    path: str | None = None
    plugin: str | None = None


class _FoundPlugin(NamedTuple):
    """A plugin's directory in the source; `manifest` is the marketplace's entry if it has no manifest of its own."""

    directory: Path
    name: str
    market: str
    manifest: Mapping[str, Any] | None = None


class StagedPlugin(NamedTuple):
    """A copy that is not installed yet. `ready` is the directory to move, which contains the version."""

    plugin: Plugin
    ready: Path
    target: Path


@contextmanager
def staged_plugin(request: PluginRequest, home: Path, env: Mapping[str, str]) -> Generator[StagedPlugin, None, None]:
    """A copy of the requested plugin, deleted at the end unless it is installed. Raises `UserError`."""
    source = git_source(request.source)
    cache = home / PLUGIN_CACHE
    with work_directory(cache) as stage:
        if source is not None:
            directory = stage / "repository"
            fetch(source, directory, env)
        else:
            directory = Path(os.path.abspath(os.path.expanduser(request.source)))  # noqa: PTH100, PTH111 - these never raise
            if not is_directory(directory):
                reason = "is not a directory" if os.path.lexists(directory) else "does not exist"
                raise UsageError(f"`{request.source}` {reason}", hint="give a directory, or a URL with `https://`")
        yield _stage(_find(directory, request, "local" if source is None else "git"), home, stage)


def install_staged(staged: StagedPlugin, home: Path) -> Plugin:
    """Install the copy in one step, replacing an earlier version. Raises `UserError`."""
    target = staged.target
    earlier = staged.ready.with_name("earlier")
    try:
        make_private_dir(target.parent)
        is_update = os.path.lexists(target)
        if is_update:
            target.rename(earlier)
        try:
            staged.ready.rename(target)
        except OSError:
            if is_update:
                earlier.rename(target)
            raise
    except OSError as error:
        raise UserError(f"cannot write `{target}`: {(error.strerror or str(error)).lower()}") from error
    plugin = read_plugin(target / staged.plugin.root.name, staged.plugin.id)
    record_plugin(home, plugin.id, plugin.root)
    return plugin


def uninstall_plugin(home: Path, plugin_id: str) -> bool:
    """Remove an installed plugin's files; False when there are none. Raises `UserError`."""
    target = plugin_directory(home, plugin_id)
    if target is None or not os.path.lexists(target):
        return False
    try:
        discard(target, target.parent.parent)
    except OSError as error:
        raise UserError(f"cannot remove `{target}`: {(error.strerror or str(error)).lower()}") from error
    forget_record(home, plugin_id)
    with suppress(OSError):
        target.parent.rmdir()
    return True


def _stage(found: _FoundPlugin, home: Path, stage: Path) -> StagedPlugin:
    manifest = found.manifest or read_manifest(Path(os.path.realpath(found.directory))) or {}
    written = manifest.get("version")
    version = written if isinstance(written, str) and _VERSION.fullmatch(written) else "local"
    ready = stage / "ready"
    ready.mkdir(mode=0o700)
    root = ready / version
    copy_plugin(found.directory, root)
    if found.manifest is not None:
        _write_manifest(root / MANIFEST_DIRECTORIES[0], found.manifest)
    plugin_id = f"{found.name}@{found.market}"
    target = plugin_directory(home, plugin_id)
    assert target is not None
    return StagedPlugin(read_plugin(root, plugin_id), ready, target)


def _write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write the marketplace's manifest into a copy."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / "plugin.json").write_text(json.dumps(dict(manifest), indent=2) + "\n")
    except OSError as error:
        raise UserError(f"the plugin is refused: cannot write a manifest in its `{directory.name}`") from error


def _find(directory: Path, request: PluginRequest, market: str) -> _FoundPlugin:
    """The plugin in a directory: the directory itself, or one that its marketplace names."""
    top = Path(os.path.realpath(directory))
    if request.path is not None:
        below = inside(top, request.path)
        if below is None or not is_directory(below):
            raise UsageError(
                f"there is no directory `{request.path}` in `{request.source}`",
                hint="`--path` names the directory of a plugin in it",
            )
        top = below
    manifest = read_manifest(top)
    if manifest is not None and request.plugin in (None, manifest.get("name")):
        return _FoundPlugin(top, _name_of(manifest, top.name), market)
    for path in _MARKETS:
        if (listing := read_json(top, top / path)) is not None:
            return _from_market(top, listing, request, market)
    if manifest is not None:
        raise UsageError(f"`{request.source}` is the plugin `{manifest.get('name')}`, and not `{request.plugin}`")
    raise UserError(
        f"`{request.source}` has no plugin: neither `.codex-plugin/plugin.json` nor `.claude-plugin/plugin.json` is a"
        " JSON object of at most 64 KiB",
        hint="`--path` names the directory of a plugin inside it",
    )


def _from_market(top: Path, listing: Mapping[str, Any], request: PluginRequest, market: str) -> _FoundPlugin:
    entries = [entry for entry in map(as_object, as_list(listing.get("plugins"))) if isinstance(entry.get("name"), str)]
    chosen = [entry for entry in entries if request.plugin in (None, entry["name"])]
    if len(chosen) != 1:
        known = ", ".join(f"`{entry['name']}`" for entry in entries[:20])
        what = "more than one plugin" if chosen else f"no plugin `{request.plugin}`" if request.plugin else "no plugin"
        hint = f"choose with `--plugin`: {known}" if known else None
        raise UsageError(f"the marketplace `{request.source}` has {what}", hint=hint)
    [entry] = chosen
    source = entry.get("source", "./")
    source = source if isinstance(source, str) else as_object(source).get("path")
    directory = inside(top, source) if isinstance(source, str) and "://" not in source else None
    if directory is None or not is_directory(directory):
        raise UserError(f"the plugin `{entry['name']}` is not in `{request.source}` itself: add it from where it is")
    name = listing.get("name")
    market = name if isinstance(name, str) and _NAME.fullmatch(name) else market
    if (own := read_manifest(directory)) is not None and entry.get("strict") is not False:
        return _FoundPlugin(directory, _name_of(own, directory.name), market)
    fallback = {key: entry[key] for key in _OF_MANIFEST if key in entry}
    return _FoundPlugin(directory, _name_of(fallback, directory.name), market, {**(own or {}), **fallback})


def _name_of(manifest: Mapping[str, Any], directory: str) -> str:
    written = manifest.get("name")
    name = written if isinstance(written, str) and written else directory
    if not _NAME.fullmatch(name):
        raise UserError(
            f"the plugin is refused: `{name[:100]}` is not a valid name", hint="use letters, digits, `-`, `_` and `.`"
        )
    return name
