"""The finding of a check of a skill."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

LintRule: TypeAlias = Literal[
    "load",
    "held",
    "metadata",
    "name",
    "description",
    "text",
    "field",
    "script",
    "old-version",
    "overlap",
    "evals",
    "executable",
    "missing-file",
    "missing-command",
    "missing-flag",
    "missing-package",
    "missing-link",
]
# What says that a skill has fallen behind the things it refers to.
_STALE: Final = frozenset(
    ("missing-file", "missing-command", "missing-flag", "missing-package", "missing-link", "script", "old-version")
)


class LintFinding(NamedTuple):
    """An `error` keeps the skill, or a part of it, from loading; `advice` does not. `remedy` says what to do."""

    level: Literal["error", "advice"]
    path: Path
    message: str
    rule: LintRule = "load"
    line: int = 1
    remedy: str = ""

    @property
    def is_stale(self) -> bool:
        """Whether what the skill refers to is not there, or does not work."""
        return self.rule in _STALE
