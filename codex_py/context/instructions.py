"""The base instructions: what the model is sent before anything else."""

from __future__ import annotations

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


def base_instructions(*, short: bool = False) -> str:
    """The text for the top-level `instructions` field; `short` is the variant for local models with small windows."""
    name = "base_short.md" if short else "base.md"
    return Path(__file__).with_name("prompts").joinpath(name).read_text("utf-8").strip()
