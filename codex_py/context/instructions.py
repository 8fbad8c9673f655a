"""The instructions that are kept as text: base instructions, tone, plan mode, and the prompts of review and init."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_TONES: Final = {
    "friendly": """\
Write the way a good colleague talks: warm, curious, encouraging. Say what went well as readily as what did not, \
explain a term before it gets in the way, and take the person's doubts seriously. Facts stay facts: \
no flattery, no padding.""",
    "pragmatic": """\
Write the way an experienced engineer reports: plain, brief, to the point. First what matters for the decision, then \
what supports it. No small talk, no praise, no repetition of what was asked.""",
}


def tone_instructions(personality: str | None) -> str:
    """The instructions about the tone of the answers; empty for `none` and where nothing was chosen."""
    return _TONES.get(personality or "", "")


_ABOUT_PATCHES: Final = r"(?s)(- )?Edit (?:files )?with `apply_patch`.*?(?=\n\n(?:# )?Skills\b)"
_ABOUT_EDITS: Final = (
    "Change files with `edit_file`, which replaces text that you copy exactly from the file, and make new ones with "
    "`write_file`. Read the part of a file before you change it. If an edit does not fit, read the file again before "
    "the next try."
)


def base_instructions(*, short: bool = False, has_edit_tools: bool = False) -> str:
    """The text for the top-level `instructions` field; `short` is the variant for local models with small windows.

    `has_edit_tools` is for models that change files by plain edits in place of patches.
    """
    text = _read("base_short.md" if short else "base.md")
    return re.sub(_ABOUT_PATCHES, lambda found: (found[1] or "") + _ABOUT_EDITS, text) if has_edit_tools else text


def fitted_instructions(text: str, *, has_edit_tools: bool) -> str:
    """Instructions for a model with other tools to change files: the base instructions follow, other texts stay."""
    for short in (False, True):
        if text == base_instructions(short=short, has_edit_tools=not has_edit_tools):
            return base_instructions(short=short, has_edit_tools=has_edit_tools)
    return text


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


def review_instructions() -> str:
    """How changes are reviewed, and what the answer looks like."""
    return _read("review.md")


def init_instructions() -> str:
    """How an `AGENTS.md` is written, and what belongs into it."""
    return _read("init.md")


def _read(name: str) -> str:
    return Path(__file__).with_name("prompts").joinpath(name).read_text("utf-8").strip()
