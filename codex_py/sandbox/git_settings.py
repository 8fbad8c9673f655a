"""What git runs or believes because settings or the index name it: hooks, included files, submodules.

Reads no more of the formats of git's index (gitformat-index) and configuration than that takes.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import real_path
from codex_py.sandbox.denials import expand_home

_SIGNATURE: Final = b"DIRC"
_VERSIONS: Final = (2, 3, 4)
_MODE: Final = 0o160000
_HEADER: Final = struct.Struct(">4sII")
_NUMBER: Final = struct.Struct(">I")
_FLAGS: Final = struct.Struct(">H")
_MODE_OFFSET: Final = 24
_EXTENDED: Final = 0x4000


def read_gitlinks(index: bytes, *, hash_bytes: int = 20) -> list[bytes]:
    """The paths of the submodules in an index; those before the first fault in a broken one."""
    if _NUMBER.pack(_MODE) not in index:  # almost every index: not worth parsing
        return []
    found: list[bytes] = []
    with suppress(struct.error, ValueError, IndexError):
        for path, mode in _entries(index, hash_bytes):
            if mode == _MODE:
                found.append(path)
    return found


def _entries(index: bytes, hash_bytes: int) -> Iterator[tuple[bytes, int]]:
    signature, version, count = _HEADER.unpack_from(index)
    if signature != _SIGNATURE or version not in _VERSIONS:
        return
    start, path = _HEADER.size, b""
    for _ in range(count):
        flags = start + _MODE_OFFSET + 16 + hash_bytes
        name = flags + (4 if _FLAGS.unpack_from(index, flags)[0] & _EXTENDED else 2)
        shared = b""
        if version == 4:
            stripped, name = _offset(index, name)
            shared = path[: len(path) - stripped]
        end = index.index(b"\0", name)
        path = shared + index[name:end]
        yield path, _NUMBER.unpack_from(index, start + _MODE_OFFSET)[0]
        # Up to version 3, entries are padded to a multiple of eight bytes.
        start = end + 1 if version == 4 else start + ((end - start + 8) & ~7)


def _offset(index: bytes, start: int) -> tuple[int, int]:
    """A number in the variable width encoding of offsets in packs, and where it ends."""
    byte = index[start]
    number = byte & 0x7F
    while byte & 0x80:
        start += 1
        byte = index[start]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, start + 1


_POINTER_BYTES: Final = 4096
_PATH_BYTES: Final = 4096
_NAME_BYTES: Final = 255
_MAX_BYTES: Final = 1 << 20
_MAX_INDEX_BYTES: Final = 64 << 20
_MAX_INCLUDED: Final = 200
_SECTION: Final = r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*'
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b"}


def hook_directories(git: Path, work: Path, env: Mapping[str, str]) -> list[Path]:
    """Where `core.hooksPath` of a repository, or of the user, leads; `git` is its git directory, `work` its top."""
    configs = [*own_configs(git), *user_configs(env)]
    values = [value for _, key, value in _all_settings(configs, env) if key == "core.hookspath" and value]
    return _paths(work, values, env)


def included_files(git: Path, env: Mapping[str, str], unread: list[str]) -> list[Path]:
    """The files that the configuration of a repository, or of the user, includes, there or not, conditions aside.

    Where there is too much to read, a line about it is added to `unread`.
    """
    configs = [*own_configs(git), *user_configs(env)]
    found = dict.fromkeys(path for path, _, _ in _all_settings(configs, env))
    if len(found) > _MAX_INCLUDED - len(configs):
        unread.append(f"the configuration of `{git}` includes about {_MAX_INCLUDED} files: commands can change some")
    unread += [f"`{path}` is larger than 1 MiB: commands can change what it names" for path in found if is_large(path)]
    return [path for path in found if path not in configs]


def submodule_directories(git: Path, work: Path, unread: list[str]) -> list[Path]:
    """The directories of submodules, there or not: those that `.gitmodules` names, and those in the index.

    Where one is too large, a line about it is added to `unread`.
    """
    settings = parse_settings(read_text(work / ".gitmodules"))
    values = [value for key, value in settings if key.startswith("submodule.") and key.endswith(".path")]
    if is_large(work / ".gitmodules"):
        unread.append(
            f"`{work / '.gitmodules'}` is larger than 1 MiB: commands can make repositories of submodules in it"
        )
    index = _read(git / "index", _MAX_INDEX_BYTES)
    if len(index) == _MAX_INDEX_BYTES:
        unread.append(f"`{git / 'index'}` is larger than 64 MiB: commands can make repositories of submodules in it")
    values += map(os.fsdecode, read_gitlinks(index, hash_bytes=_hash_bytes(git)))
    return [path for path in _paths(work, values, {}) if path.is_relative_to(work)]


def has_tracked_files(git: Path, directory: bytes) -> bool:
    """Whether the index of a repository has files below a directory, a path from the top of its working tree."""
    index, prefix = _read(git / "index", _MAX_INDEX_BYTES), directory + b"/"
    with suppress(struct.error, ValueError, IndexError):
        return any(path.startswith(prefix) for path, _ in _entries(index, _hash_bytes(git)))
    return False


def own_settings(git: Path) -> Mapping[str, str]:
    """The last value of each setting in the `config` of a git directory, without included files."""
    return dict(parse_settings(read_text(git / "config")))


def _hash_bytes(git: Path) -> int:
    return 32 if own_settings(git).get("extensions.objectformat") == "sha256" else 20


def template_directories(env: Mapping[str, str]) -> list[Path]:
    """The user's own template directories: what is in them git puts into each new repository."""
    configs = [*user_configs(env), Path("/etc/gitconfig")]
    values = [value for _, key, value in _all_settings(configs, env) if key == "init.templatedir" and value]
    return [Path(expand_home(value, env)) for value in (env.get("GIT_TEMPLATE_DIR", ""), *values) if value]


