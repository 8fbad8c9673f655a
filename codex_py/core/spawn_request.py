"""What a model asks for when it starts an agent, looked up: the role and the skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from codex_py.core.skill_names import for_a_model
from codex_py.errors import ToolError
from codex_py.protocol.input import SkillInput, UserInput
from codex_py.text.nearest import did_you_mean

if TYPE_CHECKING:
    from codex_py.core.agent_role import AgentRole
    from codex_py.skills.model import Skill


def find_role(name: str, roles: Mapping[str, AgentRole]) -> AgentRole | None:
    """The role of this name; None where none is wished. Raises `ToolError` that names those there are."""
    # What other programs call the absence of a role.
    if not name or name == "default":
        return roles.get(name)
    if (role := roles.get(name)) is not None:
        return role
    known = ", ".join(f"`{role_name}`" for role_name in roles)
    guess = f"{question} " if (question := did_you_mean(name, roles)) else ""
    raise ToolError(f"unknown agent_type `{name}`: {guess}there are {known}")


def find_skills(
    role: AgentRole | None,
    requested: Sequence[str],
    *,
    find: Callable[[str], Skill],
    warn_for: Callable[[str, str], None],
) -> Sequence[UserInput]:
    """The skills an agent begins with, each once: those of its role, and those the model wishes.

    `find` raises `ToolError` for the name of none. One that a role names costs a line: the model could not mend it.
    """
    named: list[Skill] = []
    # A role is written by people, who may ask for any skill.
    for name in role.skills if role else ():
        try:
            named.append(find(name))
        except ToolError as error:
            warn_for(f"the agent role `{role.name if role else ''}`", str(error))
    named += [for_a_model(find(name)) for name in requested]
    return list({skill.canonical_path: SkillInput(skill.name, skill.canonical_path) for skill in named}.values())


def check_provider(role: AgentRole | None, provider: str) -> None:
    """Raises `ToolError` for a role that is for another provider: what it is told must not go to this one."""
    if role is not None and role.provider not in (None, provider):
        raise ToolError(
            f"the role `{role.name}` is for the provider `{role.provider}`, and agents have that of their session,"
            f" `{provider}`: use another `agent_type`"
        )
