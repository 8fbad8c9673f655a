"""What is known of the files of one root: records, stamps that say if they are current, the cache on disk.

They are what the cache keeps; a `Skill` is made of one when its root is known.

A file that is missing, damaged, of another version or of another root counts as none.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.protocol.value import Value
from codex_py.skills.model import NO_OPTIONS, Interface, Skill, SkillOptions, SkillProblem, SkillRoot, ToolDependency
from codex_py.text.files import load_checked, save_checked

# Times of the last change and of the last write in nanoseconds, size, inode; None for what is not there.
Stamp: TypeAlias = tuple[int, int, int, int] | None

NEVER: Final[Stamp] = (0, 0, 0, 0)
# A file written again within one tick of the file system's clock keeps its time stamp.
_TICK_NS: Final = 20_000_000


def stamp(path: str) -> Stamp:
    """The stamp of what is about to be read; links are followed.

    For what was written this very moment it is `NEVER`, which equals no later stamp: another write may follow unseen.
    """
    found = _stat(path)
    return NEVER if found and time.time_ns() - max(found[:2]) < _TICK_NS else found


def are_current(stamps: Mapping[str, Stamp]) -> bool:
    """Whether everything still has the stamp it had."""
    return all(_stat(path) == known for path, known in stamps.items())


def _stat(path: str) -> Stamp:
    try:
        # Thousands of these come before the first request, and a `Path` costs more than the call.
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


class FoundFile(NamedTuple):
    """One `SKILL.md`: its path as reached from the root, its real path; whether the other directories are beside it."""

    path: str
    real: str
    namespace: str | None = None
    has_agents: bool = False
    has_references: bool = False


class InterfaceText(NamedTuple):
    """An `Interface` before its icons are resolved: a relative path without `.` components."""

    display_name: str | None = None
    short_description: str | None = None
    icon_small: str | None = None
    icon_large: str | None = None
    brand_color: str | None = None
    default_prompt: str | None = None


class SkillRecord(NamedTuple):
    """The stored facts about one file. `error` is the reason why it is not a valid skill, "" for a skill.

    `description` is cut to what the list can show; `ours` is false for a skill made for other programs only;
    `remark` is what was ignored in `SKILL.md`, `metadata_remark` why `agents/openai.yaml` was ignored.
    `links_to_files` says that the text links to another Markdown file of the skill.
    """

    file: FoundFile
    error: str = ""
    name: str = ""
    description: str = ""
    short_description: str | None = None
    interface: InterfaceText | None = None
    dependencies: tuple[ToolDependency, ...] = ()
    allow_implicit: bool = True
    user_invocable: bool = True
    allowed_tools: tuple[str, ...] = ()
    ours: bool = True
    remark: str = ""
    metadata_remark: str = ""
    options: SkillOptions | None = None
    links_to_files: bool = False


class Scan(Value):
    """One search of a root. While the `stamps` are current, the rest is what a new search would give."""

    root: SkillRoot
    stamps: Mapping[str, Stamp]
    records: tuple[SkillRecord, ...]
    refused: tuple[SkillProblem, ...] = ()
    notes: tuple[str, ...] = ()


def skill_of(record: SkillRecord, root: SkillRoot) -> Skill:
    """The skill a record stands for when it is reached from `root`."""
    path = Path(record.file.path)
    interface = record.interface and resolve_interface(record.interface, path.parent, root.plugin_root)
    return Skill(
        record.name,
        record.description,
        record.short_description,
        path,
        path if record.file.real == record.file.path else Path(record.file.real),
        root,
        record.file.namespace,
        interface,
        record.dependencies,
        record.allow_implicit,
        record.user_invocable,
        record.allowed_tools,
        record.options or NO_OPTIONS,
        record.file.has_references or record.links_to_files,
    )


def remarks_of(record: SkillRecord) -> list[tuple[str, str]]:
    """The files that were not taken as they are, and what of them was ignored and why."""
    files = ((record.file.path, record.remark), (metadata_path(record.file), record.metadata_remark))
    return [(path, remark) for path, remark in files if remark]


def metadata_path(found: FoundFile) -> str:
    """Where the metadata of a skill lies, if it has any."""
    return f"{found.path.rpartition('/')[0]}/agents/openai.yaml"


def resolve_interface(text: InterfaceText, directory: Path, plugin_root: Path | None) -> Interface | None:
    """The interface of the skill in `directory`; None when nothing is left. Files are not looked at.

    An icon lies below `assets` of the skill, or of the plugin the skill belongs to.
    """
    icons = (_icon(text.icon_small, directory, plugin_root), _icon(text.icon_large, directory, plugin_root))
    interface = Interface(text.display_name, text.short_description, *icons, text.brand_color, text.default_prompt)
    return interface if any(vars(interface).values()) else None


def _icon(text: str | None, directory: Path, plugin_root: Path | None) -> Path | None:
    if text is None:
        return None
    path = directory / text
    if ".." not in text.split("/"):
        return path
    if plugin_root is None:
        return None
    lexical = Path(os.path.normpath(path))
    return lexical if lexical.is_relative_to(plugin_root / "assets") else None


_FORMAT: Final = b"codex-py skills 6"
_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_FILES: Final = 64
# By place; the first field has no default.
_DEFAULTS: Final = (None, *SkillRecord._field_defaults.values())
# The place of the first field that JSON does not give back as it was.
_FIRST_LIST: Final = SkillRecord._fields.index("interface")
_DAMAGE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


def load_scan(directory: Path, root: SkillRoot) -> Scan | None:
    """The scan of a root as it was last saved below `directory`, current or not; None when there is none to use."""
    body = load_checked(_path(directory, root), _FORMAT, max_bytes=_MAX_BYTES)
    try:
        return None if body is None else _decode(json.loads(body), root)
    except _DAMAGE:
        return None


def save_scan(directory: Path, scan: Scan) -> None:
    """Write a scan below `directory`, 0600, whole or not at all; what cannot be written is not kept."""
    body = json.dumps(_encode(scan), separators=(",", ":")).encode()
    path = _path(directory, scan.root)
    with suppress(OSError):
        _remove_oldest(directory, path)
    save_checked(path, _FORMAT, body, max_bytes=_MAX_BYTES)


def _path(directory: Path, root: SkillRoot) -> Path:
    return directory / f"{zlib.crc32(repr(_identity(root)).encode(errors='surrogatepass')):08x}.json"


def _remove_oldest(directory: Path, path: Path) -> None:
    """Keep the number of files bounded: the oldest goes, and the drafts of processes that died."""
    names = [entry for entry in directory.iterdir() if entry != path and _is_record(entry.name)]
    if len(names) >= _MAX_FILES:
        names.sort(key=lambda entry: entry.lstat().st_mtime_ns)
        for entry in names[: len(names) - _MAX_FILES + 1]:
            entry.unlink(missing_ok=True)


def _is_record(name: str) -> bool:
    return name.endswith(".json") or name.startswith(".")


def _identity(root: SkillRoot) -> list[str | None]:
    """The properties of a root that determine how its files are found and read."""
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
        options=_decode_options(*record.options) if record.options else None,
    )


def _decode_options(*fields: Any) -> SkillOptions:
    options = SkillOptions(*fields)
    return options._replace(arguments=tuple(options.arguments), paths=tuple(options.paths))
