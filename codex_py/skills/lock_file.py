"""The lock files that the `skills` program of the npm registry shares between agents; they hold only what it writes.

`skills-lock.json` (version 1) at the top of a project, and `.skill-lock.json` (version 3) of the user, for skills in
`~/.agents/skills`. The formats are those of version 1.7 of the program.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.protocol.encoding import as_object
from codex_py.replace_file import replace_file
from codex_py.skills.capabilities import Capabilities
from codex_py.skills.records import SKILL_NAME, InstallRecord
from codex_py.skills.tree import TreeRefused, list_tree, read_file
from codex_py.text.files import FileRefused, os_reason, read_trusted

# A directory by the names in it: a file's mode and hash, or a directory.
_Tree: TypeAlias = "dict[str, tuple[str, bytes] | _Tree]"
_MAX_BYTES: Final = 8 * 1024 * 1024
_GITHUB: Final = "https://github.com/"
# The order of its file names, which is that of a dictionary: signs, digits, letters; case only breaks a tie.
_SIGNS: Final = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"


class LockFile(NamedTuple):
    """One of the two files, there or not."""

    path: Path
    is_project: bool

    @property
    def version(self) -> int:
        return 1 if self.is_project else 3

    def document(self) -> dict[str, Any]:
        """The whole file, an empty one where there is none. Raises `UserError` for one that cannot be used."""
        try:
            head = read_trusted(self.path, _MAX_BYTES)
            if head is None:
                return {"version": self.version, "skills": {}, **({} if self.is_project else {"dismissed": {}})}
            document = as_object(json.loads(head.raw))
        except (FileRefused, ValueError, RecursionError) as error:
            reason = str(error).lower() if isinstance(error, FileRefused) else "not JSON, perhaps after a merge"
            raise UserError(f"cannot read `{self.path}`: {reason}", hint="restore it, or delete it") from None
        if document.get("version") != self.version or not isinstance(document.get("skills"), dict):
            raise UserError(f"cannot read `{self.path}`: not version {self.version} of the format")
        return document

    def skills(self) -> dict[str, Any]:
        """Its entries, by name. Raises `UserError`."""
        return as_object(self.document()["skills"])


def project_lock(project: Path) -> LockFile:
    """The lock file of a project."""
    return LockFile(project / "skills-lock.json", is_project=True)


def user_lock(env: Mapping[str, str], home: Path) -> LockFile:
    """The lock file of the user."""
    state = env.get("XDG_STATE_HOME")
    path = Path(state, "skills", ".skill-lock.json") if state else home / ".agents" / ".skill-lock.json"
    return LockFile(path, is_project=False)


def locked_skills(lock: LockFile) -> dict[str, InstallRecord]:
    """A record without hash for each skill whose source can be fetched. Raises `UserError`."""
    found = {name: _record(lock, as_object(value)) for name, value in lock.skills().items()}
    return {name: record for name, record in found.items() if record and SKILL_NAME.fullmatch(name)}


def locked_hash(lock: LockFile, name: str) -> str:
    """The hash of a project's skill in its lock; "" where it has none. Raises `UserError`."""
    return str(as_object(lock.skills().get(name)).get("computedHash") or "")


def _record(lock: LockFile, entry: Mapping[str, Any]) -> InstallRecord | None:
    texts = {key: value for key, value in entry.items() if isinstance(value, str)}
    address, source_type = texts.get("sourceUrl") or texts.get("source"), texts.get("sourceType")
    if not address or source_type not in ("github", "gitlab", "git", "local"):
        return None
    if source_type == "github" and "://" not in address:
        address = f"{_GITHUB}{address}.git"
    if source_type == "local":
        # A relative one starts at the lock.
        address = os.path.normpath(lock.path.parent / address)
    inner = Path(texts.get("skillPath", "")).parent.as_posix()
    return InstallRecord(
        address,
        "directory" if source_type == "local" else "git",
        "",
        texts.get("updatedAt", ""),
        Capabilities(),
        "" if inner == "." else inner,
        texts.get("ref"),
    )


