"""Requests about skills: which there are, switching them, and more folders of them."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.config.skill_rules import SkillSelector, set_skill_rule
from codex_py.core.skill_shelf import SkillShelf, look_at_skills
from codex_py.server.app.desk import Answered, Desk
from codex_py.server.app.skills_told import told_skill
from codex_py.server.messages import RpcError
from codex_py.server.params import Params, here

_MOST_FOLDERS: Final = 100


async def list_skills(desk: Desk, params: Params) -> Answered:
    """`skills/list`: for each folder its skills and the files that could not be loaded."""
    given = params.texts("cwds") or (str(here()),)
    if len(given) > _MOST_FOLDERS:
        raise RpcError(f"invalid request: `cwds` has more than {_MOST_FOLDERS} folders")
    refresh = params.flag("forceReload")
    if refresh:
        await desk.reload_skills()
    told = [await asyncio.to_thread(_entry, desk, folder, refresh) for folder in given]
    return Answered({"data": told})


async def write_config(desk: Desk, params: Params) -> Answered:
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
    user_home = desk.host.env.get("HOME", "")
    await asyncio.to_thread(set_skill_rule, desk.host.home, selector, enabled=enabled, user_home=user_home)
    await desk.use_skill_rules()
    shelf = await asyncio.to_thread(_shelf, desk, here())
    return Answered({"effectiveEnabled": _is_on(shelf, selector, enabled)}, partial(_changed, desk))


async def set_extra_roots(desk: Desk, params: Params) -> Answered:
    """`skills/extraRoots/set`: more folders of skills, for every session of this client."""
    roots = params.texts("extraRoots")
    if roots is None:
        raise params.missing("extraRoots")
    if not all(root.startswith("/") for root in roots) or len(roots) > _MOST_FOLDERS:
        raise RpcError("invalid request: `extraRoots` is not a list of absolute paths")
    await desk.use_extra_roots(tuple(Path(root) for root in roots))
    return Answered({}, partial(_changed, desk))


async def _changed(desk: Desk) -> None:
    desk.connection.notify("skills/changed", {})


def _shelf(desk: Desk, folder: Path, refresh: bool = False) -> SkillShelf:
    return look_at_skills(desk.host.request(folder, {}), refresh=refresh, extra_roots=desk.extra_roots)


def _entry(desk: Desk, folder: str, refresh: bool) -> dict[str, Any]:
    path = Path(folder)
    if not path.is_absolute() or not path.is_dir():
        return {"cwd": folder, "skills": [], "errors": [{"path": folder, "message": "not a folder"}]}
    catalog = _shelf(desk, path, refresh).catalog
    problems = [{"path": str(one.path), "message": one.message} for one in catalog.problems if one.scope != "system"]
    skills = [told_skill(one, enabled=catalog.is_enabled(one)) for one in catalog.skills]
    return {"cwd": folder, "skills": skills, "errors": problems}


def _is_on(shelf: SkillShelf, selector: SkillSelector, enabled: bool) -> bool:
    """Whether the skills that are meant count now: another layer may overrule what was written."""
    catalog = shelf.catalog
    meant = [
        one for one in catalog.skills if one.name == selector.name or selector.path in (one.path, one.canonical_path)
    ]
    return any(map(catalog.is_enabled, meant)) if meant else enabled
