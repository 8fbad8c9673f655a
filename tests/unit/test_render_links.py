"""Links in answers, for terminals that open them; others see the text alone."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_a_relative_path_is_a_link_where_there_is_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a b.py").touch()
    (tmp_path / "src/app.py").touch()
    theme = LINKED.replace(link_root=str(tmp_path))
    drawn = lines("At src/app.py:12:3 and `app.py:3`, on localhost:8080, 12:30, ./src/app.py:7.", theme, 90)
    assert re.findall(r"\x1b\]8;id=\d+;(.*?)\x1b\\", drawn) == [f"file://{tmp_path}/src/app.py"] * 2
    assert "app.py:3" in re.sub(r"\x1b\[[\d;]*m", "", drawn)


def test_what_the_system_would_start_is_no_link_unless_an_editor_opens_it(tmp_path: Path) -> None:
    names = ("x.command", "evil.Desktop", "page.html", "tool", "plain.py")
    for name in names:
        (tmp_path / name).touch(0o755 if name == "tool" else 0o644)
    theme = LINKED.replace(link_root=str(tmp_path))
    text = " ".join(f"{name}:1 {tmp_path}/{name}:2" for name in names)
    opened = re.findall(r"\x1b\]8;id=\d+;(.*?)\x1b\\", lines(text, theme, 900))
    assert set(opened) == {f"file://{tmp_path}/plain.py"}
    in_editor = re.findall(r"\x1b\]8;id=\d+;(.*?)\x1b\\", lines(text, theme.replace(opener="vscode"), 900))
    assert len(set(in_editor)) == 2 * len(names)


def test_the_configured_editor_opens_the_file_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    theme = LINKED.replace(link_root=str(tmp_path), opener="vscode")
    assert f"vscode://file{tmp_path}/app.py:12\x1b" in lines("app.py:12", theme, 60)
    assert "vscode://file/srv/x.py:4\x1b" in lines("see /srv/x.py:4", theme, 60)


def test_the_words_of_a_link_lead_where_it_does() -> None:
    assert re.search(
        r"\x1b\]8;id=\d+;https://example.com/x\x1b\\\x1b\[[\d;]*mthe docs",
        lines("See [the docs](https://example.com/x).", LINKED, 60),
    )
