"""Putting a plugin where sessions find it: found in what was given, copied, looked at, moved into place whole."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.cli.plugin_copy import copy_plugin
from codex_py.cli.plugin_fetch import fetch, git_source
from codex_py.errors import UsageError, UserError
from codex_py.paths import is_folder, make_private_dir
from codex_py.protocol.encoding import as_list, as_object
from codex_py.skills.namespace import MANIFEST_FOLDERS
from codex_py.skills.plugin_record import forget_record, record_plugin
from codex_py.skills.plugins import CACHE, Plugin, inside, plugin_folder, read_json, read_manifest, read_plugin

_MARKETS: Final = (".agents/plugins/marketplace.json", ".claude-plugin/marketplace.json")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
# Of an entry of a marketplace, what the plugin's manifest would say.
_OF_MANIFEST: Final = ("name", "version", "description", "skills", "mcpServers", "hooks", "apps")


class Wanted(NamedTuple):
    """What is asked for: a folder or the URL of a repository, a folder inside it, a plugin of a marketplace there."""

    source: str
    path: str | None = None
    plugin: str | None = None


class _Found(NamedTuple):
    """A plugin's folder in what was given; `manifest` is what a marketplace says where it has none of its own."""

    folder: Path
    name: str
    market: str
    manifest: Mapping[str, Any] | None = None


class Staged(NamedTuple):
    """A copy that is not in place yet. `ready` is the folder that will be, with the version in it."""

    plugin: Plugin
    ready: Path
    place: Path


@contextmanager
def staged_plugin(wanted: Wanted, home: Path, env: Mapping[str, str]) -> Generator[Staged, None, None]:
    """A copy of the plugin that is wanted, gone at the end unless it is put into place. Raises `UserError`."""
    source = git_source(wanted.source)
    cache = home / CACHE
    make_private_dir(cache)
    _clear_leftovers(cache)
    stage = cache / f".new-{os.getpid()}-{os.urandom(4).hex()}"
    stage.mkdir(mode=0o700)
    try:
        if source is not None:
            given = stage / "repository"
            fetch(source, given, env)
        else:
            given = Path(os.path.abspath(os.path.expanduser(wanted.source)))  # noqa: PTH100, PTH111 - these never raise
            if not is_folder(given):
                raise UsageError(
                    f"there is no folder `{wanted.source}`", hint="give a folder, or a URL with `https://`"
                )
        yield _stage(_find(given, wanted, "local" if source is None else "git"), home, stage)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def put_into_place(staged: Staged, home: Path) -> Plugin:
    """Make the copy the installed plugin, in place of an earlier one, whole or not at all. Raises `UserError`."""
    place = staged.place
    earlier = staged.ready.with_name("earlier")
    try:
        make_private_dir(place.parent)
        had_one = os.path.lexists(place)
        if had_one:
            place.rename(earlier)
        try:
            staged.ready.rename(place)
        except OSError:
            if had_one:
                earlier.rename(place)
            raise
    except OSError as error:
        raise UserError(f"cannot write `{place}`: {(error.strerror or str(error)).lower()}") from error
    added = read_plugin(place / staged.plugin.root.name, staged.plugin.id)
    record_plugin(home, added.id, added.root)
    return added


def take_away(home: Path, plugin_id: str) -> bool:
    """Remove an installed plugin's files; False when there are none. Raises `UserError`."""
    place = plugin_folder(home, plugin_id)
    if place is None or not os.path.lexists(place):
        return False
    gone = place.parent.parent / f".old-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        # Renamed first: what is being removed is no plugin any more, however long that takes.
        place.rename(gone)
    except OSError as error:
        raise UserError(f"cannot remove `{place}`: {(error.strerror or str(error)).lower()}") from error
    forget_record(home, plugin_id)
    if gone.is_symlink():
        gone.unlink()
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):
        place.parent.rmdir()
    return True


