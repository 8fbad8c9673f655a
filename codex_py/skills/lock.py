"""`skills.lock`: where the skills of one directory came from, and what was agreed to.

JSON, sorted, one entry a skill, in the directory that holds the skills. An entry with `pending` was being written when
the program stopped: the files are those of the entry or of `pending`, never a mixture.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.errors import CodexError
from codex_py.paths import replace_private
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value
from codex_py.skills.capabilities import Capabilities, capabilities_from
from codex_py.skills.service import LOCK_FILE
from codex_py.text.files import FileRefused, read_trusted

SKILL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VERSION: Final = 1
_MAX_BYTES: Final = 8 * 1024 * 1024
# Of an entry that is being added: what is there now, if anything, is not what it is about.
NO_HASH: Final = f"sha256:{'0' * 64}"
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")


class LockRefused(CodexError):
    """A `skills.lock` is there and cannot be used; the message says why."""


class LockEntry(Value):
    """One skill. `source` is what was given to `install`, `kind` how it is fetched, `path` its directory in there.

    `commit` is set for git, `version` for npm. `tree_hash` is that of `skills.tree`; `declared` what was agreed to.
    `source_hash` is the hash of what the source had, which differs when an edited skill was agreed to. A pinned skill
    is not updated. `pending` is the entry that is being put in place.
    """

    source: str
    kind: str
    tree_hash: str
    date: str
    declared: Capabilities
    path: str = ""
    ref: str | None = None
    commit: str | None = None
    version: str | None = None
    pinned: bool = False
    source_hash: str | None = None
    pending: LockEntry | None = None

    def as_json(self) -> dict[str, Any]:
        """As it is written to the file."""
        fields = {name: getattr(self, name) for name in self.__match_args__ if name not in ("declared", "pending")}
        written = fields | {"declared": self.declared.as_json()}
        return written | ({"pending": self.pending.as_json()} if self.pending else {})


def now() -> str:
    """The time of an entry."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read_lock(root: Path) -> dict[str, LockEntry]:
    """The entries of the lock in a directory of skills, by name; empty without a lock. Raises `LockRefused`."""
    try:
        head = read_trusted(root / LOCK_FILE, _MAX_BYTES)
    except FileRefused as error:
        raise LockRefused(str(error).lower()) from None
    if head is None:
        return {}
    try:
        written = as_object(json.loads(head.raw))
    except (ValueError, RecursionError):
        raise LockRefused("not JSON, perhaps after a merge") from None
    if written.get("version") != _VERSION:
        raise LockRefused(f"not version {_VERSION} of the format")
    if "skills" not in written:
        raise LockRefused("`skills` is missing")
    return {name: _entry(name, value) for name, value in as_object(written["skills"]).items()}


def write_lock(root: Path, entries: Mapping[str, LockEntry], *, shared: bool = False) -> None:
    """Replace the lock in one step; no entries remove it. With `shared`, others may read it. Raises `OSError`."""
    path = root / LOCK_FILE
    if not entries:
        path.unlink(missing_ok=True)
        return
    document = {"version": _VERSION, "skills": {name: entry.as_json() for name, entry in entries.items()}}
    content = json.dumps(document, indent=2, sort_keys=True) + "\n"
    replace_private(path, content.encode(), sync=True, mode=0o644 if shared else 0o600)


def has_lock(root: Path) -> bool:
    """Whether a directory of skills has a lock, usable or not."""
    return os.path.lexists(root / LOCK_FILE)


def _entry(name: str, value: object) -> LockEntry:
    written = as_object(value)
    if not SKILL_NAME.fullmatch(name):
        raise LockRefused(f"`{name[:80]}` is not the name of a skill's directory")
    source, tree = written.get("source"), written.get("tree_hash")
    if not isinstance(source, str) or not isinstance(tree, str) or not _HASH.fullmatch(tree):
        raise LockRefused(f"the entry `{name}` has no valid `source` and `tree_hash`")
    pending = as_object(written.get("pending"))
    return LockEntry(
        source,
        _text(written, "kind") or "git",
        tree,
        _text(written, "date") or "",
        capabilities_from(written.get("declared")),
        _text(written, "path") or "",
        _text(written, "ref"),
        _text(written, "commit"),
        _text(written, "version"),
        written.get("pinned") is True,
        _text(written, "source_hash"),
        _entry(name, pending) if pending and "pending" not in pending else None,
    )


def _text(written: Mapping[str, Any], key: str) -> str | None:
    value = written.get(key)
    return value if isinstance(value, str) else None
