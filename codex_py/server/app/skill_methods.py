"""Requests about skills, and skills as the protocol writes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.config.entries import SkillSelector, set_skill_rule
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.messages import Params, RpcError, here
from codex_py.services.skill_admin import Skill, SkillAdmin, look_at_skills


def skill_payload(skill: Skill, *, enabled: bool) -> dict[str, Any]:
    """A skill; what it says nothing of is left out."""
    return {
        "name": skill.name,
        "description": skill.description,
        **_set_fields({"shortDescription": skill.short_description}),
        **_interface(skill),
        **({"dependencies": {"tools": _needs(skill)}} if skill.dependencies else {}),
        "path": str(skill.path),
        "scope": skill.scope,
        "enabled": enabled,
        "pluginId": skill.plugin_id,
    }


def _interface(skill: Skill) -> dict[str, Any]:
    if (interface := skill.interface) is None:
        return {}
    fields = {
        "displayName": interface.display_name,
        "shortDescription": interface.short_description,
        "iconSmall": interface.icon_small,
        "iconLarge": interface.icon_large,
        "brandColor": interface.brand_color,
        "defaultPrompt": interface.default_prompt,
    }
    return {"interface": {**_set_fields(fields), "iconSmallUrl": None, "iconLargeUrl": None}}


def _needs(skill: Skill) -> list[dict[str, Any]]:
    return [
        {
            "type": need.type,
            "value": need.value,
            **_set_fields(
                {
                    "description": need.description,
                    "transport": need.transport,
                    "command": need.command,
                    "url": need.url,
                }
            ),
        }
        for need in skill.dependencies
    ]


def _set_fields(fields: dict[str, str | Path | None]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items() if value is not None}


_MAX_DIRECTORIES: Final = 100


async def list_skills(context: ClientContext, params: Params) -> MethodResult:
    """`skills/list`: for each directory its skills and the files that could not be loaded."""
    directories = params.texts("cwds") or (str(here()),)
    if len(directories) > _MAX_DIRECTORIES:
        raise RpcError(f"invalid request: `cwds` has more than {_MAX_DIRECTORIES} directories")
    refresh = params.flag("forceReload")
    if refresh:
        await context.reload_skills()
    entries = [await asyncio.to_thread(_entry, context, directory, refresh) for directory in directories]
    return MethodResult({"data": entries})


async def write_config(context: ClientContext, params: Params) -> MethodResult:
    """`skills/config/write`: switches a skill on or off, for every session."""
    name, path = params.text_or_none("name"), params.text_or_none("path")
    if (name is None) == (path is None):
        raise RpcError("invalid request: one of `name` and `path` is needed")
    if path is not None and not path.startswith("/"):
        raise RpcError("invalid request: `path` is not absolute")
    if not params.has("enabled"):
        raise params.missing("enabled")
    enabled = params.flag("enabled")
    selector = SkillSelector(name and name.strip(), None if path is None else Path(path))
    user_home = context.host.env.get("HOME", "")
    await asyncio.to_thread(set_skill_rule, context.host.home, selector, enabled=enabled, user_home=user_home)
    await context.use_skill_rules()
    admin = await asyncio.to_thread(_load_skills, context, here())
    return MethodResult({"effectiveEnabled": _is_on(admin, selector, enabled)}, _changed(context))


async def set_extra_roots(context: ClientContext, params: Params) -> MethodResult:
    """`skills/extraRoots/set`: more directories of skills, for every session of this client."""
    roots = params.texts("extraRoots")
    if roots is None:
        raise params.missing("extraRoots")
    if not all(root.startswith("/") for root in roots) or len(roots) > _MAX_DIRECTORIES:
        raise RpcError("invalid request: `extraRoots` is not a list of absolute paths")
    await context.use_extra_roots(tuple(Path(root) for root in roots))
    return MethodResult({}, _changed(context))


def _changed(context: ClientContext) -> Callable[[], None]:
    return partial(context.connection.notify, "skills/changed", {})


def _load_skills(context: ClientContext, directory: Path, refresh: bool = False) -> SkillAdmin:
    return look_at_skills(context.host.request(directory, {}), refresh=refresh, extra_roots=context.extra_roots)


def _entry(context: ClientContext, directory: str, refresh: bool) -> dict[str, Any]:
    path = Path(directory)
    if not path.is_absolute() or not path.is_dir():
        return {"cwd": directory, "skills": [], "errors": [{"path": directory, "message": "not a directory"}]}
    catalog = _load_skills(context, path, refresh).catalog
    problems = [
        {"path": str(problem.path), "message": problem.message}
        for problem in catalog.problems
        if problem.scope != "system"
    ]
    skills = [skill_payload(skill, enabled=catalog.is_enabled(skill)) for skill in catalog.skills]
    return {"cwd": directory, "skills": skills, "errors": problems}


def _is_on(admin: SkillAdmin, selector: SkillSelector, enabled: bool) -> bool:
    """Whether the skills that are meant count now: another layer may overrule what was written."""
    catalog = admin.catalog
    meant = [
        skill
        for skill in catalog.skills
        if skill.name == selector.name or selector.path in (skill.path, skill.canonical_path)
    ]
    return any(map(catalog.is_enabled, meant)) if meant else enabled
