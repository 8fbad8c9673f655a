"""Reading one `SKILL.md` with its `agents/openai.yaml` into a record. Not needed while nothing has changed."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

from codex_py.skills.metadata import Metadata, MetadataRefused, parse_metadata
from codex_py.skills.parse import MAX_DESCRIPTION_CHARS, SkillRefused, parse_skill, qualified_name
from codex_py.skills.record import FoundFile, SkillRecord, metadata_path
from codex_py.text.frontmatter import MAX_BYTES
from codex_py.text.regular_file import FileHead, FileRefused, read_inside, read_trusted

# No model is ever shown what lies behind this, so it is not read to look for bytes that are no text.
MAX_CHECKED_BYTES: Final = 1024 * 1024


def read_record(found: FoundFile, inside: Path | None) -> SkillRecord:
    """Read what was found; never raises. Files of a project are read only from `inside` it."""
    try:
        skill = parse_skill(read_skill_text(found.real, inside))
        name = qualified_name(found.namespace, skill.name)
    except SkillRefused as error:
        return SkillRecord(found, str(error))
    metadata, metadata_remark = skill.metadata, ""
    if found.has_agents:
        try:
            metadata = _read_metadata(metadata_path(found), inside).over(metadata)
        except MetadataRefused as error:
            metadata_remark = error.remark
            if error.allow_implicit is not None:
                metadata = metadata._replace(allow_implicit=error.allow_implicit)
    return SkillRecord(
        found,
        name=name,
        description=_cut(skill.description),
        short_description=_cut(skill.short_description) if skill.short_description else None,
        interface=metadata.interface if any(metadata.interface) else None,
        dependencies=metadata.dependencies,
        allow_implicit=metadata.allow_implicit is not False,
        user_invocable=skill.user_invocable,
        allowed_tools=skill.allowed_tools,
        ours=metadata.for_this_program,
        remark=skill.remark,
        metadata_remark=metadata_remark,
    )


def sources(found: FoundFile) -> tuple[str, ...]:
    """The files a record is read from; the second may be missing."""
    return (found.real, metadata_path(found)) if found.has_agents else (found.real,)


def read_skill_text(path: Path | str, inside: Path | None) -> str:
    """The first MiB of a `SKILL.md` by its real path. Raises `SkillRefused` when it cannot be read or is no UTF-8."""
    try:
        head = _read_head(path, inside, MAX_CHECKED_BYTES)
        if head is None:
            raise FileRefused("no such file")
        whole = len(head.raw) >= head.size
        return codecs.getincrementaldecoder("utf-8")().decode(head.raw, whole)
    except FileRefused as error:
        raise SkillRefused(f"failed to read file: {str(error).lower()}") from None
    except UnicodeDecodeError as error:
        raise SkillRefused(f"failed to read file: not UTF-8 at byte {error.start}") from None


def _read_metadata(path: str, inside: Path | None) -> Metadata:
    try:
        head = _read_head(path, inside, MAX_BYTES + 1)
    except FileRefused as error:
        raise MetadataRefused(str(error).lower()) from None
    if head is None:
        return Metadata()
    if len(head.raw) > MAX_BYTES:
        raise MetadataRefused(f"longer than {MAX_BYTES // 1024} KiB")
    try:
        return parse_metadata(head.raw.decode())
    except UnicodeDecodeError:
        raise MetadataRefused("not UTF-8") from None


def _read_head(path: Path | str, inside: Path | None, max_bytes: int) -> FileHead | None:
    return read_inside(inside, path, max_bytes) if inside else read_trusted(path, max_bytes)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION_CHARS else f"{text[: MAX_DESCRIPTION_CHARS - 3]}..."
