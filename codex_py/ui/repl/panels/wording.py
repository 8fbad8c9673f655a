"""Paths as a person reads them."""

from __future__ import annotations

from codex_py.paths import short_path

__all__ = ["short_path"]
