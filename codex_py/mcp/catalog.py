"""What a server offers, as it is kept on disk and shown to the model: cut to size, in a fixed order.

A file that is missing, damaged or of another version counts as none.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.mcp.schemas import ANY_OBJECT, why_unusable
from codex_py.mcp.servers import McpServer
from codex_py.protocol.encoding import as_list, as_object, encode_json
from codex_py.protocol.status import PromptArgument
from codex_py.text.display import first_names
from codex_py.text.files import load_checked, save_checked
from codex_py.text.sanitize import sanitize, sanitize_line

MAX_TOOLS: Final = 128
MAX_PROMPTS: Final = 128
MAX_DESCRIPTION_BYTES: Final = 4 * 1024
MAX_SCHEMA_BYTES: Final = 64 * 1024
_MAX_ABOUT_BYTES: Final = 1024
_MAX_NAME: Final = 256
_MAX_NAMES: Final = 10
_MAX_SHOWN_NAME: Final = 100
# What can stand in a link.
_CONNECTOR: Final = re.compile(r"[^\s()\x00-\x1f\x7f]{1,256}")


class McpTool(NamedTuple):
    """A tool. The hints are the server's own words about it, None where it says nothing.

    A tool of a connector has the connector's id, and its name or "".
    """

    name: str
    description: str
    schema: dict[str, Any]
    read_only: bool | None = None
    destructive: bool | None = None
    open_world: bool | None = None
    connector_id: str | None = None
    connector_name: str = ""

    def pin(self, server: McpServer) -> str:
        """Stands for exactly this tool of exactly this server: all it says of itself, and how the server is reached."""
        return hashlib.sha256(encode_json([server.fingerprint, self._asdict()])).hexdigest()

    def reads_only(self, server: McpServer) -> bool:
        """Whether the tool is marked read-only by a server whose annotations are trusted."""
        return server.trust_annotations and self.read_only is True


class McpPrompt(NamedTuple):
    name: str
    description: str
    arguments: tuple[PromptArgument, ...] = ()


class Catalog(NamedTuple):
    """All a server offers; tools and prompts are sorted by name. `about` is what it says of itself.

    `remarks` are lines for the user about what was cut.
    """

    tools: tuple[McpTool, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    about: str = ""
    remarks: tuple[str, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Plain JSON for the disk."""
        prompts = [
            {
                **prompt._asdict(),
                "arguments": [[part.name, part.description, part.required] for part in prompt.arguments],
            }
            for prompt in self.prompts
        ]
        return {"tools": [prompt._asdict() for prompt in self.tools], "prompts": prompts, "about": self.about}


def catalog_from_record(record: Mapping[str, Any]) -> Catalog:
    """Read what `to_record` wrote. Raises `TypeError`, `ValueError` or `LookupError` for anything else."""
    prompts = [
        McpPrompt(prompt["name"], prompt["description"], tuple(PromptArgument(*part) for part in prompt["arguments"]))
        for prompt in record["prompts"]
    ]
    return Catalog(tuple(McpTool(**prompt) for prompt in record["tools"]), tuple(prompts), str(record["about"]))


def read_catalog(tools: Iterable[Any], prompts: Iterable[Any], about: str) -> Catalog:
    """A catalogue from the lists as a server has sent them; an entry that nobody can use is left out."""
    remarks: list[str] = []
    found = {tool.name: tool for entry in tools if (tool := _tool(as_object(entry), remarks)) is not None}
    if (more := len(remarks) - _MAX_NAMES) > 0:
        remarks[_MAX_NAMES:] = [f"{more} more of its tools are left out or cut"]
    names = sorted(found)
    if len(names) > MAX_TOOLS:
        remarks.append(f"{len(names) - MAX_TOOLS} of its {len(names)} tools are left out: at most {MAX_TOOLS} are used")
    read_prompts = [_prompt(as_object(entry)) for entry in prompts]
    if None in read_prompts:
        remarks.append(f"prompts without a usable name are left out: {read_prompts.count(None)}")
    found_prompts = {prompt.name: prompt for prompt in read_prompts if prompt is not None}
    return Catalog(
        tools=tuple(found[name] for name in names[:MAX_TOOLS]),
        prompts=tuple(found_prompts[name] for name in sorted(found_prompts)[:MAX_PROMPTS]),
        about=_cut(sanitize(about), _MAX_ABOUT_BYTES),
        remarks=tuple(remarks),
    )


def describe_changes(before: Iterable[McpTool], after: Iterable[McpTool], *, additions: bool) -> str:
    """How a list of tools differs from an earlier one, in a few words; "" when it does not.

    Without `additions` tools that are new do not count.
    """
    old, new = ({tool.name: tool for tool in tools} for tools in (before, after))
    changes = {
        "new": sorted(new.keys() - old.keys()) if additions else [],
        "changed": sorted(name for name in old.keys() & new.keys() if old[name] != new[name]),
        "gone": sorted(old.keys() - new.keys()),
    }
    return "; ".join(f"{change}: {_names(names)}" for change, names in changes.items() if names)


