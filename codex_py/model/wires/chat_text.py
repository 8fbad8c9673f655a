"""Chunks of a Chat Completions stream that bring a few letters of text and differ in nothing else.

A server that streams letter by letter sends a hundred bytes around each. What stands around the first piece of text is
remembered, and chunks with the same around theirs are not decoded again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object

# Text that stands in JSON as it is.
_PLAIN: Final = re.compile(rb'[^\x00-\x1f"\\]+')
_FIELDS: Final = ("content", "reasoning_content", "reasoning", "thinking")


class TextTemplate:
    """The bytes around the text in the last chunk that had only text; `field` names the field of that text."""

    def __init__(self) -> None:
        self.field = ""
        self._before = b""
        self._after = b""

    def note(self, data: bytes, value: Mapping[str, Any]) -> None:
        """Look at a chunk that was decoded."""
        choices = as_list(value.get("choices"))
        choice = as_object(choices[0]) if len(choices) == 1 else {}
        delta = as_object(choice.get("delta"))
        # Some say with every chunk who speaks, and what there is nothing of.
        present = {name: part for name, part in delta.items() if part is not None and name != "role"}
        if len(present) != 1 or choice.get("finish_reason") or value.get("usage") or value.get("x_groq"):
            return
        ((name, text),) = present.items()
        if name not in _FIELDS or not isinstance(text, str):
            return
        mark, encoded = f'"{name}":"'.encode(), text.encode("utf-8", "surrogatepass")
        start = data.find(mark) + len(mark)
        end = start + len(encoded)
        if data.count(mark) == 1 and data[start:end] == encoded and data[end : end + 1] == b'"':
            self.field, self._before, self._after = name, data[:start], data[end:]

    def take(self, waiting: list[bytes]) -> str:
        """Remove the chunks of this form from the end of a list; their text, in the order from the end."""
        before, after = self._before, self._after
        if not before:
            return ""
        start, left, pieces = len(before), len(after), list[bytes]()
        for data in reversed(waiting):
            end = len(data) - left
            if not (
                data.startswith(before) and data.endswith(after) and _PLAIN.fullmatch(data, start, max(start, end))
            ):
                break
            pieces.append(data[start:end])
        try:
            text = b"".join(pieces).decode()
        except UnicodeDecodeError:
            return ""
        if pieces:
            del waiting[-len(pieces) :]
        return text
