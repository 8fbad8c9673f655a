"""Where skills come from: reads the SOURCE of `skills install`, and fetches it into a directory. Nothing of it is run.

A git repository, a directory, an archive, or a package of the npm registry.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from codex_py.errors import UsageError, UserError
from codex_py.paths import is_directory, is_file
from codex_py.programs import program_finder
from codex_py.protocol.encoding import as_list, as_object
from codex_py.services.git_fetch import GitSource, git_source, limit_argv
from codex_py.services.plugin_fetch import MAX_BYTES, fetch
from codex_py.services.skill_archive import is_archive, unpack
from codex_py.skills.lock import LockEntry
from codex_py.text.credentials import masked_url
from codex_py.text.sanitize import sanitize_line

_PACKAGE: Final = r"(?:@[a-z0-9][a-z0-9._-]{0,100}/)?[a-z0-9][a-z0-9._-]{0,200}"
# A version or a tag of the registry, never an address: npm would run scripts of a repository while it packs that.
_NPM: Final = re.compile(rf"(?:npm:)?({_PACKAGE})(?:@([A-Za-z0-9][\w.+-]{{0,80}}))?", re.ASCII)
_SHORTHAND: Final = re.compile(r"([A-Za-z0-9][\w.-]{0,100})/([A-Za-z0-9][\w.-]{0,100})((?:/[\w.-]{1,100})*)", re.ASCII)
_TREE: Final = re.compile(r"(https?://[^/#]+/[^/#]+/[^/#]+)/(?:-/)?tree/([^/#]+)(?:/([^#]*))?")
_NPM_SECONDS: Final = 180.0
_MAX_REASON: Final = 300


class InstallSource(NamedTuple):
    """A SOURCE that has been understood. `address` is its URL, path or package; `path` the directory in there."""

    text: str
    kind: Literal["git", "directory", "archive", "npm"]
    address: str
    ref: str | None = None
    path: str = ""

    @property
    def stored(self) -> str:
        """The source as `skills.lock` names it: without a password."""
        return masked_url(self.address) if self.kind == "git" else self.address


class Fetched(NamedTuple):
    """The files of a source below `top`; `commit` is set for git, `version` for npm."""

    source: InstallSource
    top: Path
    commit: str | None = None
    version: str | None = None


def parse_source(text: str, *, cwd: Path) -> InstallSource:
    """Read a SOURCE: `URL[#REF][:DIR]`, `URL//DIR`, `…/tree/REF/DIR`, `owner/repository`, a path, `npm:NAME[@VERSION]`.

    Raises `UsageError` for what is none of these, and for an unsafe address.
    """
    if text.startswith("-"):
        raise UsageError(f"not a source: `{text}` looks like an option", hint="give a directory, an archive or a URL")
    if "\0" in text or sanitize_line(text) != text or not text.strip():
        raise UsageError("not a source: it is empty or has characters that cannot be shown")
    if text.startswith("npm:"):
        return _npm_source(text)
    if "://" in text or "::" in text or re.match(r"[\w.-]+@[\w.-]+:", text):
        return _git_address(text)
    plain, mark, ref = text.partition("#")
    path = Path(os.path.abspath(cwd / os.path.expanduser(text)))  # noqa: PTH100, PTH111 - these never raise
    repository = Path(os.path.abspath(cwd / os.path.expanduser(plain)))  # noqa: PTH100, PTH111
    if not os.path.lexists(path) and mark and is_directory(repository):
        ref, _, inner = ref.partition(":")
        return _checked(InstallSource(text, "git", repository.as_uri(), ref or None, inner))
    if is_directory(path):
        is_bare = all(os.path.lexists(path / name) for name in ("HEAD", "objects", "refs"))
        return InstallSource(text, "git" if is_bare else "directory", path.as_uri() if is_bare else str(path))
    if is_file(path):
        if not is_archive(path):
            raise UsageError(f"`{text}` is not an archive", hint="give a directory, a zip or tar archive, or a URL")
        return InstallSource(text, "archive", str(path))
    if text.startswith("@"):
        return _npm_source(text)
    if (found := _SHORTHAND.fullmatch(plain)) and not text.startswith("."):
        address = f"https://github.com/{found[1]}/{found[2].removesuffix('.git')}.git"
        return _checked(InstallSource(text, "git", address, ref or None, found[3].strip("/")))
    raise UsageError(
        f"`{text}` does not exist", hint="give a directory, an archive, a git URL, or `npm:NAME` for an npm package"
    )


def source_of(entry: LockEntry) -> InstallSource:
    """The source that a lock entry names. Raises `UsageError` for an address that is not safe."""
    kind: Literal["git", "directory", "archive", "npm"]
    match entry.kind:
        case "git" | "npm" | "archive" | "directory":
            kind = entry.kind
        case _:
            raise UsageError(f"the lock names an unknown kind of source: `{sanitize_line(entry.kind)}`")
    if kind == "npm":
        return _npm_source(f"npm:{entry.source}{f'@{entry.ref}' if entry.ref else ''}")
    return _checked(InstallSource(entry.source, kind, entry.source, entry.ref, ""))


def fetch_source(source: InstallSource, stage: Path, env: Mapping[str, str]) -> Fetched:
    """Fetch a source into new directories below `stage`; a directory is used where it is. Raises `UserError`."""
    if source.kind == "git":
        return _fetch_git(source, stage / "repository", env)
    if source.kind == "npm":
        return _fetch_npm(source, stage, env)
    if source.kind == "archive":
        if not is_file(Path(source.address)):
            raise UserError(f"the archive `{source.address}` does not exist")
        unpack(Path(source.address), stage / "archive")
        return Fetched(source, _inner(_only_directory(stage / "archive"), source))
    if not is_directory(Path(source.address)):
        raise UserError(f"the directory `{source.address}` does not exist")
    return Fetched(source, Path(os.path.realpath(source.address)))


def _git_address(text: str) -> InstallSource:
    if tree := _TREE.fullmatch(text):
        return _checked(InstallSource(text, "git", tree[1], tree[2], (tree[3] or "").strip("/")))
    url, mark, ref = text.partition("#")
    ref, _, inner = ref.partition(":") if mark else ("", "", "")
    scheme, separator, rest = url.partition("://")
    start, double, below = rest.rpartition("//") if separator else ("", "", "")
    if double and start.strip("/"):
        url, inner = f"{scheme}{separator}{start}", below
    if scheme == "file" and not is_directory(Path(unquote(urlsplit(url).path))):
        path = Path(unquote(urlsplit(url).path))
        if is_file(path) and is_archive(path):
            return InstallSource(text, "archive", str(path))
    if scheme in ("http", "https") and re.search(r"\.(?:zip|tgz|tar(?:\.\w+)?)$", url):
        raise UsageError(f"`{masked_url(url)}` is an archive: download it, and give its path")
    return _checked(InstallSource(text, "git", url, ref or None, inner.strip("/")))


def _checked(source: InstallSource) -> InstallSource:
    """Raise `UsageError` for a git address, ref or directory that is not safe."""
    if source.kind == "git":
        found = git_source(source.address + (f"#{source.ref}" if source.ref else ""))
        if found is None:
            raise UsageError(f"not a repository's address: `{masked_url(source.address)}`")
        if source.ref and ".." in source.ref:
            raise UsageError(f"not a branch, tag or commit: `{source.ref}`")
    parts = PurePosixPath(source.path).parts
    if source.path.startswith("/") or any(part == ".." or part.startswith("-") or part == ".git" for part in parts):
        raise UsageError(f"`{source.path}` is not a directory of the source")
    return source


def _npm_source(text: str) -> InstallSource:
    found = _NPM.fullmatch(text)
    if found is None:
        raise UsageError(
            f"not a package of the npm registry: `{text.removeprefix('npm:')}`",
            hint="use `npm:NAME` or `npm:NAME@VERSION`",
        )
    return InstallSource(text, "npm", found[1], found[2])


def _fetch_git(source: InstallSource, directory: Path, env: Mapping[str, str]) -> Fetched:
    commit = fetch(GitSource(source.address, source.ref), directory, env, submodules=False)
    return Fetched(source, _inner(directory, source), commit)


def _inner(top: Path, source: InstallSource) -> Path:
    """The directory in the source that is asked for."""
    real = Path(os.path.realpath(top))
    inner = Path(os.path.realpath(real / source.path))
    if not is_directory(inner) or not inner.is_relative_to(real):
        raise UserError(f"there is no directory `{source.path}` in `{source.stored}`")
    return inner


def _only_directory(top: Path) -> Path:
    """The one directory that an archive wraps its files in, as npm's `package` does; else the archive itself."""
    entries = list(top.iterdir())
    if len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink() and entries[0].name == "package":
        return entries[0]
    return top


