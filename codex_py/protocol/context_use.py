"""What fills the model's context window, by what it is."""

from __future__ import annotations

from typing import Literal, TypeAlias

from codex_py.protocol.value import Value

# In the order they are shown. `host` is what else the program says: permissions, environment, notes, summaries.
ContextSectionName: TypeAlias = Literal[
    "base", "tools", "skills_list", "injected_skills", "agents_md", "host", "messages", "calls", "outputs", "reasoning"
]


class ContextSection(Value):
    name: ContextSectionName
    tokens: int


class ContextUse(Value):
    """Tokens the next request takes; the sections add up to `total`, and those of nothing are left out.

    `measured` says that the total is the provider's count of the last answer plus an estimate of what came since;
    else it is an estimate as a whole. How the total splits is always one. The history is compacted from
    `compacted_at` on. `window` is None where the model's is not known.
    """

    sections: tuple[ContextSection, ...]
    total: int
    window: int | None
    compacted_at: int | None
    measured: bool
