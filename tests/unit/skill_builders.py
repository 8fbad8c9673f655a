"""Skills as values, and as directories on disk, for tests of what is done with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_py.skills.model import RootType, Skill, SkillCatalog, SkillRoot, SkillScope, catalogue_key

_KINDS: dict[SkillScope, RootType] = {"repo": "agents", "user": "home", "system": "system", "admin": "admin"}
DIRECTORIES: dict[SkillScope, str] = {
    "repo": "/repo/.agents/skills",
    "user": "/home/u/.codex/skills",
    "system": "/home/u/.codex/skills/.system",
    "admin": "/etc/codex/skills",
}


def skill(name: str = "lint", scope: SkillScope = "user", *, root: SkillRoot | None = None, **fields: Any) -> Skill:
    """A skill in the usual root of its scope, in a directory of its base name."""
    at = root or SkillRoot(Path(DIRECTORIES[scope]), scope, _KINDS[scope])
    path: Path = fields.pop("path", at.path / name.rpartition(":")[2] / "SKILL.md")
    canonical: Path = fields.pop("canonical_path", path)
    description: str = fields.pop("description", f"About {name}.")
    return Skill(name, description, None, path, canonical, at, **fields)


def catalog(*skills: Skill, disabled: tuple[Skill, ...] = ()) -> SkillCatalog:
    """The skills and the disabled ones in catalogue order."""
    everything = tuple(sorted([*skills, *disabled], key=catalogue_key))
    return SkillCatalog(everything, frozenset(one.canonical_path for one in disabled))


def skill_on_disk(directory: Path, body: str | bytes = "body\n", *, inside: Path | None = None) -> Skill:
    """A skill whose file is there; its root is the directory's parent, of repo scope when it is `inside` a project."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "SKILL.md"
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    root = SkillRoot(directory.parent, "repo" if inside else "user", "agents" if inside else "home", inside=inside)
    return skill(directory.name, root=root, path=path, canonical_path=path.resolve())
