"""The skills and the connectors that a message mentions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from codex_py.context.compaction import is_users_own
from codex_py.core.skill_settings import MissingVariable, SkillSettings, SkillsToInject
from codex_py.mcp.connectors import Connector
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.ops import SkillInput, TextInput, UserInput
from codex_py.skills.dependencies import missing_env_warning, plan_dependencies
from codex_py.skills.inject import skill_item
from codex_py.skills.mentions import Mentions, find_mentions, lengths_of, longest_known
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


_SCHEME: Final = "app://"
_MAX_NOTICES: Final = 4
_MAX_TEXT: Final = 300


class NamedConnectors(NamedTuple):
    """The ids of the connectors that are asked for, and lines about mentions that ask for none."""

    ids: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def named_connectors(
    texts: Sequence[str], connectors: Mapping[str, Connector], skills: SkillCatalog
) -> NamedConnectors:
    """Which connectors texts ask for: by link (`[$name](app://id)`), or by `$slug`.

    A slug must be that of exactly one connector and the name of no enabled skill, in any case of letters. A link may
    have the id of a connector that is not there yet.
    """
    by_slug: dict[str, list[Connector]] = {}
    for connector in connectors.values():
        by_slug.setdefault(connector.slug, []).append(connector)
    shared = {skill.name.lower() for skill in skills.enabled()} & by_slug.keys()
    ids: dict[str, None] = {}
    notices: dict[str, None] = {}
    for mentions in (find_mentions(text, by_slug) for text in texts):
        for link in mentions.links:
            if link.link_type == "app":
                connector_id = link.path.removeprefix(_SCHEME).strip("/")
                ids[connector_id] = None
                if connector_id not in connectors:
                    notices[f"no MCP server offers the connector `{_shown(connector_id)}` yet"] = None
        for slug in _slugs(mentions, by_slug):
            found = by_slug[slug]
            if len(found) == 1 and slug not in shared:
                ids[found[0].id] = None
            else:
                what = "a connector and a skill" if slug in shared else f"{len(found)} connectors"
                links = " or ".join(
                    f"`[${slug}]({_SCHEME}{_shown(candidate.id)})`" for candidate in found[:_MAX_NOTICES]
                )
                notices[f"`${slug}` is the name of {what} and asks for none: for a connector write {links}"] = None
    return NamedConnectors(tuple(ids), tuple(notices)[:_MAX_NOTICES])


def slugs_of(connectors: Mapping[str, Connector]) -> frozenset[str]:
    """The names that select no skill, because they are those of connectors."""
    return frozenset(connector.slug for connector in connectors.values())


def users_texts(items: Iterable[ResponseItem]) -> list[str]:
    """What the user has said in a history, without what the host has put there."""
    views = [item.view() for item in items if is_users_own(item)]
    return [view.text for view in views if isinstance(view, Message) and "$" in view.text]


def _slugs(mentions: Mentions, known: Collection[str]) -> list[str]:
    """The slugs among the names of a text, which may be written in any case."""
    lengths = lengths_of(known)
    found = [*mentions.plain, *(longest_known(run.lower(), known, lengths) for run in mentions.unknown)]
    return list(dict.fromkeys(filter(None, found)))


def _shown(text: str) -> str:
    return sanitize_line(text[:_MAX_TEXT]).replace("`", "'")
