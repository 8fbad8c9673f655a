from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from prompt_toolkit.styles import Style as PromptToolkitStyle
from prompt_toolkit.styles import default_ui_style, merge_styles
from rich.cells import cell_len
from rich.text import Text

from codex_py.errors import UserError
from codex_py.protocol.policy import DangerFullAccess, WorkspaceWrite
from codex_py.protocol.status import ContextSection, ContextUse
from codex_py.render.entry import to_fragments, to_lines
from codex_py.render.message import render_context, shares
from codex_py.render.status import Banner, Status, banner_lines, describe_tokens, status_segments
from codex_py.render.theme import THEME_NAMES, Theme, detect_theme, find_theme
from codex_py.text.display import cell_width, cut_to_cells
from tests.support.drawing import DARK, MONO, rows, uncoloured

HOME = Path("/home/me")
FULL = Status("gpt-5", HOME / "work/project", "workspace-write", "high", 0.73, "main", False, HOME)


def shown(status: Status, width: int) -> str:
    return "".join(text for text, _ in status_segments(status, width))


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (80, "gpt-5 high · 73% context left · ~/work/project · main · workspace-write"),
        (60, "gpt-5 high · 73% left · project · main · workspace-write"),
        (50, "gpt-5 high · 73% left · project · workspace-write"),
        (24, "gpt-5 high · 73% left"),
        (12, "gpt-5 high"),
        (4, "gpt…"),
        (1, "…"),
        (0, ""),
    ],
)
def test_the_status_line_gives_up_what_matters_least(width: int, expected: str) -> None:
    assert shown(FULL, width) == expected


def test_the_effort_makes_room_for_the_rest() -> None:
    expected = "gpt-5 · 73% left · project · main · workspace-write"
    assert shown(FULL, len(expected)) == expected


def test_the_status_line_tells_only_what_is_known() -> None:
    assert shown(Status("m", Path("/srv"), "read-only"), 80) == "m · /srv · read-only"


def test_what_is_dangerous_stands_out() -> None:
    status = FULL.replace(plan=True, context_left=0.05, sandbox="danger-full-access", branch="\x1b[31mx")
    parts = status_segments(status, 200)
    assert [part for part in parts if part[1] != "status"] == [
        ("plan mode", "status.mode"),
        ("5% context left", "status.low"),
        ("no sandbox", "status.low"),
    ]
    assert ("␛[31mx", "status") in parts


def test_commands_in_the_background_are_counted() -> None:
    assert shown(FULL.replace(running=2), 90).startswith("gpt-5 high · 2 running · /ps · 73%")


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0"), (999, "999"), (1000, "1k"), (12_345, "12.3k"), (999_960, "1M"), (1_250_000, "1.2M")],
)
def test_tokens_in_few_letters(count: int, expected: str) -> None:
    assert describe_tokens(count) == expected


def test_the_banner_says_what_a_session_runs_with() -> None:
    banner = Banner(
        "1.2",
        "gpt-5",
        "openai",
        HOME / "project",
        WorkspaceWrite(),
        "on-request",
        "high",
        3,
        warnings=("skill `a`\nnot loaded\x1b[2J",),
        home=HOME,
    )
    assert [uncoloured(line) for line in banner_lines(banner, width=60, theme=DARK)] == [
        "codex-py 1.2",
        "model     gpt-5 · high · openai",
        "directory ~/project",
        "sandbox   workspace-write [workdir, /tmp, $TMPDIR]",
        "approval  on-request",
        "skills    3 found",
        "! skill `a` not loaded␛[2J",
    ]
    for width in (1, 5, 11, 20):
        narrow = banner_lines(banner.replace(sandbox=DangerFullAccess()), width=width, theme=MONO)
        assert max(cell_len(uncoloured(line)) for line in narrow) <= width


def test_banner_and_status_are_drawn_without_rich() -> None:
    modules = "codex_py.render.status, codex_py.render.status, codex_py.render.theme, codex_py.render.plain"
    script = f"import sys, {modules}; print({{'rich', 'prompt_toolkit', 'pygments', 'markdown_it'}} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "set()\n"


def test_the_context_is_a_bar_and_a_list() -> None:
    parts = (ContextSection("base", 4000), ContextSection("tools", 6000), ContextSection("agents_md", 10))
    use = ContextUse(parts, 10_010, 20_000, 18_000, False)
    assert rows(render_context(use), 44) == [
        "≡ Context · ≈ 10,010 tokens of 20k · 50%",
        "  left · compacts at 18k",
        "  " + "█" * 8 + "▓" * 12 + "▒" + "·" * 19,
        "  █ base instructions          4k  20.0%",
        "  ▓ tools                      6k  30.0%",
        "  ▒ AGENTS.md                  10   0.1%",
        "  · free                      10k  50.0%",
    ]
    assert len(rows(render_context(ContextUse((), 0, None, None, True)), 3)) > 0


