"""The words about compacting a history: who does it, and why."""

from __future__ import annotations

from typing import Literal, TypeAlias

# The model writes a summary; the provider's endpoint replaces the history; the provider answers with an item for it.
CompactionWay: TypeAlias = Literal["local", "remote", "in-band"]
# Asked for by the user; the limit is reached; a request did not fit; the next model reads less.
CompactionReason: TypeAlias = Literal["user_requested", "context_limit", "context_overflow", "smaller_window"]
