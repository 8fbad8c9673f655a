"""Prompts that stand behind a command of the front end."""

from __future__ import annotations

from pathlib import Path


def review_instructions() -> str:
    """How changes are reviewed, and what the answer looks like."""
    return _read("review.md")


def init_instructions() -> str:
    """How an `AGENTS.md` is written, and what belongs into it."""
    return _read("init.md")


def _read(name: str) -> str:
    return Path(__file__).with_name("prompts").joinpath(name).read_text("utf-8").strip()
