"""Scans kept on disk, one file a root, so that a start reads no skill and imports no YAML when nothing changed.

A file that is missing, damaged, of another version or of another root counts as none.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.ids import uuid7
from codex_py.skills.discover import FoundFile
from codex_py.skills.metadata import InterfaceText
from codex_py.skills.model import SkillProblem, SkillRoot, ToolDependency
from codex_py.skills.record import SkillRecord
from codex_py.skills.scan import Scan

_HEADER: Final = b"codex-py skills 1 "
_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_FILES: Final = 64
_DAMAGE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


def load_scan(folder: Path, root: SkillRoot) -> Scan | None:
    """The scan of a root as it was last saved below `folder`, current or not; None when there is none to use."""
    try:
        with os.fdopen(os.open(_path(folder, root), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    header, _, body = raw.partition(b"\n")
    if header != _header(body):
        return None
    try:
        return _decode(json.loads(body), root)
    except _DAMAGE:
        return None


def save_scan(folder: Path, scan: Scan) -> None:
    """Write a scan below `folder`, 0600, whole or not at all; what cannot be written is not kept."""
    body = json.dumps(_encode(scan), separators=(",", ":")).encode()
    path = _path(folder, scan.root)
    draft = path.with_name(f".{path.name}.{uuid7()}")
    if len(body) > _MAX_BYTES - len(_header(body)):
        return
    try:
        make_private_dir(folder)
        _make_room(folder, path)
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(b"%s\n%s" % (_header(body), body))
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()


def _path(folder: Path, root: SkillRoot) -> Path:
    return folder / f"{zlib.crc32(repr(_identity(root)).encode(errors='surrogatepass')):08x}.json"


def _header(body: bytes) -> bytes:
    return b"%s%08x" % (_HEADER, zlib.crc32(body))


def _make_room(folder: Path, path: Path) -> None:
    """Keep the number of files bounded: the oldest goes, and the drafts of processes that died."""
    names = [entry for entry in folder.iterdir() if entry != path]
    if len(names) >= _MAX_FILES:
        names.sort(key=lambda entry: entry.lstat().st_mtime_ns)
        for entry in names[: len(names) - _MAX_FILES + 1]:
            entry.unlink(missing_ok=True)


def _identity(root: SkillRoot) -> list[str | None]:
    """What of a root decides how its files are found and read."""
    return [str(root.path), root.scope, root.namespace, str(root.inside) if root.inside else None]


def _encode(scan: Scan) -> dict[str, Any]:
    return {
        "root": _identity(scan.root),
        "stamps": scan.stamps,
        "records": scan.records,
        "refused": [(str(problem.path), problem.message) for problem in scan.refused],
        "notes": scan.notes,
    }


def _decode(value: dict[str, Any], root: SkillRoot) -> Scan | None:
    if value["root"] != _identity(root):
        return None
    stamps = {path: tuple(stamp) if stamp else None for path, stamp in value["stamps"].items()}
    records = tuple(_decode_record(*fields) for fields in value["records"])
    refused = tuple(SkillProblem(Path(path), message, root.scope) for path, message in value["refused"])
    return Scan(root, stamps, records, refused, tuple(value["notes"]))


def _decode_record(file: list[Any], *fields: Any) -> SkillRecord:
    record = SkillRecord(FoundFile(*file), *fields)
    return record._replace(
        interface=InterfaceText(*record.interface) if record.interface else None,
        dependencies=tuple(ToolDependency(*tool) for tool in record.dependencies),
        allowed_tools=tuple(record.allowed_tools),
    )
