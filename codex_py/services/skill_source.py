"""Where skills come from: reads the SOURCE of `skills install`, and fetches it into a directory. Nothing of it is run.

A git repository, a directory, or an archive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from codex_py.errors import UsageError, UserError
from codex_py.paths import is_directory, is_file
from codex_py.services.git_fetch import GitSource, git_source
from codex_py.services.plugin_fetch import fetch
from codex_py.services.skill_archive import is_archive, unpack
from codex_py.skills.records import InstallRecord
from codex_py.text.credentials import masked_url
from codex_py.text.sanitize import sanitize_line

_SHORTHAND: Final = re.compile(r"([A-Za-z0-9][\w.-]{0,100})/([A-Za-z0-9][\w.-]{0,100})((?:/[\w.-]{1,100})*)", re.ASCII)
_TREE: Final = re.compile(r"(https?://[^/#]+/[^/#]+/[^/#]+)/(?:-/)?tree/([^/#]+)(?:/([^#]*))?")


class InstallSource(NamedTuple):
    """A SOURCE that has been understood. `address` is its URL or path; `path` the directory in there."""

    text: str
    kind: Literal["git", "directory", "archive"]
    address: str
    ref: str | None = None
    path: str = ""

    @property
    def stored(self) -> str:
        """The source as records name it: without a password."""
        return masked_url(self.address) if self.kind == "git" else self.address


class Fetched(NamedTuple):
    """The files of a source below `top`; `commit` is set for git."""

    source: InstallSource
    top: Path
    commit: str | None = None


def parse_source(text: str, *, cwd: Path) -> InstallSource:
    """Read a SOURCE: `URL[#REF][:DIR]`, `URL//DIR`, `…/tree/REF/DIR`, `owner/repository`, a path.

    Raises `UsageError` for what is none of these, and for an unsafe address.
    """
    if text.startswith("-"):
        raise UsageError(f"not a source: `{text}` looks like an option", hint="give a directory, an archive or a URL")
    if "\0" in text or sanitize_line(text) != text or not text.strip():
        raise UsageError("not a source: it is empty or has characters that cannot be shown")
    if text.startswith(("npm:", "@")):
        raise _npm_refusal(text.removeprefix("npm:"))
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
    if (found := _SHORTHAND.fullmatch(plain)) and not text.startswith("."):
        address = f"https://github.com/{found[1]}/{found[2].removesuffix('.git')}.git"
        return _checked(InstallSource(text, "git", address, ref or None, found[3].strip("/")))
    raise UsageError(f"`{text}` does not exist", hint="give a directory, an archive, or a git URL")


def source_of(record: InstallRecord) -> InstallSource:
    """The source that a record names. Raises `UsageError` for an address that is not safe."""
    match record.source_type:
        case "git" | "archive" | "directory":
            return _checked(InstallSource(record.source, record.source_type, record.source, record.ref, ""))
        case "npm":
            raise _npm_refusal(record.source)
        case _:
            raise UsageError(f"unknown type of source: `{sanitize_line(record.source_type)}`")


def _npm_refusal(package: str) -> UsageError:
    hint = "`npm pack PACKAGE` downloads its archive, which can be installed"
    return UsageError(f"npm packages are not a source of skills any more: `{sanitize_line(package)}`", hint=hint)


def fetch_source(source: InstallSource, stage: Path, env: Mapping[str, str]) -> Fetched:
    """Fetch a source into new directories below `stage`; a directory is used where it is. Raises `UserError`."""
    if source.kind == "git":
        return _fetch_git(source, stage / "repository", env)
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
