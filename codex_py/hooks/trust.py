"""Which hooks of a project the user has agreed to: pinned to a hash of what would run.

The hash covers the entry and every file that its command names, so that a changed script needs a new yes. What such
a file loads in its turn is not covered.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from codex_py.errors import UserError
from codex_py.hooks.schema import Hook
from codex_py.paths import draft_of, is_file, is_folder, make_private_dir, open_private
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json
from codex_py.protocol.ids import uuid7
from codex_py.text.regular_file import FileRefused, read_trusted

TRUST_FILE: Final = "trusted_hooks.json"
_MOST_TRUST: Final = 4 * 1024 * 1024
_MOST_SCRIPT: Final = 16 * 1024 * 1024
_MOST_FILES: Final = 256
_LONGEST_NAME: Final = 4096
_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/nix/", "/snap/", "/dev/", "/proc/", "/sys/")
_WORD: Final = re.compile(r"[^\s'\"`;&|()<>=]+")
_PROJECT: Final = re.compile(r"\$\{?(?:CLAUDE_PROJECT_DIR|CODEX_PROJECT_DIR|PWD)\b\}?")
# What a shell puts in: before a name it is mostly a folder, that of the project or one in it.
_PUT_IN: Final = re.compile(r"\$\{[^{}]*\}|\$\([^()]*\)|`[^`]*`|\$\w+")
_MOST_INSIDE: Final = 4
_MOST_FOLDERS: Final = 4
_MODULE: Final = re.compile(r"-m\s+([\w.]+)")
CHANGED: Final = "is not run: it, or a file it names, has changed since you trusted it (`codex-py hooks trust`)"


def fingerprint(hook: Hook, cwd: Path) -> str:
    """What pins a project's hook: `sha256:…` of the entry and of the files it names.

    `cwd` is where the command would run. A file that cannot be read counts as its name.
    """
    digest = hashlib.sha256(_entry(hook))
    if hook.origin.root is not None:
        for path in _files(_command(hook), Path(os.path.realpath(hook.origin.root)), cwd):
            digest.update(b"\0" + os.fsencode(path) + b"\0" + _content(path))
    return f"sha256:{digest.hexdigest()}"


def entry_fingerprint(hook: Hook) -> str:
    """What tells that a hook was trusted before, whatever its files hold now: `entry:sha256:…` of the entry alone."""
    return f"entry:sha256:{hashlib.sha256(_entry(hook)).hexdigest()}"


def named_contents(words: Sequence[str], root: Path, cwd: Path) -> bytes:
    """The paths and hashes of the files inside a project that a command line names; empty when it names none.

    `root` is the project's real folder, `cwd` where the command would run.
    """
    inside = (path for path in _files(words, root, cwd) if path.is_relative_to(root))
    return b"".join(b"\0" + os.fsencode(path) + b"\0" + _content(path) for path in inside)


class TrustedHooks:
    """The hashes the user has agreed to, for each project, in a file of CODEX_HOME that only the user can read."""

    def __init__(self, home: Path) -> None:
        self._file = home / TRUST_FILE
        self._projects = self._read()

    def has(self, project: Path, hashed: str) -> bool:
        """Whether a hook of a project may run as it is now."""
        return hashed in self._projects.get(str(project), ())

    def put(self, project: Path, hashes: Sequence[str]) -> None:
        """Trust exactly these hooks of a project from now on; with none, forget it. Raises `UserError`."""
        if hashes:
            self._projects[str(project)] = tuple(dict.fromkeys(hashes))
        else:
            self._projects.pop(str(project), None)
        try:
            self._write()
        except OSError as error:
            raise UserError(f"cannot write `{self._file}`: {(error.strerror or str(error)).lower()}") from error

    def _read(self) -> dict[str, tuple[str, ...]]:
        try:
            head = read_trusted(self._file, _MOST_TRUST)
            said: Any = {} if head is None else decode_json(head.raw)
        except (FileRefused, ValueError):
            return {}
        projects = as_object(as_object(said).get("projects"))
        return {name: tuple(one for one in as_list(given) if isinstance(one, str)) for name, given in projects.items()}

    def _write(self) -> None:
        make_private_dir(self._file.parent)
        draft = draft_of(self._file, uuid7())
        said = {"version": 1, "projects": {name: list(given) for name, given in sorted(self._projects.items())}}
        descriptor = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(encode_json(said) + b"\n")
        draft.replace(self._file)


def _entry(hook: Hook) -> bytes:
    entry = [
        hook.event,
        hook.matcher.text,
        isinstance(hook.command, str),
        _command(hook),
        hook.timeout,
        hook.background,
    ]
    if hook.condition.text:
        entry.append(hook.condition.text)
    return encode_json(entry)


def _command(hook: Hook) -> list[str]:
    return [hook.command] if isinstance(hook.command, str) else list(hook.command)


def _files(command: Sequence[str], root: Path, cwd: Path) -> list[Path]:
    """The regular files that the words of a command name, from the project's root, from where it runs, or from a
    folder of the project that it names too: `cd scripts && ./format.sh`.

    Those of the system, which nobody but an administrator changes, are left out.
    """
    words = [word for one in command for word in _words(one)]
    named = [_named(word, folder) for word in words for folder in (root, cwd)]
    inside = (path for path in dict.fromkeys(named) if path.is_relative_to(root) and path not in (root, cwd))
    for folder in [path for path in inside if is_folder(path)][:_MOST_FOLDERS]:
        named += [_named(word, folder) for word in words]
    files = (path for path in named if path.is_relative_to(root) or not str(path).startswith(_SYSTEM))
    return [path for path in dict.fromkeys(files) if is_file(path)][:_MOST_FILES]


def _named(word: str, folder: Path) -> Path:
    return Path(os.path.realpath(folder / _PROJECT.sub(lambda _: str(folder), word)))


def _words(text: str) -> Iterator[str]:
    """What could be a name in a command: its words as a shell has them, and what stands between signs of a shell.

    What a shell puts in, as in `"$(git rev-parse --show-toplevel)"/format.sh`, is read as a folder to begin at.
    """
    found = [*_WORD.findall(text), *_WORD.findall(text.replace('"', "").replace("'", ""))]
    with suppress(ValueError):
        found += shlex.split(text)
    plain = text.replace('"', "").replace("'", "")
    for _ in range(_MOST_INSIDE):
        plain = _PUT_IN.sub(".", plain)
    found += [part for word in _WORD.findall(plain) for part in (word, *word.split(":"))]
    for module in _MODULE.findall(text):
        found += [f"{module.replace('.', '/')}{end}" for end in (".py", "/__main__.py")]
    yield from (word for word in dict.fromkeys(found) if "\0" not in word and len(word) < _LONGEST_NAME)


def _content(path: Path) -> bytes:
    try:
        head = read_trusted(path, _MOST_SCRIPT)
    except FileRefused:
        return b"?"
    return b"?" if head is None else hashlib.sha256(head.raw).digest() + str(head.size).encode()
