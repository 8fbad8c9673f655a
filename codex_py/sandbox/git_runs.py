"""By what git would run a program in a repository: its settings, its hooks, and pointers to other repositories."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from codex_py.paths import is_file, real_path
from codex_py.protocol.value import Value
from codex_py.sandbox.git_settings import (
    first_line,
    is_large,
    leads_to,
    own_configs,
    parse_settings,
    read_bounded,
    read_text,
    template_directories,
)

# git takes a directory with such a `HEAD` for a repository without a working tree, and runs what is in the others.
_VALID_HEAD: Final = r"ref:|[0-9a-f]{40}"

# Sections, and settings by name, by which git starts nothing. All others may, or lead to files in which some do.
_HARMLESS_SECTIONS: Final = frozenset(
    (
        *("advice", "apply", "blame", "branch", "clone", "color", "column", "commit", "extensions", "feature", "fetch"),
        *("http", "index", "lfs", "log", "maintenance", "notes", "pull", "push", "rebase", "receive", "rerere"),
        *("stash", "status", "tag", "transfer", "user"),
    )
)
_HARMLESS: Final = {
    "core": frozenset(
        (
            *("abbrev", "autocrlf", "bare", "bigfilethreshold", "commentchar", "compression", "eol", "excludesfile"),
            *("filemode", "fscache", "ignorecase", "logallrefupdates", "longpaths", "precomposeunicode"),
            *("preloadindex", "protecthfs", "protectntfs", "quotepath", "repositoryformatversion", "safecrlf"),
            *("sharedrepository", "sparsecheckout", "sparsecheckoutcone", "symlinks", "untrackedcache", "whitespace"),
            "worktree",
        )
    ),
    "diff": frozenset(("algorithm", "colormoved", "mnemonicprefix", "noprefix", "renames", "submodule")),
    "gc": frozenset(("auto", "autodetach", "autopacklimit", "pruneexpire", "reflogexpire", "writecommitgraph")),
    "init": frozenset(("defaultbranch",)),
    "merge": frozenset(("conflictstyle", "ff", "log", "renames", "stat")),
    "remote": frozenset(
        (
            *("fetch", "gh-resolved", "mirror", "partialclonefilter", "promisor", "prune", "push", "pushurl"),
            *("skipdefaultupdate", "tagopt", "url"),
        )
    ),
    "submodule": frozenset(("active", "branch", "fetchrecursesubmodules", "ignore", "path", "url")),
}
# Of these sections the settings stand in no subsection.
_WITHOUT_SUBSECTION: Final = frozenset(("core", "diff", "gc", "init", "merge"))
_RUN_BY_LFS: Final = ("lfs.customtransfer.", "lfs.extension.", "lfs.standalonetransferagent")
# A remote's address that starts a program.
_HELPER: Final = r"[a-z0-9+.-]+::"

_LFS_HOOKS: Final = ("post-checkout", "post-commit", "post-merge", "pre-push")
_LFS_MISSING: Final = "This repository is configured for Git LFS but 'git-lfs' was not found on your path. "
_LFS_ADVICE: Final = "If you no longer wish to use Git LFS, remove this hook by deleting"
_LFS_PLACES: Final = (
    "the '{0}' file in the hooks directory (set by 'core.hookspath'; usually '.git/hooks')",
    "'.git/hooks/{0}'",
    ".git/hooks/{0}",
)
_LFS_PRINTS: Final = (r'echo >&2 "\n{0}\n"', r'printf >&2 "\n%s\n\n" "{0}"')


class GitLocation(Value):
    """Where git looks without anybody going there, there or not."""

    path: Path
    """A real path, but that it may be a link itself."""
    type: Literal["repository", "bare", "hooks", "settings"]
    """A `.git`; a `HEAD`, which makes a repository of its directory; a directory of hooks; a settings file."""


class Cause(NamedTuple):
    """Why git would run a program: `file` is what makes it do so, reached by the `pointers`."""

    file: Path
    text: str
    pointers: tuple[Path, ...] = ()


class GitRuns:
    """Finds causes, for a user with this environment, whose template directories are no `writable` ones."""

    def __init__(self, env: Mapping[str, str], writable: Iterable[Path] = ()) -> None:
        self._env = env
        self._writable = tuple(writable)

    def find(self, location: GitLocation, held: Iterable[Path] = ()) -> list[Cause]:
        """Everything by which git would run a program if it used what is there now, or once that is complete.

        Repositories in one of the `held` paths count for nothing: they are the user's own.
        """
        if location.type == "settings":
            text = find_program_setting(location.path)
            return [Cause(location.path, text)] if text else []
        if location.type == "hooks":
            return [Cause(hook, f"the hook `{hook.name}`") for hook in self._hooks(location.path)]
        own = tuple(held)
        return [
            cause
            for directory, pointers in git_directories(location)
            if not any(directory.is_relative_to(path) for path in own)
            for cause in self._of_directory(directory, pointers)
        ]

    def _of_directory(self, git: Path, pointers: tuple[Path, ...]) -> Iterator[Cause]:
        work = git.parent if git.name == ".git" else None
        for config in own_configs(git):
            if text := find_program_setting(config, work):
                yield Cause(config, f"its `{config.name}` {text}", pointers)
        for hook in self._hooks(git / "hooks"):
            yield Cause(hook, f"the hook `{hook.name}`", pointers)
        shared = first_line(git / "commondir")
        # That of a linked worktree leads to the repository that it lies in.
        if shared and not any(git.is_relative_to(common) for common in leads_to(git / shared)):
            yield Cause(git / "commondir", "its `commondir` leads to another repository", pointers)
        for remote in _files_in(git / "remotes", git / "branches"):
            yield Cause(remote, f"the address in `{remote.name}`", pointers)

    def _hooks(self, directory: Path) -> list[Path]:
        return [hook for hook in executables(directory) if not self._is_usual(hook)]

    def _is_usual(self, hook: Path) -> bool:
        """Whether it is git-lfs's own hook or one of the user's template directory, or is about to be: a file has its
        mode before its content."""
        content = read_bounded(hook)
        usual = _lfs_hooks(hook.name) if hook.name in _LFS_HOOKS else set[bytes]()
        templates = [directory / "hooks" / hook.name for directory in template_directories(self._env)]
        usual.update(read_bounded(path) for path in templates if is_file(path) and not self._may_write(path))
        return not content or any(text.startswith(content) for text in usual)

    def _may_write(self, path: Path) -> bool:
        return any(Path(real_path(path)).is_relative_to(root) for root in self._writable)


def git_directories(location: GitLocation) -> list[tuple[Path, tuple[Path, ...]]]:
    """Where git takes settings and hooks from for a place, each with the files that lead there."""
    pointers: tuple[Path, ...] = ()
    git = location.path
    if location.type == "bare":
        git = location.path.parent
        if not is_bare(git):
            return []
    elif location.path.is_symlink():
        git, pointers = Path(real_path(location.path)), (location.path,)
    if is_file(git):
        pointer = first_line(git)
        targets = (
            leads_to(git.parent / pointer.removeprefix("gitdir:").strip()) if pointer.startswith("gitdir:") else []
        )
        if not targets:
            return []
        pointers, git = (*pointers, git), targets[0]
    found = [(git, pointers)]
    if shared := first_line(git / "commondir"):
        found += [(common, (*pointers, git / "commondir")) for common in leads_to(git / shared)]
    return found


def has_git(directory: Path) -> bool:
    """Whether a directory has a `.git` with a repository: git looks no further."""
    return is_file(directory / ".git") or os.path.lexists(directory / ".git" / "HEAD")


def is_bare(directory: Path) -> bool:
    """Whether `HEAD` makes a directory a repository without a working tree, once it is complete."""
    return is_head(directory / "HEAD") and not has_git(directory)


def is_head(path: Path) -> bool:
    """Whether git takes a file for the `HEAD` of a repository."""
    return path.is_symlink() or (is_file(path) and re.match(_VALID_HEAD, first_line(path)) is not None)


def tree_hooks(location: GitLocation) -> list[tuple[Path, Path]]:
    """The settings files of a repository that name a directory of hooks in its working tree, each with that."""
    found: list[tuple[Path, Path]] = []
    for git, _ in git_directories(location):
        work = location.path.parent
        for config in own_configs(git):
            values = [value for key, value in parse_settings(read_text(config)) if key == "core.hookspath"]
            found += [(config, work / value) for value in values if is_in_tree(value, work)]
    return found


def executables(directory: Path) -> list[Path]:
    """The programs in a directory of hooks. No hook's name has a dot, as those of samples have."""
    with suppress(OSError), os.scandir(directory) as hooks:
        return sorted(Path(hook) for hook in hooks if "." not in hook.name and _is_executable(hook))
    return []


