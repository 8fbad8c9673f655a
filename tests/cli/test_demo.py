"""`codex-py --demo`: the recorded session of the README, played in a terminal and printed everywhere else."""

from __future__ import annotations

import signal

import pytest

from tests.support.home import Place
from tests.support.process import run
from tests.support.terminal import Terminal

_END = "For a session of your own: codex-py"


def files_of(place: Place) -> list[str]:
    return sorted(str(path) for path in place.home.rglob("*"))


def test_a_pipe_gets_the_whole_text_without_escape_sequences(place: Place) -> None:
    ended = run(place, "--demo")

    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith("A recorded session: nothing runs, and nothing is sent.\n\ncodex-py ")
    assert "› $bug-hunt a parcel of 1.2 kg is billed as 1 kg\n" in ended.out
    assert "return math.ceil(self.grams / 1000)\n" in ended.out
    assert "  1.2 kg    1 kg  2 kg\n" in ended.out
    assert ended.out.endswith(f"\n\nThe recording ends here. {_END}\n")
    assert "\x1b" not in ended.out and max(map(len, ended.out.splitlines())) <= 80


def test_it_needs_no_configuration_and_no_home_and_writes_nothing(place: Place) -> None:
    place.configure("this is [ not TOML")
    before = files_of(place)
    broken = run(place, "--demo")
    missing = run(place.with_env(CODEX_HOME=str(place.home / "nowhere"), HOME="/nowhere"), "--demo")

    assert broken.status == missing.status == 0
    assert broken.out == missing.out
    assert files_of(place) == before


@pytest.mark.parametrize("width", [20, 40, 100])
def test_a_terminal_plays_it_at_its_own_width(place: Place, width: int) -> None:
    before = files_of(place)
    with Terminal(place, "--demo", width=width) as terminal:
        terminal.wait_for("A recorded")
        terminal.type(" ")

        assert terminal.wait_for_end() == 0
        whole = terminal.whole
    assert "› $bug-hunt" in whole and "2.0 kg" in whole
    assert "Working" not in whole
    assert files_of(place) == before


@pytest.mark.parametrize(("key", "status"), [("ctrl-c", 130), ("escape", 0), ("ctrl-d", 0)])
def test_a_key_ends_it_and_the_terminal_is_as_before(place: Place, key: str, status: int) -> None:
    with Terminal(place, "--demo") as terminal:
        terminal.wait_for("$bug")
        terminal.press(key)

        assert terminal.wait_for_end() == status
        assert _END not in terminal.whole
        assert bytes(terminal.raw).rindex(b"\x1b[?25h") > bytes(terminal.raw).rindex(b"\x1b[?25l")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it(place: Place, number: int, status: int) -> None:
    with Terminal(place, "--demo") as terminal:
        terminal.wait_for("$bug")
        terminal.child.kill(number)

        assert terminal.wait_for_end() == status


def test_a_plain_terminal_gets_the_text_at_once(place: Place) -> None:
    with Terminal(place, "--demo", TERM="dumb", width=100) as terminal:
        assert terminal.wait_for_end() == 0
        assert _END in terminal.whole
        assert b"\x1b" not in bytes(terminal.raw)


def test_a_light_terminal_gets_colours_for_a_light_background(place: Place) -> None:
    light = {"\x1b]11;?\x1b\\": "\x1b]10;rgb:2222/2222/2222\x1b\\\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c"}
    with Terminal(place, "--demo", answers=light) as terminal:
        terminal.wait_for("› $bug")

        assert terminal.style_of("› $bug").fg == "005f87"


@pytest.mark.parametrize("arguments", [("--demo", "hello"), ("--demo", "--offline"), ("--offline", "--demo")])
def test_it_takes_no_arguments(place: Place, arguments: tuple[str, ...]) -> None:
    ended = run(place, *arguments)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("error: `--demo` takes no ") and ended.err.count("\n") == 1


def test_the_help_names_it(place: Place) -> None:
    assert "  --demo " in run(place, "--help").out
    assert run(place, "--demo", "--help").out == run(place, "--help").out
