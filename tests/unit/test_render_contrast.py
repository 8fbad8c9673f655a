"""Every style of every theme can be read on its background, on a dark terminal and on a light one."""

from __future__ import annotations

import pytest
from rich.color import Color
from rich.style import Style

from codex_py.render.entry import MIN_CONTRAST, contrast, readable_on
from codex_py.render.theme import ColorDepth, Theme

# Black and white, and the greys and tints that terminals come with.
BACKGROUNDS = {"dark": ("#000000", "#1e1e1e"), "light": ("#ffffff", "#fafafa")}
DEPTHS: tuple[ColorDepth, ...] = ("256", "truecolor")


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", BACKGROUNDS)
def test_every_style_can_be_read_on_its_ground(name: str, depth: ColorDepth) -> None:
    for style_name, words in Theme(name, depth).styles().items():
        style = Style.parse(words)
        backgrounds = (
            [style.bgcolor] if style.bgcolor else [Color.parse(background) for background in BACKGROUNDS[name]]
        )
        assert style.color or not style.bgcolor, f"{style_name} has a background and no text colour"
        for background in backgrounds:
            if style.color:
                assert contrast(style.color, background) >= MIN_CONTRAST, f"{style_name} in {name}: {words}"


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", BACKGROUNDS)
def test_every_style_can_be_read_on_every_tinted_row(name: str, depth: ColorDepth) -> None:
    styles = {style_name: Style.parse(words) for style_name, words in Theme(name, depth).styles().items()}
    for background in [style for style in styles.values() if style.bgcolor]:
        for style_name, style in styles.items():
            drawn = readable_on(style, background)
            assert drawn.color and drawn.bgcolor
            if not style.bgcolor:
                assert contrast(drawn.color, drawn.bgcolor) >= MIN_CONTRAST, f"{style_name} in {name}"