def find_unfinished_program(git: Path) -> tuple[Path, str] | None:
    """The file by which git runs a program when an unfinished rebase, cherry-pick or revert goes on, and that program.

    A strategy is the name of a program of git's own; a path leads to another one.
    """
    todo = git / "rebase-merge" / "git-rebase-todo"
    for line in _read(todo, _MAX_INDEX_BYTES).decode("utf-8", "replace").splitlines():
        word, _, command = line.strip().replace("\t", " ").partition(" ")
        if word in ("exec", "x"):
            return todo, command.strip()
    options = git / "sequencer" / "opts"
    named = dict(parse_settings(read_text(options))).get("options.strategy", "")
    for file, strategy in (
        (git / "rebase-merge" / "strategy", first_line(git / "rebase-merge" / "strategy")),
        (options, named),
    ):
        if "/" in strategy:
            return file, f"git-merge-{strategy}"
    return None


def parse_settings(text: str) -> Iterator[tuple[str, str]]:
    """Every setting as `section.name` or `section.subsection.name`, and its value; broken lines are passed over."""
    section = ""
    for raw in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        line = raw.strip()
        while line.startswith("[") and (heading := re.match(_SECTION, line)):
            name, sub = heading[1].lower(), heading[2]
            section = name if sub is None else f"{name}.{sub}"
            line = line[heading.end() :]
        if line and line[0] not in "#;[":
            name, separator, value = line.partition("=")
            yield f"{section}.{name.strip().lower()}", _value(value.strip()) if separator else ""


def _value(text: str) -> str:
    value, end, quoted = "", 0, False
    letters = iter(text)
    for letter in letters:
        if letter == '"':
            quoted = not quoted
        elif letter == "\\":
            escaped = next(letters, "")
            value += _ESCAPES.get(escaped, escaped)
        elif letter in "#;" and not quoted:
            break
        else:
            value += letter
        if quoted or not letter.isspace():
            end = len(value)
    return value[:end]


def own_configs(git: Path) -> list[Path]:
    """The settings files of a repository, there or not."""
    return [git / "config", git / "config.worktree"]


def user_configs(env: Mapping[str, str]) -> list[Path]:
    """The user's settings files, there or not."""
    config = env.get("XDG_CONFIG_HOME") or "~/.config"
    named = env.get("GIT_CONFIG_GLOBAL")
    paths = [named] if named else ["~/.gitconfig", f"{config}/git/config"]
    return [Path(expand_home(path, env)) for path in paths]


def _all_settings(configs: list[Path], env: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """The settings of these files and of those they include, each with the file it is in."""
    waiting, seen = list(configs), set[Path]()
    while waiting and len(seen) < _MAX_INCLUDED:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        for key, value in parse_settings(read_text(path)):
            yield path, key, value
            if value and (key == "include.path" or (key.startswith("includeif.") and key.endswith(".path"))):
                found = _paths(path.parent, [value], env)
                # Named even when it is empty or missing.
                yield from ((setting, "", "") for setting in found)
                waiting += found


def _paths(start: Path, values: list[str], env: Mapping[str, str]) -> list[Path]:
    usable = [value for value in values if "\0" not in value]
    return list(dict.fromkeys(Path(os.path.normpath(start / expand_home(value, env))) for value in usable))


def is_large(path: Path) -> bool:
    """Whether a settings file is larger than what is read of one, 1 MiB."""
    try:
        return os.stat(path).st_size > _MAX_BYTES  # noqa: PTH116
    except (OSError, ValueError):
        return False


def read_bounded(path: Path) -> bytes:
    """The first MiB of a file; nothing of one that cannot be read."""
    return _read(path, _MAX_BYTES)


def read_text(path: Path) -> str:
    """The same as text."""
    return read_bounded(path).decode("utf-8", "replace")


def _read(path: Path, size: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(fd, min(size, os.fstat(fd).st_size))
    except OSError:
        return b""
    finally:
        os.close(fd)


def leads_to(path: Path) -> list[Path]:
    """The real path, or nothing where no file can have it: what pointers and patterns say is anybody's text."""
    try:
        real = real_path(path)
    except ValueError:  # a NUL
        return []
    content = os.fsencode(real)
    fits = len(content) < _PATH_BYTES and max(map(len, content.split(b"/"))) <= _NAME_BYTES
    return [Path(real)] if fits else []


def first_line(path: Path) -> str:
    """The first line of a small file, as far as it is needed; empty for what cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(fd, _POINTER_BYTES).decode("utf-8", "replace").partition("\n")[0].strip()
    except OSError:
        return ""
    finally:
        os.close(fd)
