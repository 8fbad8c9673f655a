"""Themes: styles by name, such as `diff.add` or `code.string`.

Styles are written in rich's syntax and translated here for prompt_toolkit and plain escape sequences, so that the
three agree. Colour is never the only carrier of information.
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

# Each style's name, and its look on a dark background, on a light one, and without colours.
_STYLES: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("dim", "color(247)", "color(241)", "dim"),
    ("accent", "color(80)", "color(24)", "bold"),
    ("strong", "bold", "bold", "bold"),
    ("emphasis", "italic", "italic", "italic"),
    ("good", "color(114)", "color(22)", "none"),
    ("bad", "bold color(203)", "bold color(124)", "bold"),
    ("warn", "color(221)", "color(94)", "bold"),
    ("prompt", "color(255)", "color(235)", "bold"),
    ("message.ground", "color(255) on #2a2d35", "color(235) on #eceff4", "none"),
    ("prompt.mark", "bold color(80)", "bold color(24)", "bold"),
    ("message.mark", "color(252)", "color(238)", "none"),
    ("reasoning", "italic color(247)", "italic color(241)", "italic dim"),
    ("command", "none", "none", "none"),
    ("output", "color(247)", "color(241)", "dim"),
    ("skill", "color(176)", "color(90)", "bold"),
    ("search", "color(111)", "color(25)", "bold"),
    ("plan.done", "color(247)", "color(241)", "dim"),
    ("plan.now", "bold color(80)", "bold color(24)", "bold"),
    ("plan.todo", "none", "none", "none"),
    ("markdown.heading", "bold color(80)", "bold color(24)", "bold underline"),
    ("markdown.code", "color(180)", "color(94)", "bold"),
    ("markdown.link", "underline color(111)", "underline color(25)", "underline"),
    ("markdown.quote", "italic color(250)", "italic color(240)", "italic"),
    ("markdown.rule", "color(246)", "color(242)", "dim"),
    ("markdown.strike", "strike color(247)", "strike color(241)", "strike"),
    ("markdown.bullet", "color(80)", "color(24)", "none"),
    ("table.head", "bold", "bold", "bold"),
    ("diff.add", "color(114)", "color(22)", "none"),
    ("diff.remove", "color(210)", "color(124)", "none"),
    ("diff.add.ground", "color(255) on #143822", "color(235) on #e6ffec", "none"),
    ("diff.remove.ground", "color(255) on #4a1d22", "color(235) on #ffebe9", "none"),
    ("diff.number", "color(247)", "color(241)", "dim"),
    ("diff.hunk", "color(247)", "color(241)", "dim"),
    ("diff.path", "bold", "bold", "bold underline"),
    ("code.comment", "italic color(247)", "italic color(241)", "italic dim"),
    ("code.string", "color(150)", "color(22)", "none"),
    ("code.number", "color(180)", "color(94)", "none"),
    ("code.keyword", "color(141)", "color(91)", "bold"),
    ("code.name", "color(117)", "color(25)", "none"),
    ("code.type", "color(79)", "color(24)", "none"),
    ("code.operator", "color(250)", "color(240)", "none"),
    ("code.add", "color(114)", "color(22)", "none"),
    ("code.remove", "color(210)", "color(124)", "none"),
    ("status", "color(247)", "color(241)", "none"),
    ("status.mode", "bold color(221)", "bold color(94)", "bold"),
    ("status.low", "bold color(203)", "bold color(124)", "bold"),
    ("menu", "none", "none", "none"),
    ("menu.current", "bold color(255) on #2b3d52", "bold color(235) on #d6e4f5", "reverse"),
    ("menu.note", "color(247)", "color(241)", "dim"),
    ("dialog.title", "bold", "bold", "bold"),
    ("dialog.key", "color(80)", "color(24)", "bold"),
    ("bar.1", "color(80)", "color(24)", "none"),
    ("bar.2", "color(111)", "color(25)", "none"),
    ("bar.3", "color(176)", "color(90)", "none"),
    ("bar.4", "color(221)", "color(94)", "none"),
    ("bar.5", "color(114)", "color(22)", "none"),
    ("bar.6", "color(209)", "color(130)", "none"),
    ("bar.7", "color(180)", "color(94)", "none"),
    ("bar.8", "color(147)", "color(61)", "none"),
    ("bar.free", "color(246)", "color(242)", "dim"),
)
# The nearest backgrounds among 256 colours. Terminals with sixteen have none that are quiet enough.
_PALETTE_BACKGROUNDS: Final = {
    "#143822": "color(22)",
    "#4a1d22": "color(52)",
    "#e6ffec": "color(194)",
    "#ffebe9": "color(224)",
    "#2a2d35": "color(236)",
    "#eceff4": "color(255)",
    "#2b3d52": "color(24)",
    "#d6e4f5": "color(189)",
}
# In sixteen colours these are named, so that they follow the user's palette.
_NAMED: Final = {
    "color(80)": "cyan",
    "color(114)": "green",
    "color(221)": "yellow",
    "color(203)": "red",
    "color(111)": "blue",
    "color(176)": "magenta",
}
_BACKGROUND: Final = re.compile(r"on (#\w{6})")
_BACKGROUND_COLUMNS: Final = {"dark": 1, "light": 2, "mono": 3}
THEME_NAMES: Final = (AUTO, *_BACKGROUND_COLUMNS)


_LINK_PROGRAMS: Final = frozenset({"iterm.app", "iterm2", "wezterm", "ghostty", "kitty", "vscode", "warpterminal"})
_LINK_TERMS: Final = ("xterm-kitty", "xterm-ghostty", "wezterm", "alacritty", "foot", "contour")
_VTE_WITH_LINKS: Final = 5000


class Theme(Value):
    """A named look; `depth` is how many colours the terminal has. `mono` has none and uses weight and slant.
    With `has_links` the terminal opens links that are written as such (OSC 8). Relative paths are those below
    `link_root`, and `opener` is the scheme of the editor that opens files; without it that is up to the system.
    """

    name: str
    depth: ColorDepth
    has_links: bool = False
    link_root: str = ""
    opener: str = ""

    def styles(self) -> Mapping[str, str]:
        """Every style in rich's syntax."""
        column = _BACKGROUND_COLUMNS[self.name]
        return {row[0]: self._in_depth(row[column]) for row in _STYLES}

    def _in_depth(self, style: str) -> str:
        """The style with a background that this terminal has."""
        if self.depth in ("16", "none"):
            style = _INDEXED.sub(lambda color: _NAMED.get(color[0], color[0]), style)
        if self.depth == "truecolor" or " on " not in style:
            return style
        if self.depth == "256":
            return _BACKGROUND.sub(lambda found: f"on {_PALETTE_BACKGROUNDS[found[1]]}", style)
        return "reverse" if style.startswith("bold") else "none"

    def prompt_toolkit_styles(self) -> Mapping[str, str]:
        """The same styles as prompt_toolkit classes."""
        own = {name: to_prompt_toolkit(style) for name, style in self.styles().items()}
        # prompt_toolkit has its own styles for `menu` and `dialog`, and applies the part before the dot as well.
        roots = {name.partition(".")[0] for name in own}
        return {**own, **{root: f"noinherit {own.get(root, '')}".strip() for root in roots}}

    def paint(self, text: str, style: str) -> str:
        """`text` in a named style, as escape sequences; for lines that are drawn before rich is loaded."""
        codes = _escape_codes(self.styles()[style], self.depth)
        return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def find_theme(name: str, env: Mapping[str, str], background: str | None = None) -> Theme:
    """The theme with this name, or for `auto` the detected one, in the colours of this terminal; raise `UserError`."""
    if name == AUTO:
        return detect_theme(env, background)
    if name not in _BACKGROUND_COLUMNS:
        raise UserError(
            f"no theme `{name}`", hint=did_you_mean(name, THEME_NAMES) or f"there are `{'`, `'.join(THEME_NAMES)}`"
        )
    depth = color_depth(env)
    links = shows_links(env)
    return Theme("mono", "none", links) if depth == "none" or name == "mono" else Theme(name, depth, links)


