"""What a client says that it can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value


class Abilities(Value):
    """`forms` for its user to write into, `notices` that are part of no conversation, and a `terminal` to log in."""

    forms: bool = False
    notices: bool = False
    terminal: bool = False


def read_abilities(capabilities: Mapping[str, Any]) -> Abilities:
    """What is in a client's `clientCapabilities`; what makes no sense there counts as not there."""
    return Abilities(
        forms=isinstance(as_object(capabilities.get("elicitation")).get("form"), dict),
        notices=isinstance(as_object(capabilities.get("session")).get("notices"), dict),
        terminal=as_object(capabilities.get("auth")).get("terminal") is True,
    )
