"""`/undo` and `/rewind` in the terminal session."""

from __future__ import annotations

from tests.repl.conftest import Ready
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.terminal import Terminal


def work(command: str) -> list[object]:
    return [call("c", "exec_command", {"cmd": command})]


def test_undo_brings_back_the_files_and_returns_the_message(place: Place, ready: Ready) -> None:
    place.write("a.txt", "one\n")
    script = (work("rm a.txt; echo x > new.txt"), [say("first done")], [say("second done")])
    with FakeResponses(*script, excuse={"threads", "prefix", "replay"}) as model:
        ready(model, 'sandbox_mode = "workspace-write"')
        with Terminal(place, width=100, height=50) as terminal:
            terminal.wait_for_prompt().type("tidy up\r")
            terminal.wait_for("first done").wait_for("1 file changed, 1 deleted · /undo")
            terminal.wait_for_prompt().type("/undo\r")
            terminal.wait_for("brought back: a.txt").wait_for("deleted: new.txt").wait_for("› tidy up")
            assert (place.repo / "a.txt").read_text() == "one\n"
            assert not (place.repo / "new.txt").exists()
            terminal.type(" again\r")
            terminal.wait_for("second done")
            terminal.wait_for_prompt().type("/rewind latest files\r")
            terminal.wait_for("deleted: a.txt")
            assert not (place.repo / "a.txt").exists()
    said = [text for text in model.requests[2].texts("user") if not text.startswith("<")]
    assert said == ["tidy up again"]
