"""What a session asks of its terminal: the colours, focus reports, keys told apart; and that it gives it all back."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.repl.conftest import ready_model
from tests.support.fake_responses import custom_call, say
from tests.support.home import Place
from tests.support.process import COMMAND
from tests.support.terminal import Terminal

ASK = "\x1b]11;?\x1b\\"
WHITE = "\x1b]10;rgb:0000/0000/0000\x1b\\\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;22c"
BLACK = "\x1b]10;rgb:ffff/ffff/ffff\x1b\\\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62;22c"
PATCH = "*** Begin Patch\n*** Update File: README.md\n@@\n-# Demo\n+# Changed title\n*** End Patch\n"


def light_of(color: str) -> float:
    return sum(int(color[at : at + 2], 16) for at in (0, 2, 4)) / 3


def test_a_light_terminal_is_drawn_in_dark_letters(place: Place) -> None:
    with (
        ready_model(place, [custom_call("c1", "apply_patch", PATCH)], [say("done")]),
        Terminal(place, "go", answers={ASK: WHITE}, COLORTERM="truecolor") as terminal,
    ):
        terminal.wait_for("● done").wait_for_prompt()

        assert light_of(terminal.style_of("? help").fg) < 128
        for row in ("Changed", "go"):
            shown = terminal.style_of(row)
            assert light_of(shown.fg) < 100
            assert light_of(shown.bg) > 200
        assert "]11" not in terminal.whole
        assert "rgb:" not in terminal.whole


def test_a_dark_terminal_wins_over_what_the_environment_says(place: Place) -> None:
    with ready_model(place, [say("done")]), Terminal(place, "go", answers={ASK: BLACK}, COLORFGBG="0;15") as terminal:
        terminal.wait_for("● done").wait_for_prompt()
        assert light_of(terminal.style_of("? help").fg) > 128


def test_the_theme_setting_wins_over_the_terminal(place: Place) -> None:
    with ready_model(place, tables='[tui]\ntheme = "dark"\n'), Terminal(place, answers={ASK: WHITE}) as terminal:
        terminal.wait_for_prompt()
        assert light_of(terminal.style_of("? help").fg) > 128


def test_a_change_of_the_colour_scheme_is_followed(place: Place) -> None:
    with ready_model(place), Terminal(place, answers={ASK: BLACK}) as terminal:
        terminal.wait_for_prompt()
        assert b"\x1b[?2031h" in terminal.raw
        terminal.answers[ASK.encode()] = WHITE
        terminal.type("\x1b[?997;2n")
        terminal.wait_for(lambda _: light_of(terminal.style_of("? help").fg) < 128)
        assert "997" not in terminal.whole


def test_modes_are_on_only_while_nothing_is_echoed(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        shown = bytes(terminal.raw)
        # Bracketed paste is switched on by the first drawing, in raw mode.
        assert shown.index(b"\x1b[?2004h") < shown.index(b"\x1b[?1004h")
        terminal.press("focus-out", "focus-in", "ctrl-d")
        assert terminal.wait_for_end() == 0
        assert "[O" not in terminal.whole
        assert "[I" not in terminal.whole


@pytest.mark.parametrize("way_out", ["ctrl-d", "signal", "/quit"])
def test_keys_are_as_before_on_every_way_out(place: Place, way_out: str) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        if way_out == "signal":
            terminal.child.kill(15)
        elif way_out == "/quit":
            terminal.type("/quit")
            terminal.wait_for("› /quit").press("enter")
        else:
            terminal.press(way_out)
        terminal.wait_for_end()
        assert terminal.raw.count(b"\x1b[>1u") == terminal.raw.count(b"\x1b[<u") == 1
        assert terminal.raw.rindex(b"\x1b[>4m") > terminal.raw.rindex(b"\x1b[>4;1m")
        assert terminal.raw.rindex(b"\x1b[?1004l") > terminal.raw.rindex(b"\x1b[?1004h")


@pytest.mark.parametrize("shift_enter", ["\x1b[13;2u", "\x1b[27;2;13~", "\x1b\r", "\n"])
def test_shift_enter_begins_a_new_line(place: Place, shift_enter: str) -> None:
    with ready_model(place, [say("two lines")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type(f"one{shift_enter}two")
        terminal.wait_for("  two").press("enter")
        terminal.wait_for("● two lines")
    assert model.requests[0].texts("user")[-1] == "one\ntwo"


def test_the_keys_of_kittys_protocol_do_what_they_did(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().type("$$no such thing")
        terminal.wait_for("no such thing").type("\x1b[97;5u" + "x" + "\x1b[101;5u" + "y")
        terminal.wait_for("x$$no such thingy").type("\x1b[117;5u")
        terminal.wait_until_gone("thingy").type("/sta")
        terminal.wait_for("the session, its").type("\x1b[27u")
        terminal.wait_until_gone("the session, its")


@pytest.mark.skipif(shutil.which("seq") is None, reason="needs seq")
def test_piped_input_is_one_attachment_to_the_prompt(place: Place) -> None:
    with (
        ready_model(place, [say("five of them")], [say("and more")]) as model,
        Terminal(place, "-c", f"seq 1 5 | {COMMAND} 'count these'", command="/bin/sh") as terminal,
    ):
        terminal.wait_for("● five of them").wait_for_prompt()
        assert "› count these [stdin · 5 lines]" in terminal.whole
        terminal.type("go on")
        terminal.press("enter")
        terminal.wait_for("● and more")
    assert len(model.requests) == 2
    assert model.requests[0].texts("user")[-1] == "count these\n\n<stdin>\n1\n2\n3\n4\n5\n</stdin>"


@pytest.mark.parametrize("flags", ["", "-m gpt-5.5"])
def test_piped_input_without_a_prompt_is_one_error(place: Place, flags: str) -> None:
    with (
        ready_model(place) as model,
        Terminal(place, "-c", f"seq 1 5 | {COMMAND} {flags}", command="/bin/sh") as terminal,
    ):
        assert terminal.wait_for_end() == 2
        assert len(re.findall("error:", terminal.whole)) == 1
        assert terminal.whole.lstrip().startswith("error: stdin is not a terminal")
    assert not model.requests