def detect_theme(env: Mapping[str, str], background: str | None = None) -> Theme:
    """The theme for the terminal's reported background, `dark` or `light`, else by `COLORFGBG`, else dark."""
    depth = color_depth(env)
    if depth == "none":
        return Theme("mono", depth, shows_links(env))
    if background is None:
        background = "light" if env.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else "dark"
    return Theme(background, depth, shows_links(env))


def shows_links(env: Mapping[str, str]) -> bool:
    """Whether the terminal is known to support links; others might print the sequence."""
    if env.get("TERM", "") in ("", "dumb") or env.get("STY"):
        return False
    programs = {env.get(name, "").lower() for name in ("TERM_PROGRAM", "LC_TERMINAL")}
    vte = env.get("VTE_VERSION", "")
    return (
        bool(programs & _LINK_PROGRAMS)
        or env.get("TERM", "").startswith(_LINK_TERMS)
        or (vte.isdecimal() and int(vte) >= _VTE_WITH_LINKS)
        or any(env.get(name) for name in ("WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION"))
    )


def color_depth(env: Mapping[str, str]) -> ColorDepth:
    """How many colours the terminal reports; none with `NO_COLOR`, and without escape sequences."""
    term = env.get("TERM", "")
    if env.get("NO_COLOR") or term in ("", "dumb"):
        return "none"
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "truecolor"
    return "256" if "256" in term else "16"


def to_prompt_toolkit(style: str) -> str:
    """A style in rich's syntax, translated for prompt_toolkit."""
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
