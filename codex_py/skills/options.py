"""What a skill's front matter says about how the skill is used: arguments, model, effort, subagent, files, hooks.

Every field is read by itself: one that cannot be read is left out and costs a line.
"""

from __future__ import annotations

import json
import re
from typing import Final

from codex_py.skills.model import SkillOptions
from codex_py.text.frontmatter import Plain, YamlValue
from codex_py.text.sanitize import sanitize_line

_YES: Final = frozenset({"true", "yes", "on"})
_NO: Final = frozenset({"false", "no", "off"})
MAX_LINE: Final = 200
MAX_ITEMS: Final = 50
MAX_HOOKS_CHARS: Final = 16 * 1024
_ARGUMENT: Final = r"[^\W\d][\w-]{0,63}"


def read_options(mapping: dict[str, YamlValue], remarks: list[str]) -> SkillOptions:
    """Read the fields; a line is added to `remarks` for each that is ignored."""
    context = _line(mapping, "context", remarks)
    if context not in ("", "fork", "inherit"):
        remarks.append(f"ignored `context`: `{context}` is not `fork`")
    return SkillOptions(
        argument_hint=_hint(mapping, remarks),
        arguments=_arguments(mapping.get("arguments"), remarks),
        model=_line(mapping, "model", remarks),
        effort=_line(mapping, "effort", remarks).lower(),
        fork=context == "fork",
        agent=_line(mapping, "agent", remarks),
        paths=_paths(mapping.get("paths"), remarks),
        hooks=_hooks(mapping.get("hooks"), remarks),
        dynamic=read_flag(mapping, "dynamic", remarks) is True,
    )


def read_flag(mapping: dict[str, YamlValue], key: str, remarks: list[str]) -> bool | None:
    """Read a yes-or-no key in the spellings of similar programs, quoted or not; None if it is missing or invalid."""
    value = mapping.get(key)
    if value is None:
        return None
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _YES or word in _NO:
        return word in _YES
    remarks.append(f"ignored `{key}`: neither `true` nor `false`")
    return None


def _line(mapping: dict[str, YamlValue], key: str, remarks: list[str]) -> str:
    value = mapping.get(key)
    if isinstance(value, list | dict):
        remarks.append(f"ignored `{key}`: not a text")
        return ""
    text = sanitize_line(" ".join((value or "").split()))
    if len(text) > MAX_LINE:
        remarks.append(f"ignored `{key}`: longer than {MAX_LINE} characters")
        return ""
    return text


def _hint(mapping: dict[str, YamlValue], remarks: list[str]) -> str:
    """`argument-hint: [file]` is a list in YAML, and meant as it is written."""
    value = mapping.get("argument-hint")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return _line({"argument-hint": f"[{', '.join(map(str, value))}]"}, "argument-hint", remarks)
    return _line(mapping, "argument-hint", remarks)


def _arguments(value: YamlValue, remarks: list[str]) -> tuple[str, ...]:
    """The names by their positions, "" for a position without a usable name."""
    names: list[str] = []
    for item in _items(value, "arguments", remarks, separators=r"[\s,]+"):
        name = item.get("name") if isinstance(item, dict) else item
        is_usable = isinstance(name, str) and re.fullmatch(_ARGUMENT, name) is not None and name not in names
        if not is_usable:
            remarks.append("ignored an item of `arguments`: not a name, or there twice")
        names.append(str(name) if is_usable else "")
    return tuple(names)


def _paths(value: YamlValue, remarks: list[str]) -> tuple[str, ...]:
    patterns = _items(value, "paths", remarks, separators=r"\s*,\s*")
    usable = [item for item in patterns if isinstance(item, str) and 0 < len(item) <= MAX_LINE]
    if len(usable) < len(patterns):
        remarks.append("ignored items of `paths` that are not patterns")
    return tuple(map(str, usable))


def _items(value: YamlValue, key: str, remarks: list[str], *, separators: str) -> list[YamlValue]:
    """A list, or one text with separators between the items."""
    if isinstance(value, dict):
        remarks.append(f"ignored `{key}`: neither a text nor a list")
        return []
    items: list[YamlValue] = value if isinstance(value, list) else [*filter(None, re.split(separators, value or ""))]
    if len(items) > MAX_ITEMS:
        remarks.append(f"ignored `{key}`: more than {MAX_ITEMS} items")
        return []
    return items


def _hooks(value: YamlValue, remarks: list[str]) -> str:
    """The hooks as JSON, in the format of `hooks.json`; whether they are valid is found out when they are used."""
    if value is None:
        return ""
    if not isinstance(value, dict):
        remarks.append("ignored `hooks`: not a mapping")
        return ""
    text = json.dumps(_typed(value), ensure_ascii=False)
    if len(text) > MAX_HOOKS_CHARS:
        remarks.append(f"ignored `hooks`: longer than {MAX_HOOKS_CHARS} characters")
        return ""
    return text


def _typed(value: YamlValue) -> object:
    """With numbers and booleans where they are written without quotes."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    if isinstance(value, Plain):
        if value.lower() in ("true", "false"):
            return value.lower() == "true"
        if re.fullmatch(r"-?[0-9]{1,9}", value):
            return int(value)
    return None if value is None else str(value)
