"""Pages of the reference that come from tables of the program: settings, tools and hook events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from codex_py.config.keys import toml_key, toml_value
from codex_py.config.schema import Config
from codex_py.config.value_types import (
    REQUIRED,
    AnyTable,
    ConfigRecord,
    ListOf,
    MapOf,
    RecordSection,
    Setting,
    Shape,
    ValueType,
    WordChoice,
    settings_of,
)
from codex_py.hooks.schema import HOOK_EVENTS
from codex_py.skills.front_matter import FRONT_MATTER, WHOLE_LIMIT

PACKAGE = Path(__file__).resolve().parents[1] / "codex_py"
Row = tuple[str, str, str]


def settings_page() -> str:
    """Every key of `config.toml`, a table for each of its sections."""
    parts = [
        "# Settings",
        "",
        "Every key of `config.toml`. [Configuration](../guides/configuration.md) says in which files they stand and",
        "which one wins; `codex-py config` shows the values in force. A default of – means that nothing is set.",
        "",
    ]
    for header, doc, rows in _sections("", "", Config):
        parts += [f"## `[{header}]`", ""] if header else ["## Top level", ""]
        parts += [_sentence(doc), ""] if doc else []
        parts += ["| key | default | what it does |", "|---|---|---|", *(_row(*row) for row in rows), ""]
    return "\n".join(parts)


def tools_page() -> str:
    """The function tools a model can be offered, with their arguments."""
    parts = [
        "# Tools",
        "",
        "The tools that the model can call. Which ones a session offers depends on its settings,",
        "its model and its front end; tools of [MCP servers](../guides/mcp.md) are added. Each call goes through the",
        "[sandbox](../concepts/sandbox.md) and [approvals](../guides/approvals.md).",
        "",
    ]
    for spec in sorted(_tool_specs(), key=lambda spec: spec["name"]):
        parameters = spec["parameters"]
        required = parameters.get("required", [])
        parts += [f"## `{spec['name']}`", "", "```text", spec["description"], "```", ""]
        if parameters.get("properties"):
            parts += ["| argument | type | |", "|---|---|---|"]
        for name, schema in parameters.get("properties", {}).items():
            mark = "required" if name in required else "optional"
            parts.append(_row(f"`{name}`", f"{_type_name(schema)}, {mark}", schema.get("description", "")))
        parts.append("")
    return "\n".join(parts)


def hooks_page() -> str:
    """The events of hooks."""
    parts = [
        "# Hook events",
        "",
        "The points of a session at which [hooks](../guides/hooks.md) run. A matcher is compared with the field in the",
        "second column; where there is none, every hook of the event runs.",
        "",
        "| event | matcher is about | can block | text on stdout becomes context | takes `fail_closed` |",
        "|---|---|---|---|---|",
    ]
    for name, event in HOOK_EVENTS.items():
        flags = (event.blocks, event.takes_text, event.closes)
        cells = (f"`{event.subject}`" if event.subject else "–", *("yes" if flag else "no" for flag in flags))
        parts.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([*parts, ""])


def front_matter_page() -> str:
    """Every field of the front matter of a `SKILL.md`."""
    parts = [
        "# Front matter of skills",
        "",
        "Every field that the front matter of a `SKILL.md` may have.",
        "[Skills](../guides/skills.md#every-field-of-the-front-matter) says how other agents treat the same fields.",
        "Only `name` and `description` are required. Another field that cannot be read is left out with a remark; a",
        f"restriction that cannot be read is in force. The limits of the front matter are {WHOLE_LIMIT}.",
        "Fields of Codex CLI also stand in `agents/openai.yaml` beside the `SKILL.md`, which wins. Unknown fields are",
        "ignored; `codex-py skills lint` reports them.",
        "",
        "| field | type | default | limit | comes from | what it does |",
        "|---|---|---|---|---|---|",
    ]
    for field in FRONT_MATTER:
        cells = (f"`{field.path}`", field.type, field.default, field.limit or "–", field.origin, field.doc)
        parts.append(_row(*cells))
    return "\n".join([*parts, ""])


def _sections(header: str, doc: str, record: type[ConfigRecord]) -> Iterator[tuple[str, str, list[Row]]]:
    """The table of a record, then those inside it."""
    inner: list[tuple[str, Setting]] = []
    rows: list[Row] = []
    for name, setting in settings_of(record).items():
        if _is_table(setting.value_type):
            inner.append((f"{header}.{name}" if header else name, setting))
        else:
            rows.append(_setting_row(name, setting))
    yield header, doc, rows
    for name, setting in inner:
        yield from _tables(name, setting)


def _tables(header: str, setting: Setting) -> Iterator[tuple[str, str, list[Row]]]:
    match setting.value_type:
        case RecordSection(record=record):
            yield from _sections(header, setting.doc, record)
        case MapOf(value_type=RecordSection(record=record)):
            yield from _sections(f"{header}.{toml_key(setting.sample)}", setting.doc, record)
        case ListOf(value_type=RecordSection(record=record)):
            yield from _sections(f"[{header}]", setting.doc, record)
        case MapOf():
            for entry, table in setting.sample.items():
                rows = [(f"`{key}`", f"`{toml_value(value)}`", "") for key, value in table.items()]
                yield f"{header}.{toml_key(entry)}", setting.doc, rows
        case AnyTable(keys=keys, entries=entries):
            rows = [(f"`{key.name}`", "–", _sentence(key.purpose)) for key in keys]
            yield f"[{header}.{entries}]" if entries else header, setting.doc, rows
        case _:
            raise TypeError(f"`{header}` is not a table")


def _is_table(value_type: ValueType) -> bool:
    if isinstance(value_type, ListOf):
        return isinstance(value_type.value_type, RecordSection)
    if isinstance(value_type, MapOf):
        return isinstance(value_type.value_type, RecordSection | Shape)
    return isinstance(value_type, RecordSection | AnyTable)


def _setting_row(name: str, setting: Setting) -> Row:
    value_type = setting.value_type
    words = (
        f" One of {', '.join(f'`{word}`' for word in value_type.words)}." if isinstance(value_type, WordChoice) else ""
    )
    is_set = setting.default is not None and setting.default is not REQUIRED
    default = f"`{toml_value(setting.default)}`" if is_set else "–"
    return f"`{toml_key(name)}`", default, _sentence(setting.doc) + words


def _tool_specs() -> Iterator[dict[str, Any]]:
    for path in PACKAGE.rglob("*.json"):
        spec: Any = json.loads(path.read_text())
        if isinstance(spec, dict) and "parameters" in spec:
            yield cast("dict[str, Any]", spec)


def _type_name(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {_type_name(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _sentence(text: str) -> str:
    if not text:
        return ""
    text = text if text.startswith("`") else text[0].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."