def put_entry(lock: LockFile, name: str, record: InstallRecord, directory: Path) -> None:
    """Write one skill as the other program would, which cannot install from an archive. Raises `UserError`."""
    if record.source_type not in ("git", "directory"):
        drop_entry(lock, name)
        return
    skills = lock.skills()
    earlier = as_object(skills.get(name))
    source, address, source_type = _origin(lock, earlier, record)
    skill_path = None if source_type == "local" else f"{record.path}/SKILL.md".lstrip("/")
    if lock.is_project:
        entry = {
            "source": source,
            "sourceUrl": address if source_type in ("git", "gitlab") else None,
            "ref": record.ref,
            "sourceType": source_type,
            "skillPath": skill_path,
            "computedHash": content_hash(directory),
        }
    else:
        # The other program compares skills from GitHub with the tree hash that GitHub reports.
        content = git_tree_hash(directory) if source_type == "github" else content_hash(directory)
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        entry = {
            "source": source,
            "sourceType": source_type,
            "sourceUrl": address,
            "ref": record.ref,
            "skillPath": skill_path,
            "skillFolderHash": content,
            "pluginName": earlier.get("pluginName"),
            "installedAt": earlier.get("installedAt") or now,
            "updatedAt": now,
        }
    _write(lock, {**skills, name: {key: value for key, value in entry.items() if value}})


def drop_entry(lock: LockFile, name: str) -> None:
    """Remove one skill. Raises `UserError`."""
    skills = lock.skills()
    if name in skills:
        _write(lock, {key: value for key, value in skills.items() if key != name})


def _origin(lock: LockFile, earlier: Mapping[str, Any], record: InstallRecord) -> tuple[str, str, str]:
    """`source`, `sourceUrl` and `sourceType`; an earlier entry keeps its own where it names the same source."""
    known = _record(lock, earlier)
    if known and known.source == record.source:
        return str(earlier.get("source")), str(earlier.get("sourceUrl") or known.source), str(earlier["sourceType"])
    if record.source_type == "directory":
        return _from_lock(lock, record.source) if lock.is_project else record.source, record.source, "local"
    if record.source.startswith(_GITHUB):
        return record.source.removeprefix(_GITHUB).removesuffix(".git"), record.source, "github"
    return record.source, record.source, "git"


def _from_lock(lock: LockFile, source: str) -> str:
    """A directory as the lock of a project names it: from there."""
    relative = os.path.relpath(source, lock.path.parent)
    return relative if relative == "." or relative.startswith("..") else f"./{relative}"


def content_hash(directory: Path) -> str:
    """The hash that the other program computes: paths and contents of all files, one after the other."""
    total = hashlib.sha256()
    try:
        files = [file for file in list_tree(directory, copying=True) if file.mode != "120000"]
        for file in sorted(files, key=lambda file: _order(file.path)):
            total.update(file.path.encode())
            total.update(read_file(directory, file))
    except (TreeRefused, OSError) as error:
        raise UserError(f"cannot read `{directory}`: {error}") from error
    return total.hexdigest()


def git_tree_hash(directory: Path) -> str:
    """The name that git has for a directory with these files. Raises `UserError`."""
    tree: _Tree = {}
    try:
        for file in list_tree(directory, copying=True):
            *above, name = file.path.split("/")
            inner = tree
            for part in above:
                inner = cast("_Tree", inner.setdefault(part, {}))
            inner[name] = file.mode, _git_object(b"blob", read_file(directory, file))
    except (TreeRefused, OSError) as error:
        raise UserError(f"cannot read `{directory}`: {error}") from error
    return _git_tree(tree).hex()


def _git_tree(tree: _Tree) -> bytes:
    entries: list[tuple[bytes, bytes]] = []
    for name, found in tree.items():
        raw = name.encode("utf-8", "surrogateescape")
        mode, digest = ("40000", _git_tree(found)) if isinstance(found, dict) else found
        # git sorts a directory as if its name ended with a slash.
        entries.append((raw + b"/" * isinstance(found, dict), b"%s %s\0%s" % (mode.encode(), raw, digest)))
    return _git_object(b"tree", b"".join(entry for _, entry in sorted(entries)))


def _git_object(noun: bytes, content: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0%s" % (noun, len(content), content), usedforsecurity=False).digest()


def _order(path: str) -> tuple[list[tuple[int, str]], str]:
    ranks = [(_SIGNS.find(char) if char in _SIGNS else len(_SIGNS), char.casefold()) for char in path]
    return ranks, path.swapcase()


def _write(lock: LockFile, skills: Mapping[str, Any]) -> None:
    # The other program sorts the file of a project, and ends it with a newline.
    ordered = {name: skills[name] for name in sorted(skills)} if lock.is_project else skills
    text = json.dumps({**lock.document(), "skills": ordered}, indent=2, ensure_ascii=False) + "\n" * lock.is_project
    try:
        lock.path.parent.mkdir(parents=True, exist_ok=True)
        mode = lock.path.stat().st_mode & 0o777 if lock.path.exists() else 0o644
        replace_file(lock.path, text.encode(), mode=mode)
    except OSError as error:
        raise UserError(f"cannot write `{lock.path}`: {os_reason(error)}") from error
