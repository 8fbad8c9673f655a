"""Noticing a model that makes the same call again and again and gets the same result each time."""

from __future__ import annotations

import re
from typing import Final

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import ToolOutput

_NOTICE_AFTER: Final = 10
_MAX_REPEATS: Final = 100
# What differs between two reports of the same result.
_VARIABLE: Final = r"Chunk ID: [0-9a-f]+|Wall time: [0-9.]+ seconds"


class RepeatedCalls:
    """Counts how often the last call of a turn was made in a row."""

    def __init__(self) -> None:
        self._last: tuple[str, ...] = ()
        self._count = 0

    def restart(self) -> None:
        """Start counting again: something else happened."""
        self._last, self._count = (), 0

    def note(self, call: ToolCall, output: ToolOutput) -> ToolOutput:
        """Take a call that has ended; return its output, with a notice for the model or the failure of the turn."""
        text = encode_json(list(output.parts)).decode() if output.parts else output.text
        made = (call.namespace or "", call.name, call.arguments, re.sub(_VARIABLE, "", text))
        self._count = self._count + 1 if made == self._last else 1
        self._last = made
        if self._count < _NOTICE_AFTER:
            return output
        notice = (
            f"This was call {self._count} in a row with the same arguments and the same result. "
            "Do something else, or end the turn with an answer."
        )
        if output.parts:
            output = output.replace(parts=(*output.parts, {"type": "input_text", "text": notice}))
        else:
            output = output.replace(text=f"{output.text}\n\n{notice}")
        if self._count < _MAX_REPEATS:
            return output
        failure = (
            f"the model was stopped because it called `{call.name}` {self._count} times in a row with the same "
            "arguments and the same result"
        )
        return output.replace(failure=failure)
