"""A skill by the name that a model or a person gives it."""

from __future__ import annotations

from typing import Final

from codex_py.errors import ToolError
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.text.nearest import nearest_names
from codex_py.text.sanitize import sanitize_line

_MAX_NAMED: Final = 5
_MAX_NAME_LENGTH: Final = 200


def find_skill(catalog: SkillCatalog, name: str) -> Skill:
    """The one skill of this name that is switched on; also without its namespace, and with a `$` before it.

    Raises `ToolError` that names the closest ones where there is none, and the files where there are several.
    """
    requested = name.strip().removeprefix("$")[:_MAX_NAME_LENGTH]
    enabled = catalog.enabled()
    found = [skill for skill in enabled if skill.name == requested] or [
        skill for skill in enabled if skill.namespace and skill.name == f"{skill.namespace}:{requested}"
    ]
    if len(found) == 1:
        return found[0]
    shown = sanitize_line(requested).replace("`", "'")
    if found:
        files = ", ".join(f"`{sanitize_line(str(skill.path))}` ({skill.name})" for skill in found[:_MAX_NAMED])
        raise ToolError(f"{len(found)} skills are called `{shown}`: use a whole name, or read the file of one: {files}")
    names = [skill.name for skill in enabled if skill.allow_implicit]
    close = nearest_names(requested, names, limit=_MAX_NAMED)
    listed = ", ".join(f"`{sanitize_line(skill_name)}`" for skill_name in close or sorted(names)[:_MAX_NAMED])
    hint = f"{'the closest are' if close else 'there are'} {listed}" if names else "there are no skills"
    raise ToolError(f"there is no skill `{shown}`; {hint}")


def invocable(catalog: SkillCatalog) -> list[Skill]:
    """The skills a person may pick."""
    return [skill for skill in catalog.enabled() if skill.user_invocable]


def skill_called(catalog: SkillCatalog, name: str, rest: str) -> tuple[Skill, str] | None:
    """The skill that a person means by `/name rest`, and that message with a mention of it."""
    found = next((skill for skill in invocable(catalog) if skill.name == name), None)
    return (found, f"${name} {rest}".strip()) if found else None


def for_a_model(skill: Skill) -> Skill:
    """The skill, if a model may choose it by itself. Raises `ToolError` for one that only people may ask for."""
    if skill.allow_implicit:
        return skill
    name = sanitize_line(skill.name)
    raise ToolError(f"the skill `{name}` is only for the user to ask for, by writing `${name}` in a message")
