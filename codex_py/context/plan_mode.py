"""The context items about plan mode."""

from __future__ import annotations

from pathlib import Path
from typing import Final

# The tag is the one Codex CLI has for its modes.
_OPEN: Final = "<collaboration_mode>"
_CLOSE: Final = "</collaboration_mode>"
_LEFT_PLAN_MODE: Final = (
    "Plan mode is over: what was said about it no longer holds. Files may be changed again, as the permissions allow."
)


def plan_mode_on() -> str:
    """The block that tells the model to plan and to write nothing."""
    text = Path(__file__).with_name("prompts").joinpath("plan.md").read_text("utf-8").strip()
    return f"{_OPEN}\n{text}\n{_CLOSE}"


def plan_mode_off() -> str:
    """The block that ends it."""
    return f"{_OPEN}\n{_LEFT_PLAN_MODE}\n{_CLOSE}"
