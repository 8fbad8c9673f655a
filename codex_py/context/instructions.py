"""The base instructions: what the model is told before anything else."""

from __future__ import annotations

from pathlib import Path


def base_instructions(*, short: bool = False) -> str:
    """The text for the top-level `instructions` field; `short` is the variant for local models with small windows."""
    name = "base_short.md" if short else "base.md"
    return Path(__file__).with_name("prompts").joinpath(name).read_text("utf-8").strip()
