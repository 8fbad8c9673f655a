"""The session as it is used over ssh, in tmux and in GNU screen: as their environments and their bytes have it."""

from __future__ import annotations

import re
import threading
from base64 import b64encode
from collections.abc import Generator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from codex_py import __version__
from tests.repl.conftest import ready_model
from tests.support.fake_responses import added, delta, hang, say
from tests.support.home import Place
from tests.support.process import COMMAND, run
from tests.support.terminal import Terminal

_SSH: Final = {"SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22", "SSH_TTY": "/dev/pts/1"}
_COPY: Final = "\x1b]52;c;" + b64encode(b"copy me").decode() + "\a"
_KEEPER: Final = '#!/bin/sh\necho "$@" > "$KEPT.words"\ncat > "$KEPT"\nexit ${STATUS-0}\n'


def program(directory: Path, *names: str) -> Path:
    """Programs that keep what they are given in the file of `$KEPT`."""
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_text(_KEEPER)
        (directory / name).chmod(0o755)
    return directory


def words(shown: str) -> list[str]:
    return re.findall(r"\bword\d+\b", shown)


@pytest.fixture
def programs() -> Generator[Path]:
    """A directory for programs that is not in a temporary one: those are passed over when we start a program."""
    with TemporaryDirectory(dir=Path(__file__).parents[2] / ".venv") as directory:
        yield Path(directory)


def copied(place: Place, directory: Path, result: str, env: Mapping[str, str]) -> bytes:
    """What the terminal has got after `/copy`, which is to be told in these words."""
    path = f"{program(directory, 'tmux', 'xclip')}:{place.env['PATH']}"
    with ready_model(place, [say("copy me")]):
        there, term = place.with_env(PATH=path, KEPT=str(directory / "kept"), **env), env.get("TERM", "xterm-256color")
        with Terminal(there, "hi", TERM=term) as terminal:
            terminal.wait_for("● copy me").wait_for_prompt().type("/copy")
            terminal.wait_for("1/1").press("enter")
            # This screen shows what is passed on through tmux, so that the line may be wrapped behind it.
            said = f"copied the last answer, 7 characters, {result}"
            terminal.wait_for(lambda now: said in now.text.replace("\n", ""))
            return bytes(terminal.raw)


@pytest.mark.parametrize("sign", ["SSH_CONNECTION", "SSH_TTY"])
def test_a_copy_goes_to_the_clipboard_of_the_user_s_machine(place: Place, programs: Path, sign: str) -> None:
    env = {sign: _SSH[sign], "DISPLAY": ":10"}
    assert _COPY.encode() in copied(place, programs, "through the terminal", env)
    assert not (programs / "kept").exists()


def test_a_copy_in_tmux_goes_through_its_buffer(place: Place, programs: Path) -> None:
    raw = copied(place, programs, "through tmux", {"TMUX": "/tmp/tmux-0/default,1,0"})

    assert b"]52;" not in raw
    assert (programs / "kept").read_text() == "copy me"
    assert (programs / "kept.words").read_text() == "load-buffer -w -\n"


@pytest.mark.parametrize(
    ("env", "sent"),
    [
        ({"TMUX": "/tmp/tmux-0/default,1,0", "STATUS": "1"}, f"\x1bPtmux;\x1b{_COPY}\x1b\\"),
        ({"STY": "1.pts-0.box", "TERM": "screen"}, f"\x1bP{_COPY}\x1b\\"),
        ({**_SSH, "TERM": "tmux-256color"}, f"\x1bPtmux;\x1b{_COPY}\x1b\\{_COPY}"),
    ],
)
def test_a_copy_is_wrapped_for_what_stands_between(
    place: Place, programs: Path, env: dict[str, str], sent: str
) -> None:
    assert sent.encode() in copied(place, programs, "through the terminal", env)


def test_what_the_terminal_answers_late_is_neither_typed_nor_an_escape(place: Place) -> None:
    go_on = threading.Event()
    message = added({"type": "message", "role": "assistant", "content": []})
    with (
        ready_model(place, [message, delta("on my way"), hang(go_on), delta(", done"), say("on my way, done")]),
        Terminal(place.with_env(**_SSH), "go") as terminal,
    ):
        terminal.wait_for("on my way")
        for answer in ("\x1b[24;80R", "\x1b[?62;22c", "\x1b]11;rgb:ffff/ffff/ffff\x1b\\", "\x1bP>|term 1\x1b\\"):
            terminal.type(answer)
        terminal.type("next")
        terminal.wait_for("› next")
        go_on.set()
        terminal.wait_for("● on my way, done").wait_for_prompt()

        assert "› next" in terminal.text


def test_an_escape_over_ssh_stops_the_turn(place: Place) -> None:
    never = threading.Event()
    message = added({"type": "message", "role": "assistant", "content": []})
    with ready_model(place, [message, delta("on my way"), hang(never)]):
        with Terminal(place.with_env(**_SSH), "go") as terminal:
            terminal.wait_for("on my way").press("escape")
            terminal.wait_for("Interrupted.").wait_for_prompt()
        never.set()


def test_without_a_locale_it_speaks_utf_8(place: Place) -> None:
    with ready_model(place, [say("schöne Grüße 日本")]) as model:
        env = {"LANG": "", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        with Terminal(place.with_env(**_SSH, **env), COMMAND, command="/usr/bin/env") as terminal:
            terminal.wait_for_prompt().type("größe")
            terminal.wait_for("› größe").press("enter")
            terminal.wait_for("● schöne Grüße 日本")

    assert model.requests[0].texts("user")[-1] == "größe"


def test_over_ssh_the_first_run_begins_with_a_code(place: Place) -> None:
    place.configure(f'[projects."{place.repo}"]\ntrust_level = "trusted"\n')
    with Terminal(place.with_env(**_SSH)) as terminal:
        terminal.wait_for("❯ d  Sign in with a code").press("escape")
        assert terminal.wait_for_end() == 0


def test_no_terminal_is_reported_with_the_way_to_get_one(place: Place) -> None:
    ended = run(place)

    assert (ended.status, ended.out.splitlines()[0]) == (2, f"codex-py {__version__}: a coding agent for the terminal")
    assert ended.err == (
        "error: stdin is not a terminal; over ssh use `ssh -t HOST codex-py`; in scripts use `codex-py exec`\n"
    )


def test_what_streams_in_is_there_once_after_the_rows_were_wrapped_again(place: Place) -> None:
    go_on = threading.Event()
    text = " ".join(f"word{number}" for number in range(30))
    message = added({"type": "message", "role": "assistant", "content": []})
    with (
        ready_model(place, [message, delta(text), hang(go_on), delta(" end"), say(f"{text} end")]),
        Terminal(place, "go", height=40, TMUX="/tmp/tmux-0/default,1,0") as terminal,
    ):
        terminal.wait_for("word29")
        for width in (60, 45, 30):
            terminal.narrow(width)
            terminal.wait_for(lambda now: words(now.text) == text.split())
        go_on.set()
        terminal.wait_for("end").wait_for_prompt()

        assert words(terminal.whole) == text.split()
