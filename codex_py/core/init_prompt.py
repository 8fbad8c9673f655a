"""The prompt that has an `AGENTS.md` written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from codex_py.context.ready_prompts import init_instructions

_GUIDES: Final = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".cursorrules",
    ".cursor/rules",
    ".github/copilot-instructions.md",
    "CONTRIBUTING.md",
)


def init_prompt(cwd: Path) -> str:
    """The prompt of `/init`; it names the guides that are in `cwd` already."""
    found = [f"`{name}`" for name in _GUIDES if (cwd / name).exists()]
    there = f"\n\nThere already: {', '.join(found)}." if found else ""
    return f"{init_instructions()}{there}"
