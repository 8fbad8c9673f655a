"""Calls of tools as a person sees them: diffs of several files, output of failures, here-documents, retries."""

from __future__ import annotations

from tests.repl.conftest import ready_model
from tests.support.fake_responses import call, custom_call, say
from tests.support.home import Place
from tests.support.terminal import Terminal


def rows_with(terminal: Terminal, text: str) -> list[str]:
    return [row for row in terminal.whole.split("\n") if text in row]


def test_of_a_folded_diff_each_file_has_its_share_from_its_first_change(place: Place) -> None:
    place.write("late.py", "".join(f"same_{number}\n" for number in range(40)))
    context = "".join(f" same_{number}\n" for number in range(30, 33))
    added = "".join(f"+new_{number}\n" for number in range(60))
    change = f"*** Begin Patch\n*** Add File: long.py\n{added}*** Update File: late.py\n@@\n{context}"
    change += "-same_33\n+other_33\n*** Add File: last.py\n+the_last\n*** End Patch\n"
    with (
        ready_model(place, [custom_call("c1", "apply_patch", change)], [say("done here")]),
        Terminal(place, "go", width=100, height=50) as terminal,
    ):
        terminal.wait_for("● done here").wait_for_prompt()
        seen = terminal.whole
    for name, first in (("long.py", "1 + new_0"), ("late.py", "34 - same_33"), ("last.py", "1 + the_last")):
        assert name in seen
        assert first in seen
    assert "new_59" not in seen
    assert "same_0\n" not in seen


def test_what_a_failed_command_printed_keeps_its_indentation(place: Place) -> None:
    fails = "printf 'def f():\\n    return x\\n        ^\\nNameError\\nlast line\\n' >&2; exit 3"
    with (
        ready_model(place, [call("c1", "exec_command", {"cmd": fails})], [say("I see")]),
        Terminal(place, "go", width=100, height=30) as terminal,
    ):
        terminal.wait_for("● I see").wait_for_prompt()
        assert "· exit 3 ·" in terminal.whole
        for line in ("│ def f():", "│     return x", "│         ^", "│ NameError", "│ last line"):
            assert rows_with(terminal, line), terminal.whole
        # A line more takes no more room than a note about it.
        assert "1 more line" not in terminal.whole


def test_a_here_document_shows_its_first_lines(place: Place) -> None:
    script = "".join(f"value_{number} = {number}\n" for number in range(20))
    with (
        ready_model(place, [call("c1", "exec_command", {"cmd": f"python3 - <<'EOF'\n{script}EOF"})], [say("ran")]),
        Terminal(place, "go", width=100, height=30) as terminal,
    ):
        terminal.wait_for("● ran").wait_for_prompt()
        assert rows_with(terminal, "$ python3 - <<'EOF'")
        assert rows_with(terminal, "value_0 = 0")
        assert rows_with(terminal, "… 14 more lines")
        assert not rows_with(terminal, "value_19")