def _files_in(*directories: Path) -> Iterator[Path]:
    for directory in directories:
        with suppress(OSError):
            yield from sorted(path for path in directory.iterdir() if ".moved-" not in path.name)


def _is_executable(entry: os.DirEntry[str]) -> bool:
    try:
        mode = entry.stat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def find_program_setting(config: Path, work: Path | None = None) -> str | None:
    """The first setting in a file by which git may start a program; None without any. A directory of hooks in the
    working tree `work` is none."""
    if is_large(config):
        return "is larger than 1 MiB"
    for key, value in parse_settings(read_text(config)):
        if key == "core.hookspath" and work is not None and is_in_tree(value, work):
            continue
        if not _is_harmless(key) or re.match(_HELPER, value):
            return f"sets `{key}`"
    return None


def is_in_tree(value: str, work: Path) -> bool:
    """Whether a path of git's settings leads into the working tree, and not into its `.git`."""
    if not value or "\0" in value or value.startswith("~"):
        return False
    path = Path(os.path.normpath(work / value))
    return path.is_relative_to(work) and path != work and ".git" not in path.relative_to(work).parts


def _is_harmless(key: str) -> bool:
    section, _, rest = key.partition(".")
    _, dot, name = rest.rpartition(".")
    if key.startswith(_RUN_BY_LFS):
        return False
    is_in_place = bool(dot) != (section in _WITHOUT_SUBSECTION)
    return section in _HARMLESS_SECTIONS or (is_in_place and name in _HARMLESS.get(section, ()))


def _lfs_hooks(name: str) -> set[bytes]:
    """The hook as git-lfs has written it in its versions."""
    texts = [f"{_LFS_MISSING}{_LFS_ADVICE} {location.format(name)}." for location in _LFS_PLACES]
    return {
        f"#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 || {{ {show.format(text)}; exit 2; }}\n"
        f'git lfs {name} "$@"\n'.encode()
        for text in texts
        for show in _LFS_PRINTS
    }