@pytest.mark.parametrize(
    ("amounts", "whole", "width", "expected"),
    [
        ([1, 1, 1], 1000, 10, [1, 1, 1]),
        ([500, 500], 1000, 10, [5, 5]),
        ([1000, 1, 1, 1], 1003, 10, [7, 1, 1, 1]),
        ([1] * 5, 5, 3, [0, 0, 1, 1, 1]),
        ([0, 10], 10, 4, [0, 4]),
        ([], 1, 10, []),
    ],
)
def test_every_part_gets_a_cell_as_long_as_there_are_enough(
    amounts: list[int], whole: int, width: int, expected: list[int]
) -> None:
    assert shares(amounts, whole, width) == expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"TERM": "xterm-256color"}, Theme("dark", "256")),
        ({"TERM": "xterm"}, Theme("dark", "16")),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, Theme("dark", "truecolor")),
        ({"TERM": "xterm", "COLORFGBG": "0;15"}, Theme("light", "16")),
        ({"TERM": "xterm", "COLORFGBG": "15;0"}, Theme("dark", "16")),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, Theme("mono", "none")),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, Theme("mono", "none")),
        ({}, Theme("mono", "none")),
    ],
)
def test_the_theme_follows_the_terminal(env: dict[str, str], expected: Theme) -> None:
    assert detect_theme(env) == expected
    assert find_theme("auto", env) == expected


def test_a_theme_is_asked_for_by_name() -> None:
    env = {"TERM": "xterm-256color"}
    assert find_theme("light", env) == Theme("light", "256")
    assert find_theme("mono", env) == Theme("mono", "none")
    assert find_theme("light", {**env, "NO_COLOR": "1"}) == Theme("mono", "none")
    with pytest.raises(UserError) as caught:
        find_theme("pink", env)
    assert str(caught.value) == "no theme `pink`"


@pytest.mark.parametrize("name", [name for name in THEME_NAMES if name != "auto"])
def test_every_style_is_understood_everywhere(name: str) -> None:
    theme = Theme(name, "truecolor")
    PromptToolkitStyle.from_dict(dict(theme.prompt_toolkit_styles()))
    for style in theme.styles():
        assert uncoloured(to_lines(Text("x", style), width=5, theme=theme)[0]) == "x"
        assert to_fragments(Text("x", style), width=5, theme=theme)[0][0][1] == "x"
        assert uncoloured(theme.paint("x", style)) == "x"


def test_nothing_of_the_looks_of_prompt_toolkit_shines_through() -> None:
    merged = merge_styles([default_ui_style(), PromptToolkitStyle.from_dict(dict(DARK.prompt_toolkit_styles()))])
    for name, style in DARK.styles().items():
        attributes = merged.get_attrs_for_style_str(f"class:{name}")
        assert bool(attributes.bgcolor) == ("on " in style), name


def test_without_colours_there_are_none() -> None:
    for style in MONO.styles():
        codes = to_lines(Text("x", style), width=5, theme=MONO)[0] + MONO.paint("x", style)
        assert not {"3", "4"} & {code[0] for code in codes.split("\x1b[") if code[1:2].isdigit()}


def test_the_same_style_everywhere() -> None:
    text = Text.assemble(("a", "accent"), ("b", "diff.add.ground"), ("c", "status.low"))
    assert to_lines(text, width=9, theme=DARK) == [
        "\x1b[38;5;80ma\x1b[0m\x1b[38;5;255;48;5;22mb\x1b[0m\x1b[1;38;5;203mc\x1b[0m"
    ]
    assert to_lines(text, width=9, theme=Theme("dark", "16")) == ["\x1b[36ma\x1b[0mb\x1b[1;31mc\x1b[0m"]
    assert to_fragments(text, width=9, theme=DARK) == [
        [("#5fd7d7", "a"), ("#eeeeee bg:#005f00", "b"), ("bold #ff5f5f", "c")]
    ]
    assert DARK.paint("a", "accent") == "\x1b[38;5;80ma\x1b[0m"


def test_no_line_ends_in_spaces_or_leaves_its_style_on() -> None:
    lines = to_lines(Text("a  \n\n  b \nccc ddd", "accent"), width=4, theme=DARK)
    assert lines == [
        "\x1b[38;5;80ma\x1b[0m",
        "",
        *(f"\x1b[38;5;80m{text}\x1b[0m" for text in ("  b", "ccc", "ddd")),
    ]


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("你好", 4), ("e\u0301", 1), ("👩\u200d👧", 2), ("❤\ufe0f", 2), ("❤", 1), ("", 0), ("مرحبا", 5)],
)
def test_the_width_of_a_text(text: str, width: int) -> None:
    assert cell_width(text) == width


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abcd", 4, "abcd"), ("abcd", 3, "ab…"), ("你好", 3, "你…"), ("你好", 2, "…"), ("ab", 1, "…"), ("ab", 0, "")],
)
def test_a_text_is_cut_to_its_cells(text: str, width: int, expected: str) -> None:
    assert cut_to_cells(text, width) == expected
