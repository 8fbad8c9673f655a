"""The page of the reference with every message that names a remedy, read from the program's source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE = Path(__file__).resolve().parents[1] / "codex_py"
_GAP: Final = "…"
_NEAREST: Final = "the message names the nearest one"


def messages_page() -> str:
    """Every message with a remedy, in alphabetical order."""
    parts = [
        "# Messages and remedies",
        "",
        "Every message that comes with the one next step. `…` stands for a name, a value or what a server said.",
        "Search this page for the words of your message; [troubleshooting](../troubleshooting.md) explains the",
        "frequent ones.",
        "",
        "| message | what to do |",
        "|---|---|",
    ]
    rows = {row for path in PACKAGE.rglob("*.py") for row in _rows_of(path)}
    return "\n".join([*parts, *map(_row, sorted(rows, key=_sort_key)), ""])


def _rows_of(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args and (hint := _keyword(node, "hint")):
            message = _text(node.args[0])
            remedy = " or ".join(dict.fromkeys(_choices(hint)))
            if re.search(r"\w\w", message) and re.search(r"\w\w", remedy):
                yield message, remedy


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _choices(node: ast.expr) -> Iterator[str]:
    """The texts that a hint may be."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=values):
            for value in values:
                yield from _choices(value)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _choices(body)
            yield from _choices(orelse)
        case ast.Constant(value=None):
            return
        case ast.Call(func=ast.Name(id="did_you_mean")) | ast.Name(id="guess"):
            yield _NEAREST
        case _:
            text = _text(node)
            if re.search(r"\w\w", text):
                yield text


def _text(node: ast.expr) -> str:
    """The literal text of an expression, with a gap for what is only known when the program runs."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_text, values))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _text(left) + _text(right)
        case _:
            return _GAP


def _sort_key(row: tuple[str, str]) -> tuple[str, str]:
    return re.sub(r"[^a-z ]", "", row[0].lower()).strip(), row[1]


def _row(row: tuple[str, str]) -> str:
    return f"| {_cell(row[0])} | {_cell(row[1])} |"


def _cell(text: str) -> str:
    shown = re.sub(rf"{_GAP}(?:\s*{_GAP})+", _GAP, " ".join(text.split())).replace("|", "&#124;")
    # Angle brackets and stars mean something outside of code.
    pieces = re.split(r"(`[^`]*`)", shown)
    return "".join(piece if piece.startswith("`") else re.sub(r"([<>*\[\]])", r"\\\1", piece) for piece in pieces)