def _clear_leftovers(cache: Path) -> None:
    """Remove what programs that were killed have left in the middle of their work."""
    for left in (*cache.glob(".new-*-*"), *cache.glob(".old-*-*")):
        process = left.name.split("-")[1]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(left, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _stage(found: _Found, home: Path, stage: Path) -> Staged:
    manifest = found.manifest or read_manifest(Path(os.path.realpath(found.folder))) or {}
    written = manifest.get("version")
    version = written if isinstance(written, str) and _VERSION.fullmatch(written) else "local"
    ready = stage / "ready"
    ready.mkdir(mode=0o700)
    root = ready / version
    copy_plugin(found.folder, root)
    if found.manifest is not None:
        _write_manifest(root / MANIFEST_FOLDERS[0], found.manifest)
    plugin_id = f"{found.name}@{found.market}"
    place = plugin_folder(home, plugin_id)
    assert place is not None
    return Staged(read_plugin(root, plugin_id), ready, place)


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Give a copy the manifest that its marketplace has for it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "plugin.json").write_text(json.dumps(dict(manifest), indent=2) + "\n")
    except OSError as error:
        raise UserError(f"the plugin is refused: its `{folder.name}` is no folder for a manifest") from error


def _find(given: Path, wanted: Wanted, market: str) -> _Found:
    """The plugin in a folder: the folder itself, or one that a marketplace there names."""
    top = Path(os.path.realpath(given))
    if wanted.path is not None:
        below = inside(top, wanted.path)
        if below is None or not is_folder(below):
            raise UsageError(f"there is no folder `{wanted.path}` in `{wanted.source}`")
        top = below
    own = read_manifest(top)
    if own is not None and wanted.plugin in (None, own.get("name")):
        return _Found(top, _name_of(own, top.name), market)
    for path in _MARKETS:
        if (listing := read_json(top, top / path)) is not None:
            return _from_market(top, listing, wanted, market)
    if own is not None:
        raise UsageError(f"`{wanted.source}` is the plugin `{own.get('name')}`, and not `{wanted.plugin}`")
    raise UserError(
        f"`{wanted.source}` has no plugin: neither `.codex-plugin/plugin.json` nor `.claude-plugin/plugin.json` is a"
        " JSON object of at most 64 KiB",
        hint="`--path` names the folder of a plugin inside it",
    )


def _from_market(top: Path, listing: Mapping[str, Any], wanted: Wanted, market: str) -> _Found:
    entries = [one for one in map(as_object, as_list(listing.get("plugins"))) if isinstance(one.get("name"), str)]
    chosen = [one for one in entries if wanted.plugin in (None, one["name"])]
    if len(chosen) != 1:
        known = ", ".join(f"`{one['name']}`" for one in entries[:20])
        what = "more than one plugin" if chosen else f"no plugin `{wanted.plugin}`" if wanted.plugin else "no plugin"
        hint = f"choose with `--plugin`: {known}" if known else None
        raise UsageError(f"the marketplace `{wanted.source}` has {what}", hint=hint)
    [entry] = chosen
    where = entry.get("source", "./")
    where = where if isinstance(where, str) else as_object(where).get("path")
    folder = inside(top, where) if isinstance(where, str) and "://" not in where else None
    if folder is None or not is_folder(folder):
        raise UserError(f"the plugin `{entry['name']}` is not in `{wanted.source}` itself: add it from where it is")
    name = listing.get("name")
    market = name if isinstance(name, str) and _NAME.fullmatch(name) else market
    if (own := read_manifest(folder)) is not None and entry.get("strict") is not False:
        return _Found(folder, _name_of(own, folder.name), market)
    fallback = {key: entry[key] for key in _OF_MANIFEST if key in entry}
    return _Found(folder, _name_of(fallback, folder.name), market, {**(own or {}), **fallback})


def _name_of(manifest: Mapping[str, Any], folder: str) -> str:
    written = manifest.get("name")
    name = written if isinstance(written, str) and written else folder
    if not _NAME.fullmatch(name):
        raise UserError(
            f"the plugin is refused: `{name[:100]}` is no name for one", hint="letters, digits and `-`, `_`, `.` are"
        )
    return name
