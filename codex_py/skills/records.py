"""What the user agreed to when a skill was installed: its source, hash, pin and capabilities, kept in CODEX_HOME.

One file for each directory of skills, named by its real path; neither a project nor a command in the sandbox can write
one. An entry with `pending` was being written when the program stopped: the files are those of the entry or of
`pending`, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.errors import CodexError
from codex_py.paths import make_private_dir
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value
from codex_py.replace_file import replace_file
from codex_py.skills.capabilities import Capabilities, capabilities_from
from codex_py.skills.service import OLD_LOCK, RECORDS
from codex_py.text.files import FileRefused, read_trusted

SKILL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION: Final = 1
_MAX_BYTES: Final = 8 * 1024 * 1024
# Of an entry that is being added: the files that are there now, if any, are not its own.
NO_HASH: Final = f"sha256:{'0' * 64}"
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")


class RecordsRefused(CodexError):
    """A file of records is there and cannot be used; the message says why."""


class InstallRecord(Value):
    """One installed skill."""

    source: str
    """The address or path that `install` was given."""
    source_type: str
    """`git`, `directory` or `archive`."""
    tree_hash: str
    """The hash of `skills.tree` that was agreed to; "" for a skill that another program installed."""
    date: str
    declared: Capabilities
    """The capabilities that were agreed to."""
    path: str = ""
    """The directory of the skill in the source."""
    ref: str | None = None
    """The branch, tag or commit that was asked for."""
    commit: str | None = None
    pinned: bool = False
    """`update` leaves it alone."""
    source_hash: str | None = None
    """The hash of the source's files, which differs when an edited skill was agreed to."""
    pending: InstallRecord | None = None

    def as_json(self) -> dict[str, Any]:
        """As it is written to the file."""
        fields = {name: getattr(self, name) for name in self.__match_args__ if name not in ("declared", "pending")}
        written = fields | {"declared": self.declared.as_json()}
        return written | ({"pending": self.pending.as_json()} if self.pending else {})


def now() -> str:
    """The time of a record."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def records_file(home: Path, root: Path) -> Path:
    """The file about one directory of skills; `home` is CODEX_HOME."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
    return home / RECORDS / f"{name}.json"


def read_agreed(home: Path, root: Path) -> dict[str, InstallRecord]:
    """The records about a directory of skills, by name, with those of an old `skills.lock` that nobody took over.

    Raises `RecordsRefused`.
    """
    return {**read_records(root / OLD_LOCK), **read_records(records_file(home, root))}


def read_records(file: Path) -> dict[str, InstallRecord]:
    """The records of one file, or of an old `skills.lock`; empty where there is none. Raises `RecordsRefused`."""
    try:
        head = read_trusted(file, _MAX_BYTES)
        if head is None:
            return {}
        written = as_object(json.loads(head.raw))
    except FileRefused as error:
        raise RecordsRefused(f"`{file}` cannot be read: {str(error).lower()}") from None
    except (ValueError, RecursionError):
        raise RecordsRefused(f"`{file}` cannot be read: not JSON") from None
    if written.get("version") != _VERSION or "skills" not in written:
        raise RecordsRefused(f"`{file}` cannot be read: not version {_VERSION} of the format")
    return {name: _record(file, name, value) for name, value in as_object(written["skills"]).items()}


def write_records(home: Path, root: Path, records: Mapping[str, InstallRecord]) -> None:
    """Replace the records about a directory of skills in one step; none remove the file. Raises `OSError`."""
    file = records_file(home, root)
    if not records:
        file.unlink(missing_ok=True)
        return
    skills = {name: record.as_json() for name, record in records.items()}
    document = {"version": _VERSION, "root": os.path.realpath(root), "skills": skills}
    make_private_dir(file.parent)
    replace_file(file, (json.dumps(document, indent=2, sort_keys=True) + "\n").encode(), sync=True)


def _record(file: Path, name: str, value: object) -> InstallRecord:
    written = as_object(value)
    source, tree = written.get("source"), written.get("tree_hash")
    is_valid = (
        SKILL_NAME.fullmatch(name) and isinstance(source, str) and isinstance(tree, str) and _HASH.fullmatch(tree)
    )
    if not is_valid:
        raise RecordsRefused(f"`{file}` cannot be read: the entry `{name[:80]}` has no valid name, source and hash")
    pending = as_object(written.get("pending"))
    return InstallRecord(
        str(source),
        # `skills.lock` called it `kind`.
        _text(written, "source_type") or _text(written, "kind") or "git",
        str(tree),
        _text(written, "date") or "",
        capabilities_from(written.get("declared")),
        _text(written, "path") or "",
        _text(written, "ref"),
        _text(written, "commit"),
        written.get("pinned") is True,
        _text(written, "source_hash"),
        _record(file, name, pending) if pending and "pending" not in pending else None,
    )


def _text(written: Mapping[str, Any], key: str) -> str | None:
    value = written.get(key)
    return value if isinstance(value, str) else None
