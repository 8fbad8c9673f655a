"""Skills in the protocol's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_py.core.skill_admin import Skill


def skill_payload(skill: Skill, *, enabled: bool) -> dict[str, Any]:
    """A skill; what it says nothing of is left out."""
    return {
        "name": skill.name,
        "description": skill.description,
        **_set_fields({"shortDescription": skill.short_description}),
        **({"interface": _interface(skill)} if skill.interface is not None else {}),
        **({"dependencies": {"tools": _needs(skill)}} if skill.dependencies else {}),
        "path": str(skill.path),
        "scope": skill.scope,
        "enabled": enabled,
        "pluginId": skill.plugin_id,
    }


def _interface(skill: Skill) -> dict[str, Any]:
    interface = skill.interface
    assert interface is not None
    fields = {
        "displayName": interface.display_name,
        "shortDescription": interface.short_description,
        "iconSmall": interface.icon_small,
        "iconLarge": interface.icon_large,
        "brandColor": interface.brand_color,
        "defaultPrompt": interface.default_prompt,
    }
    return {**_set_fields(fields), "iconSmallUrl": None, "iconLargeUrl": None}


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
