"""Scans kept on disk, one file a root, so that a start reads no skill and imports no YAML when nothing changed.

A file that is missing, damaged, of another version or of another root counts as none.
"""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from codex_py.skills.model import SkillProblem, SkillRoot, ToolDependency
from codex_py.skills.record import FoundFile, InterfaceText, Scan, SkillRecord
from codex_py.text.checked_file import load_checked, save_checked

_FORMAT: Final = b"codex-py skills 3"
_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_FILES: Final = 64
# By place; the first field has no default.
_DEFAULTS: Final = (None, *SkillRecord._field_defaults.values())
# The place of the first field that JSON does not give back as it was.
_FIRST_LIST: Final = SkillRecord._fields.index("interface")
_DAMAGE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


def load_scan(directory: Path, root: SkillRoot) -> Scan | None:
    """The scan of a root as it was last saved below `folder`, current or not; None when there is none to use."""
    body = load_checked(_path(directory, root), _FORMAT, max_bytes=_MAX_BYTES)
    try:
        return None if body is None else _decode(json.loads(body), root)
    except _DAMAGE:
        return None


def save_scan(directory: Path, scan: Scan) -> None:
    """Write a scan below `folder`, 0600, whole or not at all; what cannot be written is not kept."""
    body = json.dumps(_encode(scan), separators=(",", ":")).encode()
    path = _path(directory, scan.root)
    with suppress(OSError):
        _remove_oldest(directory, path)
    save_checked(path, _FORMAT, body, max_bytes=_MAX_BYTES)


def _path(directory: Path, root: SkillRoot) -> Path:
    return directory / f"{zlib.crc32(repr(_identity(root)).encode(errors='surrogatepass')):08x}.json"


def _remove_oldest(directory: Path, path: Path) -> None:
    """Keep the number of files bounded: the oldest goes, and the drafts of processes that died."""
    names = [entry for entry in directory.iterdir() if entry != path]
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
        "records": [_encode_record(record) for record in scan.records],
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


def _encode_record(record: SkillRecord) -> list[Any]:
    """The fields without the defaults at their end, which most records have; the real path only when it differs."""
    path, real, *more = record.file
    fields = [[path, real if real != path else "", *more], *record[1:]]
    while len(fields) > 1 and fields[-1] == _DEFAULTS[len(fields) - 1]:
        fields.pop()
    return fields


def _decode_record(file: list[Any], *fields: Any) -> SkillRecord:
    path, real, *more = file
    record = SkillRecord(FoundFile(path, real or path, *more), *fields)
    if len(fields) < _FIRST_LIST:
        return record
    return record._replace(
        interface=InterfaceText(*record.interface) if record.interface else None,
        dependencies=tuple(ToolDependency(*tool) for tool in record.dependencies),
        allowed_tools=tuple(record.allowed_tools),
    )
