"""Agents as a person at the terminal meets them."""

from __future__ import annotations

import os

from tests.repl.conftest import use_and_trust
from tests.support.agents import cast, run, spawn, wait
from tests.support.fake_responses import say
from tests.support.home import Place
from tests.support.process import is_running
from tests.support.terminal import Terminal


def test_agents_are_on_the_screen_and_one_can_be_stopped(place: Place) -> None:
    for name in ("started", "never"):
        os.mkfifo(place.repo / name)
    parts = {
        "go": [
            [spawn("s1", "look at the parser"), spawn("s2", "look at the server")],
            [wait("w1", "agent-1", timeout_ms=60000), wait("w2", "agent-2", timeout_ms=60000)],
            [say("All heard.")],
        ],
        "look at the parser": [[say("The parser is fine.")]],
        "look at the server": [[run("c1", "echo $$ >started; cat never", yield_time_ms=30000)]],
    }
    with cast(parts) as model:
        use_and_trust(place, model, 'sandbox_mode = "danger-full-access"')
        with Terminal(place, height=40) as terminal:
            terminal.wait_for("Run without a sandbox?").type("y")
            terminal.wait_for_prompt().type("go\r")
            pid = int((place.repo / "started").read_text())
            terminal.wait_for("✓ agent-1 done").wait_for("agent-2 look at the server · echo $$ >started; cat never")
            terminal.type("/ps\r")
            terminal.wait_for("● agent-2: echo $$ >started; cat never").press("escape")
            terminal.wait_until_gone("Running in the background").type("/agents\r")
            terminal.wait_for("agent-2: look at the server")
            terminal.press("down", "enter")
            terminal.wait_for("s  Stop")
            terminal.type("s")
            terminal.wait_for("agent-2: look at the server")
            terminal.press("escape")
            terminal.wait_for(lambda now: "look into it" not in now.text and "All heard." in now.text).wait_for_prompt()
            assert not is_running(pid)
            assert "⊘ agent-2 interrupted" in terminal.whole
            terminal.type("/agents\r")
            terminal.wait_for("agent-1: look at the parser")
            terminal.press("enter")
            terminal.wait_for("agent-1 (done):").wait_for_prompt()
            terminal.type("/status\r")
            terminal.wait_for("2, with").wait_for("tokens of their own").press("escape")
            terminal.wait_until_gone("tokens of their own").type("/quit\r")
            assert terminal.wait_for_end() == 0
