"""Adds, changes and removes tables in the user's `config.toml`: MCP servers, plugins, rules for skills."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from codex_py.config.edit import Document, NewTable, edit_file, edit_text, is_super_table
from codex_py.config.files import read_text
from codex_py.config.value_types import expand_home
from codex_py.errors import UserError
from codex_py.protocol.encoding import as_list, as_object

_NEEDED_BY: Final = "needed by skills "


def put_mcp_server(file: Path, name: str, entry: Mapping[str, Any], *, skills: Sequence[str] = ()) -> None:
    """Add or replace the entry of a server; a comment names the files of the `skills` that need it.

    Raises `UserError` when the file cannot be read, edited or written.
    """

    def change(document: Document, new_table: NewTable) -> bool:
        if "mcp_servers" not in document:
            document["mcp_servers"] = new_table(document, has_header=False)
        servers: object = document["mcp_servers"]
        if not isinstance(servers, MutableMapping):
            return False
        tables = cast("Document", servers)
        if name not in tables:
            tables[name] = new_table(tables)
        own = cast("Document", tables[name])
        for key in [key for key in own if key not in entry]:
            del own[key]
        for key, value in entry.items():
            own[key] = value
        comment = getattr(own, "comment", None)
        if skills and callable(comment):
            comment(_NEEDED_BY + json.dumps(list(skills)))
        return True

    edit_file(file, ("mcp_servers", name), change)


def servers_for_skills(file: Path) -> dict[str, tuple[str, ...]]:
    """The servers that were written for skills, each with the files of these skills. Raises `UserError`."""
    found: dict[str, tuple[str, ...]] = {}
    for line in (read_text(file) or "").splitlines():
        if (header := _SERVER_HEADER.match(line)) and header["comment"]:
            with suppress(ValueError):
                files = as_list(json.loads(header["comment"]))
                name = as_object(tomllib.loads(f"{header['key']} = 1"))
                found[next(iter(name))] = tuple(path for path in files if isinstance(path, str))
    return found


def remove_servers(file: Path, names: Sequence[str]) -> None:
    """Remove the tables of servers that were written for skills; everything else stays as it is. Raises `UserError`."""

    def change_text(text: str) -> str:
        lines: list[str] = []
        block: list[str] = []
        is_inside = False
        for line in text.splitlines(keepends=True):
            if _HEADER.match(line):
                lines += _comments_at_end(block)
                block, is_inside = [], _is_header_of(line, names)
            (block if is_inside else lines).append(line)
        return "".join([*lines, *_comments_at_end(block)])

    def change(document: Document, new_table: NewTable) -> bool:
        servers = as_object(document.get("mcp_servers"))
        for name in names:
            servers.pop(name, None)
        if not servers:
            document.pop("mcp_servers", None)
        return True

    edit_text(file, ("mcp_servers", *names[:1]), change_text, change)


_HEADER: Final = re.compile(r"\s*\[")
_SERVER_HEADER: Final = re.compile(
    r"\s*\[\s*mcp_servers\s*\.\s*(?P<key>[A-Za-z0-9_-]+|\"[^\"\\\n]*\"|'[^'\n]*')\s*(?P<rest>\.[^\n]*?)?\]"
    rf"(?:\s*#\s*{_NEEDED_BY}(?P<comment>\[.*\])\s*)?"
)


def _is_header_of(line: str, names: Sequence[str]) -> bool:
    header = _SERVER_HEADER.match(line)
    return header is not None and header["key"].strip("\"'") in names


def _comments_at_end(block: Sequence[str]) -> list[str]:
    """The comments and blank lines at the end of a table, which belong to the one after it."""
    end = len(block)
    while end and (not block[end - 1].strip() or block[end - 1].lstrip().startswith("#")):
        end -= 1
    return list(block[end:]) if any(line.strip() for line in block[end:]) else []


def remove_table(file: Path, family: str, name: str) -> bool:
    """Remove the table `[family.name]`; False when the file has none. Raises `UserError` as `put_mcp_server`."""
    found = has_no_header = False

    def change(document: Document, new_table: NewTable) -> bool:
        nonlocal found, has_no_header
        tables: object = document.get(family)
        if isinstance(tables, MutableMapping) and name in cast("Document", tables):
            found, others = True, cast("Document", tables)
            del others[name]
            has_no_header = has_no_header or is_super_table(others)
            if not others and has_no_header:
                del document[family]
        return True

    edit_file(file, (family, name), change)
    return found


class SkillSelector(NamedTuple):
    """The skills that a rule is about: all with a name, or the one whose `SKILL.md` has an absolute path."""

    name: str | None = None
    path: Path | None = None


class _Position(NamedTuple):
    """The index of the last entry for a selector, -1 for none, and whether no later entry can override it."""

    at: int
    counts: bool


def set_skill_rule(home: Path, selector: SkillSelector, *, enabled: bool, user_home: str) -> Path:
    """Set the `[[skills.config]]` entry for a selector in CODEX_HOME's `config.toml`; no later entry overrides it.

    An existing entry is changed in place if possible. Gives back the file. Raises `UserError` when it cannot be read or
    written.
    """
    path = home / "config.toml"
    wanted = _entry(selector, enabled)

    def change(document: Document, new_table: NewTable) -> bool:
        skills: object = document.setdefault("skills", {})
        if not isinstance(skills, MutableMapping):
            return False
        rules = cast("Document", skills).setdefault("config", [wanted])
        if not isinstance(rules, MutableSequence):
            return False
        entries = cast("MutableSequence[Any]", rules)
        found = _position(list(entries), selector, home, user_home)
        if found.counts:
            entries[found.at]["enabled"] = enabled
            return True
        if found.at >= 0:
            del entries[found.at]
        entries.append(wanted)
        return True

    edit_file(path, ("skills", "config"), change)
    return path


def _entry(selector: SkillSelector, enabled: bool) -> dict[str, Any]:
    if (selector.name is None) == (selector.path is None):
        raise UserError("a rule needs a name or a path, and not both")
    chosen = {"name": selector.name} if selector.name is not None else {"path": str(selector.path)}
    return {**chosen, "enabled": enabled}


def _position(entries: list[Any], selector: SkillSelector, home: Path, user_home: str) -> _Position:
    at = -1
    counts = False
    for number, entry in enumerate(map(as_object, entries)):
        if _is_for(entry, selector, home, user_home):
            at, counts = number, True
        elif ("name" in entry) != (selector.name is not None):
            # A later rule of the other kind may mean the same skill.
            counts = False
    return _Position(at, counts)


def _is_for(entry: dict[str, Any], selector: SkillSelector, home: Path, user_home: str) -> bool:
    """Whether an entry has the same selector, however its path is written."""
    name, path = entry.get("name"), entry.get("path")
    if selector.name is not None:
        return path is None and isinstance(name, str) and name.strip() == selector.name
    if name is not None or not isinstance(path, str) or "\0" in path:
        return False
    return os.path.realpath(home / expand_home(path, user_home)) == os.path.realpath(str(selector.path))
