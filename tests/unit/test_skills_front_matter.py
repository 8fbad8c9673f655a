"""The table of front matter fields: it has every key that is read, and the linter and the reference go by it."""

from __future__ import annotations

from typing import Any

from codex_py.skills.front_matter import FRONT_MATTER, KEYS
from codex_py.skills.metadata import read_metadata
from codex_py.skills.options import read_options
from codex_py.skills.parse import parse_skill

# What each field is read as, where it stands.
WHOLE = """---
name: whole
description: All fields at once.
metadata: {short-description: Short, author: me}
allowed-tools: Read
license: MIT
compatibility: any
version: "1"
disable-model-invocation: false
user-invocable: false
argument-hint: "[file]"
arguments: [file]
model: m
effort: high
context: fork
agent: explorer
paths: "*.py"
hooks: {Stop: []}
dynamic: true
interface: {display_name: W, short_description: S, icon_small: assets/a.png, icon_large: assets/b.png,
  brand_color: "#112233", default_prompt: P}
policy: {allow_implicit_invocation: false, products: [codex]}
dependencies:
  tools: [{type: mcp, value: s, description: d, transport: stdio, command: c, url: u}]
---
"""


class Watched(dict[str, Any]):
    """A mapping that remembers the keys that were asked for, in itself and in what it holds."""

    def __init__(self, path: str, keys: set[str]) -> None:
        super().__init__()
        self.path, self.asked = path, keys

    def get(self, key: str, default: Any = None) -> Any:
        path = f"{self.path}{key}"
        self.asked.add(path)
        if path == "dependencies.tools":
            return [Watched(f"{path}[].", self.asked)]
        return Watched(f"{path}.", self.asked) if path in ("interface", "policy", "dependencies") else default


def test_every_key_that_is_read_is_in_the_table() -> None:
    keys: set[str] = set()
    read_options(Watched("", keys), [])
    read_metadata(Watched("", keys))
    known = {field.path for field in FRONT_MATTER}
    assert len(keys) > 20
    assert {path for path in keys if path not in known and path not in KEYS} == set()


def test_every_field_of_the_table_can_be_read() -> None:
    skill = parse_skill(WHOLE)
    assert skill.remark == ""
    last = {field.path.rpartition(".")[2] for field in FRONT_MATTER}
    assert {name for name in last if f"{name}:" not in WHOLE} == set()
    assert (skill.options.fork, skill.options.dynamic, skill.user_invocable) == (True, True, False)
    assert skill.metadata.allow_implicit is False
    assert skill.metadata.interface.brand_color == "#112233"