def _names(names: Sequence[str]) -> str:
    return first_names([f"`{sanitize_line(name)}`" for name in names], _MAX_NAMES)


def _tool(wire: Mapping[str, Any], remarks: list[str]) -> McpTool | None:
    name = wire.get("name")
    if not isinstance(name, str) or not name:
        remarks.append("its tool without a name is left out")
        return None
    shown = sanitize_line(name)[:_MAX_SHOWN_NAME]
    problem = why_unusable(wire.get("inputSchema")) if len(name) <= _MAX_NAME else f"its name is over {_MAX_NAME} long"
    if problem is not None:
        remarks.append(f"its tool `{shown}` is left out: {problem}")
        return None
    hints = as_object(wire.get("annotations"))
    schema: dict[str, Any] = {"type": "object", "properties": {}, **as_object(wire.get("inputSchema"))}
    if not _fits(schema):
        remarks.append(f"the parameters of its tool `{shown}` are not shown: over 64 KiB")
        schema = dict(ANY_OBJECT)
    described = wire.get("description")
    return McpTool(
        name,
        _cut(sanitize(described if isinstance(described, str) else ""), MAX_DESCRIPTION_BYTES),
        schema,
        _hint(hints, "readOnlyHint"),
        _hint(hints, "destructiveHint"),
        _hint(hints, "openWorldHint"),
        *_connector(as_object(wire.get("_meta"))),
    )


def _fits(schema: dict[str, Any]) -> bool:
    try:
        return len(encode_json(schema)) <= MAX_SCHEMA_BYTES
    except (RecursionError, ValueError):
        return False


def _connector(meta: Mapping[str, Any]) -> tuple[str | None, str]:
    """The id and the name of the connector in a tool's metadata."""
    connector_id, name = meta.get("connector_id"), meta.get("connector_name", meta.get("connector_display_name"))
    if not isinstance(connector_id, str) or not _CONNECTOR.fullmatch(connector_id):
        return None, ""
    return connector_id, _line(name)


def _prompt(wire: Mapping[str, Any]) -> McpPrompt | None:
    name = wire.get("name")
    if not isinstance(name, str) or not name or len(name) > _MAX_NAME:
        return None
    entries: Sequence[dict[str, Any]] = [as_object(entry) for entry in as_list(wire.get("arguments"))]
    arguments = tuple(
        PromptArgument(entry["name"], _line(entry.get("description")), entry.get("required") is True)
        for entry in entries
        if isinstance(entry.get("name"), str)
    )
    return McpPrompt(name, _line(wire.get("description")), arguments)


def _line(text: object) -> str:
    return _cut(sanitize_line(text), _MAX_ABOUT_BYTES) if isinstance(text, str) else ""


def _hint(hints: Mapping[str, Any], name: str) -> bool | None:
    value = hints.get(name)
    return value if isinstance(value, bool) else None


def _cut(text: str, most: int) -> str:
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[: most - 3].decode(errors="ignore") + "…"


_FORMAT: Final = b"codex-py mcp 2"
# 128 tools with 64 KiB of schema and 4 KiB of description each fit.
_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_FILES: Final = 256
_DAMAGE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


def load_catalog(home: Path, server: McpServer) -> Catalog | None:
    """Load the server's offer from its last connection; None if there was none."""
    body = load_checked(_path(home, server), _FORMAT, max_bytes=_MAX_BYTES)
    try:
        return None if body is None else catalog_from_record(as_object(json.loads(body)))
    except _DAMAGE:
        return None


def save_catalog(home: Path, server: McpServer, catalog: Catalog) -> None:
    """Keep what the server offers now, 0600; what cannot be written is not kept."""
    path = _path(home, server)
    with suppress(OSError):
        _remove_oldest(path)
    save_checked(path, _FORMAT, encode_json(catalog.to_record()), max_bytes=_MAX_BYTES)


def forget_catalog(home: Path, server: McpServer) -> None:
    """Remove what is kept of a server."""
    with suppress(OSError):
        _path(home, server).unlink()


def _path(home: Path, server: McpServer) -> Path:
    return home / "cache" / "mcp" / f"{server.fingerprint[:32]}.json"


def _remove_oldest(path: Path) -> None:
    others = [entry for entry in path.parent.iterdir() if entry != path]
    if len(others) >= _MAX_FILES:
        others.sort(key=lambda entry: entry.lstat().st_mtime_ns)
        for entry in others[: len(others) - _MAX_FILES + 1]:
            entry.unlink(missing_ok=True)
