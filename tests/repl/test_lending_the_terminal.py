"""The terminal while other programs use it: a program in front, the shell after Ctrl-Z, whoever comes after a crash."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.repl.conftest import ready_model
from tests.support.fake_responses import say
from tests.support.home import Place
from tests.support.process import COMMAND
from tests.support.terminal import Terminal

_EDITOR = """
trap 'echo stopped by the key > "$1"; exit 0' INT
echo EDITING
while :; do sleep 0.05; done
"""
# A session like any other, but for a bug that shows when the model has answered.
_CRASH = """
import asyncio, os, sys
from pathlib import Path
from codex_py.cli.repl import terminal_parser
from codex_py.cli.options import config_request, load_settings
from codex_py.core.session_request import SessionRequest
from codex_py.ui.repl.app import FrontEnd
from codex_py.config.tui import read_tui
from codex_py.ui.repl.launch import LaunchContext, LaunchOptions
from codex_py.ui.repl.screen_session import ScreenSessions

given, home, cwd = terminal_parser().parse_args([]), Path(os.environ["CODEX_HOME"]), Path.cwd()
loaded = load_settings(given, home, cwd)
request = config_request(given, home, cwd)
tui = read_tui(loaded.config.tui, os.environ)
place = LaunchContext(home=home, cwd=cwd, env=os.environ, loaded=loaded, tui=tui, request=request)

def break_down():
    raise ZeroDivisionError("a bug")

class Broken(FrontEnd):
    has_worked = False

    def note_working(self, *, working, asking=False):
        super().note_working(working=working, asking=asking)
        if self.has_worked and not working:
            asyncio.get_running_loop().call_soon(break_down)
        self.has_worked = self.has_worked or working

class Host:
    is_ephemeral = True
    waives_sandbox = False

    def rewinds(self):
        raise AssertionError("nothing is rewound here")

    def prepare(self, place, target):
        return SessionRequest(loaded=loaded, home=home, cwd=cwd, env=os.environ, originator="test",
                              approval="never", ephemeral=True, can_ask=True)

front = Broken(place)
sys.exit(asyncio.run(front.run(lambda: ScreenSessions(front, Host()).run(LaunchOptions("go")))))
"""


def test_a_crash_gives_the_terminal_back(place: Place) -> None:
    python = sys.executable
    script = place.codex_home / "crash.py"
    script.write_text(_CRASH)
    with ready_model(place, [say("hello")]):
        shell = (
            f'before=$(stty -g); {python} {script}; echo "status $?"; test "$before" = "$(stty -g)" && echo as before'
        )
        with Terminal(place, "-c", shell, command="/bin/bash") as terminal:
            assert terminal.wait_for_end() == 0

            assert "ZeroDivisionError: a bug" in terminal.whole
            assert terminal.rows[terminal.cursor[0] - 2 : terminal.cursor[0]] == ["status 1", "as before"]
            for given_back in (b"\x1b[?1004l", b"\x1b[?2004l", b"\x1b[?25h", b"\x1b[?2026l"):
                assert terminal.raw.rfind(given_back) > terminal.raw.rfind(given_back[:-1] + _opposite(given_back))


def test_ctrl_c_in_the_editor_is_the_editor_s(place: Place) -> None:
    editor = place.codex_home / "editor.sh"
    editor.write_text(_EDITOR)
    with ready_model(place), Terminal(place, EDITOR=f"sh {editor}") as terminal:
        terminal.wait_for_prompt().press("ctrl-g")
        terminal.wait_for("EDITING").press("ctrl-c")
        terminal.wait_for("› stopped by the key").press("ctrl-c")
        terminal.wait_for_prompt().press("ctrl-d")

        assert terminal.wait_for_end() == 0


def test_an_editor_is_not_informed_of_the_window_s_focus(place: Place) -> None:
    with ready_model(place), Terminal(place, EDITOR="sh -c 'echo EDITING'") as terminal:
        terminal.wait_for_prompt().press("ctrl-g")
        terminal.wait_for(lambda shown: bytes(shown.raw).count(b"\x1b[?1004h") == 2)

        off, on = terminal.raw.rfind(b"\x1b[?1004l"), terminal.raw.rfind(b"\x1b[?1004h")
        assert off < terminal.raw.find(b"EDITING") < on

        terminal.wait_for_prompt().press("ctrl-d")
        assert terminal.wait_for_end() == 0


def test_ctrl_z_goes_back_to_the_shell_until_it_is_wanted_again(place: Place) -> None:
    with (
        ready_model(place),
        Terminal(place, "--norc", "--noprofile", "-i", command="/bin/bash", PS1="shell> ") as terminal,
    ):
        terminal.wait_for("shell>").type(f"{COMMAND}\r")
        terminal.wait_for_prompt().type("not yet sent")
        terminal.wait_for("› not yet sent").press("ctrl-z")
        terminal.wait_for("Stopped").type("fg\r")
        terminal.wait_for("› not yet sent").press("ctrl-c", "ctrl-c")
        terminal.wait_for(lambda shown: shown.rows[shown.cursor[0]] == "shell>")


def test_a_draft_lies_in_our_home_for_as_long_as_it_is_edited(place: Place) -> None:
    seen, own_tmp = place.home / "seen", place.home / "tmp"
    own_tmp.mkdir()
    editor = place.home / "editor.sh"
    editor.write_text(f'stat -c "%a %n" "$1" "$(dirname "$1")" > {seen}; printf "written" > "$1"\n')
    with (
        ready_model(place, [say("read")]),
        Terminal(place.with_env(TMPDIR=str(own_tmp)), EDITOR=f"sh {editor}") as terminal,
    ):
        terminal.wait_for_prompt().press("ctrl-g")
        terminal.wait_for("› written").press("enter")
        terminal.wait_for("● read").wait_for_prompt()

        file, directory = (line.split(" ", 1) for line in seen.read_text().splitlines())
        assert (file[0], directory) == ("600", ["700", str(place.codex_home / "drafts")])
        assert Path(file[1]).parent == place.codex_home / "drafts"
        assert list((place.codex_home / "drafts").iterdir()) == []
        assert list(own_tmp.iterdir()) == []


def _opposite(sequence: bytes) -> bytes:
    return b"l" if sequence.endswith(b"h") else b"h"
