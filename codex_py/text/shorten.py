"""Cutting a JSON value down to a size that every reader takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

Encode: TypeAlias = Callable[[object], bytes]

# Texts shorter than this say nothing: before they are cut so far, lists lose entries.
_MIN_BYTES: Final = 256
_NOTE_BYTES: Final = 64
# Deeper than any published type goes; below, a value becomes the text of its JSON.
_DEEPEST: Final = 7
_MAX_KEYS: Final = 16


def shortened(value: Mapping[str, Any], max_bytes: int, encode: Encode) -> dict[str, Any]:
    """The table with its longest texts cut in the middle, so that its JSON has at most `max_bytes` bytes.

    When there are too many texts for that, lists lose entries at their end. Deeply nested values become text.
    """
    tree = _shallow(value, _DEEPEST, encode)
    while True:
        sizes = sorted(len(encode(text)) for text in _texts(tree))
        level = _level(sizes, max_bytes - (len(encode(tree)) - sum(sizes)))
        smaller = _with_less(tree) if level < _MIN_BYTES else tree
        if smaller == tree:
            return _cut(tree, max(level, 0), encode)
        tree = smaller


def _level(sizes: Sequence[int], budget: int) -> int:
    """How long each text may be, so that texts of these sizes, in rising order, fit into the room together."""
    for position, size in enumerate(sizes):
        share = budget // (len(sizes) - position)
        if size > share:
            return share
        budget -= size
    return budget


def _shallow(value: object, depth: int, encode: Encode) -> Any:
    match value:
        case str():
            # A lone surrogate would make all of the JSON longer by its escapes.
            return value.encode(errors="replace").decode()
        case Mapping() | list() if depth == 0:
            return encode(cast("object", value)).decode()
        case Mapping():
            table = cast("Mapping[str, Any]", value)
            return {key: _shallow(inner, depth - 1, encode) for key, inner in table.items()}
        case list():
            return [_shallow(inner, depth - 1, encode) for inner in cast("list[Any]", value)]
        case _:
            return value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, inner in cast("dict[str, Any]", value).items():
                yield key
                yield from _texts(inner)
        case list():
            for inner in cast("list[Any]", value):
                yield from _texts(inner)
        case _:
            pass


def _with_less(value: Any) -> Any:
    """The same with half of every list and of every large table."""
    match value:
        case dict():
            entries = list(cast("dict[str, Any]", value).items())
            retained = entries[: -(-len(entries) // 2)] if len(entries) > _MAX_KEYS else entries
            return {key: _with_less(inner) for key, inner in retained}
        case list():
            items = cast("list[Any]", value)
            return [_with_less(inner) for inner in items[: -(-len(items) // 2)]]
        case _:
            return value


def _cut(value: Any, max_bytes: int, encode: Encode) -> Any:
    match value:
        case str():
            return value if len(encode(value)) <= max_bytes else _cut_text(value, max_bytes, encode)
        case dict():
            table = cast("dict[str, Any]", value)
            return {_cut(key, max_bytes, encode): _cut(inner, max_bytes, encode) for key, inner in table.items()}
        case list():
            return [_cut(inner, max_bytes, encode) for inner in cast("list[Any]", value)]
        case _:
            return value


def _cut_text(text: str, max_bytes: int, encode: Encode) -> str:
    share = max((max_bytes - _NOTE_BYTES) // 2, 0)
    head, tail = _end(text[:share], share, encode), _end(text[::-1][:share], share, encode)[::-1]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def _end(text: str, max_bytes: int, encode: Encode) -> str:
    """The longest beginning that encodes to at most `max_bytes` bytes."""
    while text and (size := len(encode(text))) > max_bytes:
        text = text[: len(text) * max_bytes // size]
    return text
