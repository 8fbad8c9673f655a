"""The note an interrupted turn leaves for the model."""

from __future__ import annotations

from typing import Final

from codex_py.protocol.items import ResponseItem, message

_NOTE: Final = """\
<turn_aborted>
The user stopped the previous turn on purpose. Commands and patches that were running may be half done, and processes \
started in the background may still be running. Look at the present state before you continue or repeat anything.
</turn_aborted>"""


def turn_aborted() -> ResponseItem:
    """The user message `<turn_aborted>`, appended when a turn was interrupted."""
    return message("user", _NOTE)
