"""Which hooks of a project the user has agreed to: pinned to a hash of what would run.

The hash covers the entry and every file that its command names, so that a changed script needs a new yes. What such
a file loads in its turn is not covered.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.errors import UserError
from codex_py.hooks.schema import Hook
from codex_py.paths import draft_of, make_private_dir, open_private
from codex_py.process.named_files import named_files
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json
from codex_py.protocol.ids import uuid7
from codex_py.text.regular_file import FileRefused, read_trusted

TRUST_FILE: Final = "trusted_hooks.json"
_MAX_TRUST: Final = 4 * 1024 * 1024
CHANGED: Final = "is not run: it, or a file it names, has changed since you trusted it (`codex-py hooks trust`)"


def fingerprint(hook: Hook, cwd: Path) -> str:
    """What pins a project's hook: `sha256:…` of the entry and of the files it names.

    `cwd` is where the command would run. A file that cannot be read counts as its name.
    """
    return fingerprint_with(hook, hook_files(hook, cwd))


def hook_files(hook: Hook, cwd: Path) -> dict[Path, bytes]:
    """The files that a project's hook names, each with a hash of what is in it."""
    if hook.origin.root is None:
        return {}
    return named_files(command_words(hook), (Path(os.path.realpath(hook.origin.root)),), cwd)


def command_words(hook: Hook) -> list[str]:
    """The words of its command; a line for a shell is one."""
    return [hook.command] if isinstance(hook.command, str) else list(hook.command)


def fingerprint_with(hook: Hook, files: Mapping[Path, bytes]) -> str:
    """`fingerprint` where the files it names are known."""
    digest = hashlib.sha256(_entry(hook))
    for path, content in files.items():
        digest.update(b"\0" + os.fsencode(path) + b"\0" + content)
    return f"sha256:{digest.hexdigest()}"


def entry_fingerprint(hook: Hook) -> str:
    """What tells that a hook was trusted before, whatever its files hold now: `entry:sha256:…` of the entry alone."""
    return f"entry:sha256:{hashlib.sha256(_entry(hook)).hexdigest()}"


class TrustedHooks:
    """The hashes the user has agreed to, for each project, in a file of CODEX_HOME that only the user can read."""

    def __init__(self, home: Path) -> None:
        self.home = home
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
            head = read_trusted(self._file, _MAX_TRUST)
            document: Any = {} if head is None else decode_json(head.raw)
        except (FileRefused, ValueError):
            return {}
        projects = as_object(as_object(document).get("projects"))
        return {
            name: tuple(fingerprint for fingerprint in as_list(fingerprints) if isinstance(fingerprint, str))
            for name, fingerprints in projects.items()
        }

    def _write(self) -> None:
        make_private_dir(self._file.parent)
        draft = draft_of(self._file, uuid7())
        document = {
            "version": 1,
            "projects": {name: list(fingerprints) for name, fingerprints in sorted(self._projects.items())},
        }
        descriptor = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(encode_json(document) + b"\n")
        draft.replace(self._file)


def _entry(hook: Hook) -> bytes:
    entry = [
        hook.event,
        hook.matcher.text,
        isinstance(hook.command, str),
        command_words(hook),
        hook.timeout,
        hook.background,
    ]
    if hook.condition.text:
        entry.append(hook.condition.text)
    if hook.fail_closed:
        entry.append("fail_closed")
    return encode_json(entry)
