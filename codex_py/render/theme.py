"""Colours by name. Whatever is drawn says what it is (`diff.add`, `code.string`); the theme says what that looks like.

Styles are written in the words of rich and reach prompt_toolkit and plain escape sequences from here, so that the
three agree. Colours are the sixteen of the terminal and greys and tints of the 256; nothing depends on them alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from codex_py.errors import UserError
from codex_py.protocol.value import Value
from codex_py.text.nearest import did_you_mean

ColorDepth: TypeAlias = Literal["none", "16", "256", "truecolor"]

AUTO: Final = "auto"
_COLOR_NAMES: Final = "black red green yellow blue magenta cyan white".split()
_FLAGS: Final = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "reverse": "7", "strike": "9"}
_INDEXED: Final = re.compile(r"color\((\d{1,3})\)")

# What a style is called, and what it looks like on a dark ground, on a light one, and without colours.
_STYLES: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("dim", "color(245)", "color(243)", "dim"),
    ("accent", "cyan", "color(30)", "bold"),
    ("strong", "bold", "bold", "bold"),
    ("emphasis", "italic", "italic", "italic"),
    ("good", "green", "color(28)", "none"),
    ("bad", "bold red", "bold color(160)", "bold"),
    ("warn", "yellow", "color(130)", "bold"),
    ("prompt", "bold", "bold", "bold"),
    ("prompt.mark", "bold cyan", "bold color(30)", "bold"),
    ("message.mark", "color(252)", "color(238)", "none"),
    ("reasoning", "italic color(245)", "italic color(243)", "italic dim"),
    ("command", "none", "none", "none"),
    ("output", "color(245)", "color(243)", "dim"),
    ("skill", "magenta", "color(90)", "bold"),
    ("search", "blue", "color(25)", "bold"),
    ("plan.done", "color(245)", "color(243)", "dim"),
    ("plan.now", "bold cyan", "bold color(30)", "bold"),
    ("plan.todo", "none", "none", "none"),
    ("markdown.heading", "bold cyan", "bold color(30)", "bold underline"),
    ("markdown.code", "color(180)", "color(94)", "bold"),
    ("markdown.link", "underline blue", "underline color(25)", "underline"),
    ("markdown.quote", "italic color(250)", "italic color(240)", "italic"),
    ("markdown.rule", "color(240)", "color(248)", "dim"),
    ("markdown.strike", "strike color(245)", "strike color(243)", "strike"),
    ("markdown.bullet", "cyan", "color(30)", "none"),
    ("table.head", "bold", "bold", "bold"),
    ("diff.add", "color(114)", "color(22)", "none"),
    ("diff.remove", "color(210)", "color(124)", "none"),
    ("diff.add.ground", "on #143822", "on color(194)", "none"),
    ("diff.remove.ground", "on #4a1d22", "on color(224)", "none"),
    ("diff.number", "color(242)", "color(246)", "dim"),
    ("diff.hunk", "color(245)", "color(243)", "dim"),
    ("diff.path", "bold", "bold", "bold underline"),
    ("code.comment", "italic color(245)", "italic color(243)", "italic dim"),
    ("code.string", "color(150)", "color(28)", "none"),
    ("code.number", "color(180)", "color(130)", "none"),
    ("code.keyword", "color(141)", "color(91)", "bold"),
    ("code.name", "color(117)", "color(25)", "none"),
    ("code.type", "color(79)", "color(30)", "none"),
    ("code.operator", "color(250)", "color(240)", "none"),
    ("code.add", "color(114)", "color(22)", "none"),
    ("code.remove", "color(210)", "color(124)", "none"),
    ("status", "color(245)", "color(243)", "none"),
    ("status.mode", "bold yellow", "bold color(130)", "bold"),
    ("status.low", "bold red", "bold color(160)", "bold"),
    ("menu", "none", "none", "none"),
    ("menu.current", "bold cyan", "bold color(30)", "reverse"),
    ("menu.note", "color(245)", "color(243)", "dim"),
    ("dialog.title", "bold", "bold", "bold"),
    ("dialog.key", "cyan", "color(30)", "bold"),
    ("bar.1", "cyan", "color(30)", "none"),
    ("bar.2", "blue", "color(25)", "none"),
    ("bar.3", "magenta", "color(90)", "none"),
    ("bar.4", "yellow", "color(130)", "none"),
    ("bar.5", "green", "color(28)", "none"),
    ("bar.6", "color(209)", "color(166)", "none"),
    ("bar.7", "color(180)", "color(94)", "none"),
    ("bar.8", "color(147)", "color(61)", "none"),
    ("bar.free", "color(240)", "color(250)", "dim"),
)
_BACKGROUND_COLUMNS: Final = {"dark": 1, "light": 2, "mono": 3}
THEME_NAMES: Final = (AUTO, *_BACKGROUND_COLUMNS)


class Theme(Value):
    """A named look; `depth` is how many colours the terminal has. `mono` has none and uses weight and slant."""

    name: str
    depth: ColorDepth

    def styles(self) -> Mapping[str, str]:
        """Every style in the words of rich."""
        column = _BACKGROUND_COLUMNS[self.name]
        return {row[0]: row[column] for row in _STYLES}

    def prompt_toolkit_styles(self) -> Mapping[str, str]:
        """The same styles in the words of prompt_toolkit, to be used as classes."""
        own = {name: to_prompt_toolkit(style) for name, style in self.styles().items()}
        # It has looks of its own for `menu` and `dialog`, and what a class is called before the dot counts too.
        roots = {name.partition(".")[0] for name in own}
        return {**own, **{root: f"noinherit {own.get(root, '')}".strip() for root in roots}}

    def paint(self, text: str, style: str) -> str:
        """`text` in a named style, as escape sequences; for the few lines that are drawn before rich is there."""
        codes = _escape_codes(self.styles()[style], self.depth)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def find_theme(name: str, env: Mapping[str, str]) -> Theme:
    """The theme a user asks for, `auto` included, in the colours that this terminal has; raise `UserError`."""
    if name == AUTO:
        return detect_theme(env)
    if name not in _BACKGROUND_COLUMNS:
        raise UserError(
            f"no theme `{name}`", hint=did_you_mean(name, THEME_NAMES) or f"there are `{'`, `'.join(THEME_NAMES)}`"
        )
    depth = color_depth(env)
    return Theme("mono", "none") if depth == "none" or name == "mono" else Theme(name, depth)


def detect_theme(env: Mapping[str, str]) -> Theme:
    """The theme the environment asks for: no colours, or a dark background unless `COLORFGBG` says that it is light."""
    depth = color_depth(env)
    if depth == "none":
        return Theme("mono", depth)
    background = env.get("COLORFGBG", "").rpartition(";")[2]
    return Theme("light" if background in ("7", "15") else "dark", depth)


def color_depth(env: Mapping[str, str]) -> ColorDepth:
    """How many colours a terminal says it has; none with `NO_COLOR` and on one that knows no escape sequences."""
    term = env.get("TERM", "")
    if env.get("NO_COLOR") or term in ("", "dumb"):
        return "none"
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "truecolor"
    return "256" if "256" in term else "16"


def to_prompt_toolkit(style: str) -> str:
    """A style of rich in the words of prompt_toolkit."""
    words: list[str] = []
    background = ""
    for word in style.split():
        if word == "on":
            background = "bg:"
        elif word in _FLAGS:
            words.append(word)
        elif word != "none":
            words.append(background + _prompt_toolkit_color(word))
            background = ""
    return " ".join(words)


def _prompt_toolkit_color(word: str) -> str:
    indexed = _INDEXED.fullmatch(word)
    if word.startswith("#"):
        return word
    if indexed is None:
        bright, name = word.startswith("bright_"), word.removeprefix("bright_")
        known = {"black": "black", "white": "gray"}.get(name, name)
        return (
            {"black": "ansibrightblack", "white": "ansiwhite"}.get(name, f"ansibright{name}")
            if bright
            else (f"ansi{known}")
        )
    return "#" + "".join(f"{part:02x}" for part in _rgb(int(indexed[1])))


def _rgb(index: int) -> tuple[int, int, int]:
    """A colour of the palette from 16 on: the cube, then the greys."""
    if index >= 232:
        grey = 8 + 10 * (index - 232)
        return grey, grey, grey
    red, green, blue = ((index - 16) // 36, (index - 16) // 6 % 6, (index - 16) % 6)
    return _level(red), _level(green), _level(blue)


def _level(step: int) -> int:
    return 55 + 40 * step if step else 0


def _escape_codes(style: str, depth: ColorDepth) -> str:
    codes: list[str] = []
    base = 30
    for word in style.split():
        indexed = _INDEXED.fullmatch(word)
        if word == "on":
            base = 40
        elif word in _FLAGS:
            codes.append(_FLAGS[word])
        elif word in _COLOR_NAMES and depth != "none":
            codes.append(str(base + _COLOR_NAMES.index(word)))
        elif indexed and depth in ("256", "truecolor"):
            codes.append(f"{base + 8};5;{indexed[1]}")
        elif indexed and depth == "16":
            codes.append("2")
    return ";".join(codes)