def _fetch_npm(source: InstallSource, stage: Path, env: Mapping[str, str]) -> Fetched:
    """Download a package with `npm pack`, without its scripts; in an empty directory, where no project sets npm up."""
    programs = program_finder(env, Path.cwd())
    npm = programs.find("npm")
    if npm is None:
        raise UserError("`npm` is not on this machine", hint="install it, or download the package and give its archive")
    work = stage / "npm"
    work.mkdir(mode=0o700)
    # Or npm would look for a project, and its settings, in the directories above.
    (work / "package.json").write_text("{}")
    wanted = f"{source.address}@{source.ref or 'latest'}"
    passed = {
        name: value
        for name, value in env.items()
        if not name.lower().startswith("npm_config_")
        or name.lower() in ("npm_config_registry", "npm_config_userconfig")
    }
    argv = [*limit_argv(MAX_BYTES), npm, "pack", "--ignore-scripts", "--json", "--pack-destination", str(work), "--"]
    try:
        ended = subprocess.run(
            [*argv, wanted],
            cwd=work,
            env={**passed, "PATH": programs.trusted_path()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_NPM_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"`npm pack` took longer than {_NPM_SECONDS:g} s") from None
    except OSError as error:
        raise UserError(f"cannot run npm: {(error.strerror or str(error)).lower()}") from error
    archives = [path for path in work.iterdir() if path.suffix == ".tgz"]
    if ended.returncode or len(archives) != 1:
        lines = [line for line in ended.stderr.decode("utf-8", "replace").splitlines() if "npm error" in line.lower()]
        reason = lines[-2 if len(lines) > 1 and "log of this run" in lines[-1] else -1] if lines else "no reason"
        raise UserError(f"`npm pack {wanted}` failed: {sanitize_line(reason)[:_MAX_REASON]}")
    unpack(archives[0], stage / "archive")
    version: str | None = None
    with suppress(ValueError):
        packed = as_list(json.loads(ended.stdout))
        version = as_object(packed[0]).get("version") if packed else None
    return Fetched(source, _only_directory(stage / "archive"), None, version if isinstance(version, str) else None)
