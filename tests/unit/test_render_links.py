"""Links in answers, for terminals that open them; others see the text alone."""

from __future__ import annotations

import re

from codex_py.render.entry import to_fragments, to_lines
from codex_py.render.markdown import render_markdown
from codex_py.render.theme import Theme, find_theme

LINKED = Theme("dark", "256", has_links=True)
DARK = Theme("dark", "256")
ADDRESS = "https://example.com/a/long/path/that/does/not/fit/into/one/row"


def lines(source: str, theme: Theme, width: int = 30) -> str:
    entry = render_markdown(source)
    assert entry is not None
    return "\n".join(to_lines(entry, width=width, theme=theme))


def test_a_wrapped_address_is_one_link() -> None:
    found = re.findall(r"\x1b\]8;id=(\d+);(.*?)\x1b\\", lines(f"See {ADDRESS}.", LINKED))
    assert len(found) > 1
    assert {target for _, target in found} == {ADDRESS}
    assert len({number for number, _ in found}) == 1


def test_a_path_with_a_line_is_a_link_to_the_file() -> None:
    assert ";file:///srv/app.py\x1b\\" in lines("Look at `/srv/app.py:12`, please", LINKED, 60)


def test_a_terminal_that_opens_no_links_gets_none() -> None:
    plain = lines(f"See {ADDRESS}.", DARK)
    assert "]8;" not in plain
    entry = render_markdown(f"See {ADDRESS}.")
    assert entry is not None
    assert "link" not in str(to_fragments(entry, width=30, theme=LINKED))


def test_what_is_known_of_the_terminal_decides() -> None:
    env = {"TERM": "xterm-256color"}
    assert not find_theme("dark", env).has_links
    assert find_theme("dark", {**env, "TERM_PROGRAM": "WezTerm"}).has_links
    assert find_theme("auto", {**env, "VTE_VERSION": "7200"}).has_links
    assert not find_theme("auto", {**env, "VTE_VERSION": "7200", "STY": "1"}).has_links
