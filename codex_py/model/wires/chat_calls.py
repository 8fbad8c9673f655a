"""Tool calls put together from the fragments of a Chat Completions stream, whatever ids and indexes they carry."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from codex_py.model.wires.tools import read_index
from codex_py.protocol.encoding import as_object, encode_json, uuid7

_STRUCTURE: Final = re.compile(r'["\\{}\[\]]')


class PartialCall:
    """A call on its way. `extra` is what some servers attach to it."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.extra: dict[str, Any] = {}
        self._arguments: list[str] = []
        self._length = 0
        self._scanned = 0
        self._depth = 0
        self._in_string = self._escaped = self._closed = False

    @property
    def arguments(self) -> str:
        return "".join(self._arguments)

    @property
    def has_arguments(self) -> bool:
        return self._length > 0

    def append(self, text: str) -> None:
        if text:
            self._arguments.append(text)
            self._length += len(text)

    def repeats(self, text: str) -> bool:
        """Whether a fragment is all of the arguments once more, as some servers send them at the end."""
        return len(text) == self._length > 1 and self.is_whole() and text == "".join(self._arguments)

    def is_whole(self) -> bool:
        """Whether the arguments are a JSON object with its end. Each fragment is looked at once."""
        for text in self._arguments[self._scanned :]:
            self._scan(text)
        self._scanned = len(self._arguments)
        return self._closed

    def _scan(self, text: str) -> None:
        after_escape = 0 if self._escaped else -1
        self._escaped = False
        for match in _STRUCTURE.finditer(text):
            at, character = match.start(), match[0]
            if at == after_escape:
                continue
            if self._in_string:
                if character == "\\":
                    after_escape = at + 1
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                self._closed = self._depth == 0
        self._escaped = after_escape == len(text)


class CallAssembler:
    """Feed it the fragments in order; then read `finished`.

    A fragment belongs to the call with its id, else to the newest one with its index, else to the newest one. One with
    an id that is new for its index begins another call, and so does one with a name where a call is whole already.
    """

    def __init__(self) -> None:
        self._calls: list[PartialCall] = []
        self._by_index: dict[int, PartialCall] = {}
        self._by_id: dict[str, PartialCall] = {}
        self._in_chunk: list[PartialCall] = []

    def __bool__(self) -> bool:
        return bool(self._calls)

    def begin_chunk(self) -> None:
        """The next fragments come in a chunk of their own."""
        self._in_chunk.clear()

    def feed(self, fragment: dict[str, Any]) -> tuple[PartialCall, bool, str]:
        """Take a fragment; give back its call, whether that is new, and what it adds to the arguments."""
        function = as_object(fragment.get("function")) or fragment
        index, call_id, name = read_index(fragment.get("index")), fragment.get("id"), function.get("name")
        call_id = call_id if isinstance(call_id, str) else ""
        name = name if isinstance(name, str) else ""
        text = _text(function.get("arguments"))
        call = self._find(index, call_id, name, text)
        if call in self._in_chunk and name and index is None and not call_id:
            # Two calls side by side, with nothing but their places to tell them apart.
            call = None
        is_new = call is None
        if call is None:
            call = PartialCall(index)
            self._calls.append(call)
        self._in_chunk.append(call)
        if index is not None:
            self._by_index[index] = call
        if call_id:
            call.id = call.id or call_id
            self._by_id[call_id] = call
        if name and name != call.name and (not call.name or not call.has_arguments):
            call.name += name
        if extra := as_object(fragment.get("extra_content")):
            call.extra = {"extra_content": extra}
        if call.repeats(text):
            text = ""
        call.append(text)
        return call, is_new, text

    def finished(self, is_known: Callable[[str], bool]) -> list[PartialCall]:
        """The calls by their indexes, each with an id of its own that no call of the history has."""
        seen: set[str] = set()
        calls = sorted(self._calls, key=lambda call: call.index or 0)
        for call in calls:
            if not call.id.strip() or call.id in seen or is_known(call.id):
                call.id = f"call_{uuid7().replace('-', '')}"
            seen.add(call.id)
        return calls

    def _find(self, index: int | None, call_id: str, name: str, text: str) -> PartialCall | None:
        newest = self._calls[-1] if self._calls else None
        found = self._by_id.get(call_id) if call_id else None
        if found is not None and index is not None and found.index not in (None, index):
            # The same id for several calls, which their indexes tell apart.
            found = self._by_index.get(index)
        elif found is None:
            found = self._by_index.get(index) if index is not None else newest
            if found is not None and call_id and found.id:
                # Some servers give each fragment an id of its own; only the first one has a name.
                return None if name or found.is_whole() else found
        if found is None or not name or not found.name or not found.is_whole():
            return found
        # A name where a call is whole: another call, unless it says the same once more.
        return None if name != found.name or (text.strip() and not found.repeats(text)) else found


def _text(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return encode_json(arguments).decode() if isinstance(arguments, dict) else ""
