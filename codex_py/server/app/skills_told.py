"""Skills in the protocol's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_py.core.skill_shelf import Skill


def told_skill(skill: Skill, *, enabled: bool) -> dict[str, Any]:
    """A skill; what it says nothing of is left out."""
    return {
        "name": skill.name,
        "description": skill.description,
        **_given({"shortDescription": skill.short_description}),
        **({"interface": _interface(skill)} if skill.interface is not None else {}),
        **({"dependencies": {"tools": _needs(skill)}} if skill.dependencies else {}),
        "path": str(skill.path),
        "scope": skill.scope,
        "enabled": enabled,
        "pluginId": skill.plugin_id,
    }


def _interface(skill: Skill) -> dict[str, Any]:
    shown = skill.interface
    assert shown is not None
    given = {
        "displayName": shown.display_name,
        "shortDescription": shown.short_description,
        "iconSmall": shown.icon_small,
        "iconLarge": shown.icon_large,
        "brandColor": shown.brand_color,
        "defaultPrompt": shown.default_prompt,
    }
    return {**_given(given), "iconSmallUrl": None, "iconLargeUrl": None}


def _needs(skill: Skill) -> list[dict[str, Any]]:
    return [
        {
            "type": need.type,
            "value": need.value,
            **_given(
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


def _given(fields: dict[str, str | Path | None]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items() if value is not None}
