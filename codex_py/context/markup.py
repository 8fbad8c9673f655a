"""Values inside the tagged blocks the model reads: kept on one line, inside their tags, and within a size."""

from __future__ import annotations

from codex_py.text.sanitize import sanitize_line


def value(text: str) -> str:
    """A path or a name for the inside of an element: one line, nothing hidden, markup escaped."""
    return escape(sanitize_line(text))


def escape(text: str) -> str:
    """`&`, `<`, `>` and `"` as entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def quoted(text: str) -> str:
    """A path or a name in backticks; a backtick of its own becomes a quote."""
    return f"`{sanitize_line(text).replace('`', chr(39))}`"


def cut_to(text: str, max_bytes: int) -> str:
    """`text`, or as much of its beginning as fits into `max_bytes` of UTF-8 and a line that says what is missing."""
    if len(text) <= max_bytes // 4:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= max_bytes:
        return text
    head = raw[:max_bytes].decode("utf-8", "ignore")
    return f"{head}\n[cut here: {max_bytes} of {len(raw)} bytes are shown]"
