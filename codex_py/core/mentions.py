"""The skills that a message mentions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from codex_py.core.skill_settings import MissingVariable, SkillSettings, SkillsToInject
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import SkillInput, TextInput, UserInput
from codex_py.skills.dependencies import missing_env_warning, plan_dependencies
from codex_py.skills.inject import skill_item
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.select import select_skills
from codex_py.text.sanitize import sanitize_line


def read_named_skills(
    catalog: SkillCatalog,
    settings: SkillSettings,
    inputs: Sequence[UserInput],
    *,
    connector_slugs: Collection[str] = (),
) -> SkillsToInject:
    """Select and read the skills of one message. One that cannot be read costs a line, not the turn."""
    selection = select_skills(
        catalog,
        [item.text for item in inputs if isinstance(item, TextInput)],
        user_home=settings.roots.user_home,
        structured=[item for item in inputs if isinstance(item, SkillInput)],
        connector_slugs=connector_slugs,
    )
    items: list[ResponseItem] = []
    read: list[Skill] = []
    notices = list(selection.notices)
    for skill in selection.skills:
        if not settings.may_read(skill.canonical_path):
            notices.append(f"skill `{sanitize_line(skill.name)}` is left out: `sandbox.deny_read` denies reading it")
            continue
        injected = skill_item(skill)
        notices += [injected.warning] if injected.warning else []
        if injected.item is not None:
            items.append(injected.item)
            read.append(skill)
    present = settings.env.keys() | settings.withheld_env.keys()
    needs = plan_dependencies(read, env=present, configured_mcp=settings.configured_mcp)
    granted, withheld = _grants(read, settings)
    return SkillsToInject(
        items=tuple(items),
        skills=tuple(read),
        missing=tuple(
            MissingVariable(need.name, need.skills[0], need.description, missing_env_warning(need))
            for need in needs.missing_env
        ),
        granted=granted,
        notices=(*notices, *needs.notes, *withheld),
        servers=needs.missing_mcp,
    )


def _grants(skills: Sequence[Skill], settings: SkillSettings) -> tuple[dict[str, str], list[str]]:
    """Which withheld variables the skills may have, and a line for each that a repository's skill may not."""
    granted: dict[str, str] = {}
    lines: list[str] = []
    for skill in skills:
        env_names = [need.value.strip() for need in skill.dependencies if need.type.strip().lower() == "env_var"]
        for name in env_names:
            if name not in settings.withheld_env:
                continue
            if skill.scope != "repo":
                granted[name] = settings.withheld_env[name]
            else:
                # Whoever wrote the repository chose the name; the user has only chosen the skill.
                lines.append(
                    f"the repository's skill `{sanitize_line(skill.name)}` wants `{name}`, kept from commands;"
                    " to give it: `shell_environment_policy.ignore_default_excludes = true`"
                )
    return granted, lines
