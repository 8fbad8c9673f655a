"""The skills that a message mentions, and a skill by its name. Loaded when one is mentioned or called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from codex_py.core.session_skills import FailedSkill, MissingVariable, SkillSettings, SkillsToInject
from codex_py.errors import ToolError
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import SkillInput, TextInput, UserInput
from codex_py.skills.arguments import find_arguments
from codex_py.skills.dependencies import missing_env_warning, plan_dependencies
from codex_py.skills.inject import fill_body, render_loaded, skill_body, skill_item
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.references import find_references, references_item
from codex_py.skills.roots import link_base
from codex_py.skills.select import Selection, select_skills
from codex_py.text.files import FileRefused
from codex_py.text.nearest import nearest_names
from codex_py.text.sanitize import sanitize_line
from codex_py.tools.spec import SkillCall


def read_named_skills(
    catalog: SkillCatalog,
    settings: SkillSettings,
    inputs: Sequence[UserInput],
    *,
    connector_slugs: Collection[str] = (),
    arguments: str = "",
) -> SkillsToInject:
    """Select and read the skills of one message. One that cannot be read costs a line, not the turn.

    `arguments` are those of a skill that the message says nothing about.
    """
    selection, filled = _select_with_arguments(catalog, settings, inputs, connector_slugs)
    items: list[ResponseItem] = []
    read: list[Skill] = []
    references: list[ResponseItem | None] = []
    notices = list(selection.notices)
    failed = [FailedSkill(_name_of(problem.path), problem.scope, problem.path) for problem in selection.not_loaded]
    for skill in selection.skills:
        if not settings.may_read(skill.canonical_path):
            notices.append(f"skill `{sanitize_line(skill.name)}` is left out: `sandbox.deny_read` denies reading it")
            failed.append(FailedSkill(skill.name, skill.scope, skill.path))
            continue
        injected = skill_item(skill, filled.get(skill.canonical_path, arguments))
        notices += [injected.warning] if injected.warning else []
        if injected.item is not None:
            items.append(injected.item)
            read.append(skill)
            references.append(references_item(skill, find_references(skill, settings.may_read)))
        else:
            failed.append(FailedSkill(skill.name, skill.scope, skill.path))
    present = settings.env.keys() | settings.withheld_env.keys()
    needs = plan_dependencies(read, env=present, configured_mcp=settings.configured_mcp)
    granted, withheld = _grants(read, settings)
    return SkillsToInject(
        items=tuple(items),
        references=tuple(references),
        skills=tuple(read),
        failed=tuple(failed),
        arguments=tuple(filled.get(skill.canonical_path, arguments) for skill in read),
        missing=tuple(
            MissingVariable(need.name, need.skills[0], need.description, missing_env_warning(need))
            for need in needs.missing_env
        ),
        granted=granted,
        notices=(*notices, *needs.notes, *withheld),
        servers=needs.missing_mcp,
    )


def _name_of(path: Path) -> str:
    """What a skill that was not loaded is called: by its directory."""
    return path.parent.name if path.name == "SKILL.md" else path.name


def _select_with_arguments(
    catalog: SkillCatalog, settings: SkillSettings, inputs: Sequence[UserInput], connector_slugs: Collection[str]
) -> tuple[Selection, dict[Path, str]]:
    """The skills that a message selects, and the arguments of those with places for them.

    What such a skill takes as its arguments selects nothing.
    """
    structured = [item for item in inputs if isinstance(item, SkillInput)]
    texts = tuple(item.text for item in inputs if isinstance(item, TextInput))

    def select() -> Selection:
        return select_skills(
            catalog,
            texts,
            user_home=settings.roots.user_home,
            structured=structured,
            connector_slugs=connector_slugs,
            base=link_base(settings.roots),
        )

    selection, found = select(), dict[Path, str]()
    picked = {item.name for item in structured}
    skills = list(selection.skills)
    for skill in sorted(skills, key=lambda skill: _first_mention(texts, skill.name)):
        if skill not in selection.skills or not _takes_arguments(skill, settings):
            continue
        arguments = find_arguments(texts, skill.name, picked=skill.name in picked and len(skills) == 1)
        # One that no text mentions leaves the arguments to who asks for it.
        if arguments.text or texts:
            found[skill.canonical_path] = arguments.text
        if "$" in arguments.text:
            texts = arguments.rest
            selection = select()
    return selection, found


def _first_mention(texts: Sequence[str], name: str) -> int:
    """Where the texts first name a skill; behind their end when they do not."""
    whole = "\n".join(texts)
    position = whole.find(f"${name}")
    return position if position >= 0 else len(whole)


def _takes_arguments(skill: Skill, settings: SkillSettings) -> bool:
    if not settings.may_read(skill.canonical_path):
        return False
    try:
        # A skill that runs as a subagent is told what follows its name.
        return skill.options.fork or fill_body(skill, skill_body(skill), "x").has_placeholder
    except FileRefused:
        return False


def read_called_skill(catalog: SkillCatalog, settings: SkillSettings, call: SkillCall) -> tuple[str, SkillsToInject]:
    """A skill that the model asks for by its name: the text for it, and what the skill needs.

    Raises `ToolError` for the name of no skill, for one that only people may ask for, and for a file that cannot be
    read.
    """
    skill = for_a_model(find_skill(catalog, call.name))
    if not settings.may_read(skill.canonical_path):
        raise ToolError(f"cannot read the skill `{skill.name}`: reading it is denied")
    try:
        body = fill_body(skill, skill_body(skill), call.arguments)
    except FileRefused as error:
        raise ToolError(f"cannot read the skill `{skill.name}`: {error}") from error
    picked = SkillInput(skill.name, skill.canonical_path)
    requested = read_named_skills(catalog, settings, [picked], arguments=call.arguments)
    open_arguments = "" if body.has_placeholder else call.arguments
    return loaded_text(skill, body.text, open_arguments), requested


def loaded_text(skill: Skill, body: str, arguments: str = "") -> str:
    """A skill as the output of a call, with the arguments for which its text has no place."""
    use = f"Follow these instructions now, for: {arguments}" if arguments else "Follow these instructions now."
    return f"{render_loaded(skill.name, str(skill.canonical_path), body)}\n{use}"


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
