"""The lock files of the `skills` program of the npm registry, so that both programs can manage the same skills.

`skills-lock.json` (version 1) at the top of a project, and `.skill-lock.json` (version 3) of the user, for skills in
`~/.agents/skills`. Only files that are there are changed, and fields that are not known here stay.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

from codex_py.errors import UserError
from codex_py.paths import replace_private
from codex_py.protocol.encoding import as_object
from codex_py.skills.capabilities import Capabilities
from codex_py.skills.lock import SKILL_NAME, LockEntry, now
from codex_py.skills.tree import TreeRefused, list_tree, read_file
from codex_py.text.files import FileRefused, read_trusted

# A directory by the names in it: a file's mode and hash, or a directory.
_Tree: TypeAlias = "dict[str, tuple[str, bytes] | _Tree]"
_MAX_BYTES: Final = 8 * 1024 * 1024
# The order of its file names, which is that of a dictionary: signs, digits, letters; case only breaks a tie.
_SIGNS: Final = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"


class OtherLock(NamedTuple):
    """One of the two files. `document` is the whole of it, `root` the directory with the skills it is about."""

    path: Path
    root: Path
    document: dict[str, Any]
    is_project: bool

    @property
    def skills(self) -> dict[str, Any]:
        """The entries by name."""
        return as_object(self.document.get("skills"))


def project_lock(project: Path, root: Path) -> OtherLock | None:
    """The lock of a project; None when there is none that can be used."""
    return _read(project / "skills-lock.json", root, 1, is_project=True)


def user_lock(env: Mapping[str, str], home: Path, root: Path) -> OtherLock | None:
    """The lock of the user; None when there is none that can be used."""
    state = env.get("XDG_STATE_HOME")
    path = Path(state, "skills", ".skill-lock.json") if state else home / ".agents" / ".skill-lock.json"
    return _read(path, root, 3, is_project=False)


def adopted_entries(lock: OtherLock) -> dict[str, LockEntry]:
    """Entries for the skills that the other program has installed and whose source we can fetch, without a hash."""
    found: dict[str, LockEntry] = {}
    for name, value in lock.skills.items():
        entry = as_object(value)
        address = entry.get("sourceUrl") or entry.get("source")
        path = entry.get("skillPath")
        kind = entry.get("sourceType")
        if not SKILL_NAME.fullmatch(name) or not isinstance(address, str) or not (lock.root / name).is_dir():
            continue
        if kind == "github" and "://" not in address:
            address = f"https://github.com/{address}.git"
        if kind == "local":
            # A relative one starts at the lock.
            address = os.path.normpath(lock.path.parent / address)
        if kind not in ("github", "gitlab", "git", "local"):
            continue
        inner = str(Path(path).parent.as_posix()) if isinstance(path, str) else ""
        date = entry.get("updatedAt")
        ref = entry.get("ref")
        found[name] = LockEntry(
            address,
            "directory" if kind == "local" else "git",
            "",
            date if isinstance(date, str) else "",
            Capabilities(),
            "" if inner == "." else inner,
            ref if isinstance(ref, str) else None,
        )
    return found


def put_entry(lock: OtherLock, name: str, entry: LockEntry, directory: Path) -> None:
    """Write one skill as the other program would. Raises `UserError` when the file cannot be written."""
    earlier = as_object(lock.skills.get(name))
    fields = _origin(lock, earlier, entry)
    kind = fields["sourceType"]
    fields |= {} if kind == "local" else {"skillPath": f"{entry.path}/SKILL.md".lstrip("/")}
    fields |= {"ref": entry.ref} if entry.ref else {}
    if lock.is_project:
        fields["computedHash"] = content_hash(directory)
    else:
        # The other program compares skills from GitHub with the tree hash that GitHub reports.
        fields["skillFolderHash"] = git_tree_hash(directory) if kind == "github" else content_hash(directory)
        date = now()
        fields |= {"installedAt": earlier.get("installedAt", date), "updatedAt": date}
    written = {key: value for key, value in earlier.items() if key in fields or key not in ("skillPath", "ref")}
    _write(lock, {**lock.skills, name: written | fields})


def _origin(lock: OtherLock, earlier: Mapping[str, Any], entry: LockEntry) -> dict[str, Any]:
    """The fields about the source; those that are there stay when they name the same one."""
    if earlier.get("sourceUrl") == entry.source and isinstance(earlier.get("sourceType"), str):
        return {key: earlier[key] for key in ("source", "sourceUrl", "sourceType") if key in earlier}
    if entry.kind == "git":
        return {"source": _short(entry.source), "sourceUrl": entry.source, "sourceType": _git_type(entry.source)}
    if lock.is_project:
        return {"source": _local_source(lock, entry.source), "sourceType": "local"}
    return {"source": entry.source, "sourceUrl": entry.source, "sourceType": "local"}


def drop_entry(lock: OtherLock, name: str) -> None:
    """Remove one skill. Raises `UserError` when the file cannot be written."""
    if name in lock.skills:
        _write(lock, {key: value for key, value in lock.skills.items() if key != name})


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


def _local_source(lock: OtherLock, source: str) -> str:
    """A directory as the lock of a project names it: from there."""
    relative = os.path.relpath(source, lock.path.parent)
    return relative if relative.startswith("..") or relative == "." else f"./{relative}"


def _order(path: str) -> tuple[list[tuple[int, str]], str]:
    ranks = [(_SIGNS.find(char) if char in _SIGNS else len(_SIGNS), char.casefold()) for char in path]
    return ranks, path.swapcase()


def _git_type(address: str) -> str:
    return "github" if address.startswith("https://github.com/") else "git"


def _short(address: str) -> str:
    """`owner/repository` for GitHub, which is what the other program calls the source."""
    prefix = "https://github.com/"
    return address.removeprefix(prefix).removesuffix(".git") if address.startswith(prefix) else address


def _read(path: Path, root: Path, version: int, *, is_project: bool) -> OtherLock | None:
    try:
        head = read_trusted(path, _MAX_BYTES)
        document = as_object(json.loads(head.raw)) if head else {}
    except (FileRefused, ValueError, RecursionError):
        return None
    if document.get("version") != version or not isinstance(document.get("skills"), dict):
        return None
    return OtherLock(path, root, document, is_project)


def _write(lock: OtherLock, skills: Mapping[str, Any]) -> None:
    ordered = {name: skills[name] for name in sorted(skills)}
    # The one of a project ends with a newline, the other does not.
    text = json.dumps({**lock.document, "skills": ordered}, indent=2, ensure_ascii=False)
    try:
        mode = lock.path.stat().st_mode & 0o777
        replace_private(lock.path, (text + ("\n" if lock.is_project else "")).encode(), mode=mode)
    except OSError as error:
        raise UserError(f"cannot write `{lock.path}`: {(error.strerror or str(error)).lower()}") from error
