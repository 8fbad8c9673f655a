"""What is known of the files of one root: records that do not depend on who asks for them.

They are what the cache keeps; a `Skill` is made of one when its root is known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from codex_py.protocol.value import Value
from codex_py.skills.model import Interface, Skill, SkillProblem, SkillRoot, ToolDependency
from codex_py.skills.stamps import Stamp


class FoundFile(NamedTuple):
    """One `SKILL.md`: its path as reached from the root, and its real path; whether `agents` lies beside it."""

    path: str
    real: str
    namespace: str | None = None
    has_agents: bool = False


class InterfaceText(NamedTuple):
    """An `Interface` before its icons are resolved: a relative path without `.` components."""

    display_name: str | None = None
    short_description: str | None = None
    icon_small: str | None = None
    icon_large: str | None = None
    brand_color: str | None = None
    default_prompt: str | None = None


class SkillRecord(NamedTuple):
    """What is known of one file. `error` is the reason it is no skill, "" for a skill.

    `description` is cut to what the list can show; `ours` is false for a skill made for other programs only;
    `remark` is what was ignored in `SKILL.md`, `metadata_remark` why `agents/openai.yaml` was ignored.
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
    )


def remarks_of(record: SkillRecord) -> list[tuple[str, str]]:
    """The files that were not taken as they are, and what of them was ignored and why."""
    files = ((record.file.path, record.remark), (metadata_path(record.file), record.metadata_remark))
    return [(path, remark) for path, remark in files if remark]


def metadata_path(found: FoundFile) -> str:
    """Where the metadata of a skill lies, if it has any."""
    return f"{found.path.rpartition('/')[0]}/agents/openai.yaml"


def resolve_interface(text: InterfaceText, directory: Path, plugin_root: Path | None) -> Interface | None:
    """The interface of the skill in `folder`; None when nothing is left. Files are not looked at.

    An icon lies below `assets` of the skill, or of the plugin the skill belongs to.
    """
    icons = (_icon(text.icon_small, directory, plugin_root), _icon(text.icon_large, directory, plugin_root))
    interface = Interface(text.display_name, text.short_description, *icons, text.brand_color, text.default_prompt)
    return interface if any(interface) else None


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
