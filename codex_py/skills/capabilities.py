"""What a skill can do beyond its words: scripts, MCP servers, variables, tools; and what has been added.

Found by reading, for people who decide; nothing is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.skills.model import ToolDependency
from codex_py.skills.parse import read_record
from codex_py.skills.record import FoundFile
from codex_py.skills.tree import TreeFile, list_tree, read_file

_SCRIPT_SUFFIXES: Final = (
    *(".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua"),
    *(".ps1", ".bat", ".cmd", ".exe", ".so", ".dll", ".jar", ".wasm", ".pyc"),
)
# As `0x7fELF`, Mach-O and Windows programs begin, and scripts with an interpreter.
_PROGRAM_STARTS: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ", b"#!")
_NOUNS: Final = (
    ("script", "scripts"),
    ("server", "servers"),
    ("variable", "env_vars"),
    ("allowed tool", "allowed_tools"),
)


class Capabilities(Value):
    """The capabilities of a skill, each sorted."""

    scripts: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    """Names of MCP servers with URL or command."""
    env_vars: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As it is written to the records."""
        return {name: list(getattr(self, name)) for name in self.__match_args__}

    def added_to(self, earlier: Capabilities) -> list[str]:
        """One line for each capability that the earlier ones do not have; empty when none has been added."""
        return [
            f"{noun} `{value}`"
            for noun, field in _NOUNS
            for value in getattr(self, field)
            if value not in getattr(earlier, field)
        ]


def capabilities_from(value: object) -> Capabilities:
    """Read the JSON of a record; what is not text is left out, so that it counts as added."""
    written = as_object(value)
    return Capabilities(
        **{
            name: tuple(sorted(text for text in as_list(written.get(name)) if isinstance(text, str)))
            for name in Capabilities.__match_args__
        }
    )


def read_capabilities(directory: Path, files: Sequence[TreeFile] | None = None) -> Capabilities:
    """The capabilities of a skill. Raises `TreeRefused` and `OSError`."""
    files = list_tree(directory) if files is None else files
    path = str(directory / "SKILL.md")
    record = read_record(FoundFile(path, path, None, True), None)
    needs = [(need.type.strip().lower(), need) for need in record.dependencies]
    return Capabilities(
        tuple(sorted(file.path for file in files if _is_script(file, read_file(directory, file)))),
        tuple(sorted({_server(need) for kind, need in needs if kind == "mcp"})),
        tuple(sorted({need.value for kind, need in needs if kind == "env_var"})),
        tuple(sorted(set(record.allowed_tools))),
    )


def _is_script(file: TreeFile, content: bytes) -> bool:
    """Whether a file is there to be run: by its mode, its first bytes, its name, or because it is in `scripts`."""
    return (
        file.mode == "100755"
        or content.startswith(_PROGRAM_STARTS)
        or file.path.lower().endswith(_SCRIPT_SUFFIXES)
        or file.path.startswith("scripts/")
    )


def _server(need: ToolDependency) -> str:
    target = (need.url or need.command or "").strip()
    return f"{need.value.strip()}: {target}" if target else need.value.strip()
