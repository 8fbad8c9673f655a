"""The output of commands as the model reads it: what a command left behind may finish, progress bars cost one line."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, Request, call, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.process import run
from tests.unit.command_builders import is_alive, output_of, session_id_of

STOPPED = (
    "\nProcesses in the background are stopped with their command. To keep a process running, start it without `&` in "
    "an `exec_command` of its own, which leaves it running as a session. Stopped: {}\n"
)

FULL = "danger-full-access"
BAR = b"".join(b"\r%3d%%|%-40b|" % (n // 30, b"#" * (n // 75)) for n in range(3001)) + b"\n"


def replies(place: Place, *commands: str, sandbox: str = "workspace-write", **arguments: Any) -> list[str]:
    """What the model reads of each command."""
    fields = {"login": False, "yield_time_ms": 30_000, **arguments}
    calls = [call(f"c{n}", "exec_command", {"cmd": command, **fields}) for n, command in enumerate(commands)]
    with FakeResponses(*([one] for one in calls), [say("done")]) as model:
        place.use_model(model.base_url)
        ended = run(place, "exec", "-s", sandbox, "go")
        assert ended.status == 0, ended.err
    return [model.requests[-1].output_of(f"c{n}") for n in range(len(commands))]


def outputs(place: Place, *commands: str, sandbox: str = "workspace-write", **arguments: Any) -> list[str]:
    return [output_of(text) for text in replies(place, *commands, sandbox=sandbox, **arguments)]


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write", "danger-full-access"])
def test_a_process_that_a_command_leaves_may_finish_its_output(place: Place, sandbox: str) -> None:
    command = "seq 1 20000 > >(tee /dev/null); exit 3"
    whole = "Process exited with code 3\nOriginal token count: 27224\n"
    assert [whole in text for text in replies(place, *[command] * 30, sandbox=sandbox, max_output_tokens=10)] == [
        True
    ] * 30


def test_output_is_read_while_it_comes_where_there_is_no_sandbox(place: Place) -> None:
    [text] = outputs(place, "{ timeout 0.1 yes; echo end; } & echo up", sandbox=FULL, max_output_tokens=100)
    assert text.endswith("end\n")


def test_a_process_that_a_command_leaves_may_finish_its_files(place: Place) -> None:
    commands = [f"seq 1 20000 > >(sort -n > log{n})" for n in range(30)]
    assert outputs(place, *commands) == [""] * 30
    sizes = {(place.repo / f"log{n}").stat().st_size for n in range(30)}
    assert sizes == {sum(len(str(number)) + 1 for number in range(1, 20_001))}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("sleep 600 &", "sleep"),
        ("nohup sleep 600 > /dev/null 2>&1 &", "sleep"),
        ("setsid sleep 600 > log 2>&1 &", "sleep"),
        ("sleep 600 & disown", "sleep"),
        ("(sleep 600 &)", "sleep"),
        ("sleep 600 & tail -f /dev/null &", "sleep, tail"),
        ("yes > /dev/null &", "yes"),
        ("sh -c 'exec sleep 600' > >(cat) &", "sleep, cat"),
    ],
)
def test_the_model_reads_that_background_processes_are_stopped(place: Place, command: str, names: str) -> None:
    [text] = replies(place, f"{command}\necho up; exit 4")
    assert output_of(text) == "up\n" + STOPPED.format(names)
    assert "Process exited with code 4" in text


@pytest.mark.parametrize("command", ["true", "sleep 0.01 & wait", "kill -9 $$", "echo x | cat >&2", "nosuch"])
def test_nothing_is_said_of_a_command_that_leaves_nothing(place: Place, command: str) -> None:
    assert "background" not in outputs(place, command)[0]


def test_without_a_sandbox_a_background_process_goes_on_until_the_session_ends(place: Place) -> None:
    first, second = outputs(place, "sleep 600 & echo $! | tee pid", "kill -0 $(cat pid) && echo goes on", sandbox=FULL)
    assert (first.strip().isdigit(), second) == (True, "goes on\n")
    assert not is_alive(int(first))


# What a program prints, and what the model reads of it.
LINES: dict[str, tuple[bytes, bytes]] = {
    "frames": (BAR, b"100%|" + b"#" * 40 + b"|\n"),
    "frames-that-end-with-it": (b"".join(b"%d%%\r" % n for n in range(3000)) + b"end\ndone\n", b"end9%\ndone\n"),
    "one": (b"old\rnew\nnext\n", b"old\rnew\nnext\n"),
    "line-ends": (b"a\r\nb\r\n\r\nc\r\n", b"a\r\nb\r\n\r\nc\r\n"),
    "one-and-a-line-end": (b"a\rb\r\nc\n", b"a\rb\r\nc\n"),
    "frames-and-a-line-end": (b"1\r2\r3\r\nc\n", b"3\r\nc\n"),
    "shorter": (b"99% of 12 MB\r100%\rdone\n", b"doneof 12 MB\n"),
    "blanked": (b"99% of 12 MB\r            \rdone\n", b"done\n"),
    "erased": (b"\r\x1b[K1 of 2\r\x1b[K2\r\x1b[Kend\n", b"end\n"),
    "erased-whole": (b"\x1b[2K\r1 of 2\x1b[2K\r2\x1b[2K\rend\n", b"end\n"),
    "columns": (b"\x1b[1G\x1b[0Kone two\x1b[1G\x1b[0Kthree\n", b"three\n"),
    "backspaces": (b"wait |\b/\b-\b\\\b|\b \bok\n", b"wait ok\n"),
    "colours": (b"\x1b[31m1%\x1b[0m\r\x1b[32m2%\x1b[0m\r\x1b[1m3%\x1b[0m!\n", b"3%!\n"),
    "colours-alone": (b"\x1b[31mred\x1b[0m\n", b"\x1b[31mred\x1b[0m\n"),
    "letters": ("é1\ré2\r日3\n".encode(), "日3\n".encode()),
    "unfinished": (b"1%\r2%\r3%", b"3%"),
    "many-lines": (b"first\n1\r2\r3\nx\ry\n4\r5\r6\nlast\n", b"first\n3\nx\ry\n6\nlast\n"),
}


def test_a_line_that_was_written_over_is_read_as_a_terminal_shows_it(place: Place) -> None:
    for name, (printed, _) in LINES.items():
        place.write(f"{name}.out", printed)
    read = dict(zip(LINES, outputs(place, *(f"cat {name}.out" for name in LINES)), strict=True))
    assert read == {name: shown.decode() for name, (_, shown) in LINES.items()}


def test_it_does_not_matter_in_which_pieces_it_is_printed(place: Place) -> None:
    script = "import os, sys\nfor byte in open(sys.argv[1], 'rb').read(): os.write(1, bytes([byte]))\n"
    place.write("slow.py", script)
    for name, (printed, _) in LINES.items():
        place.write(f"{name}.out", printed)
    names = [name for name in LINES if name != "frames"]
    read = outputs(place, *(f"{sys.executable} -S slow.py {name}.out" for name in names))
    assert dict(zip(names, read, strict=True)) == {name: LINES[name][1].decode() for name in names}


def test_a_progress_bar_does_not_push_other_lines_out(place: Place) -> None:
    """It is shown before the output is shortened, and where it is too long to be kept in memory."""
    place.write("bar", b"first\n" + BAR * 30 + b"last\n")
    [text] = replies(place, "cat bar", max_output_tokens=500)
    assert output_of(text) == f"first\n{LINES['frames'][1].decode() * 30}last\n"
    place.write("endless", b"first\n" + BAR.rstrip() * 30 + b"\nlast\n")
    assert outputs(place, "cat endless", max_output_tokens=50) == [f"first\n{LINES['frames'][1].decode()}last\n"]


def test_a_progress_bar_on_a_terminal_is_read_at_each_look(place: Place) -> None:
    os.mkfifo(place.repo / "go")
    place.write("bar", BAR)
    begun = {"cmd": "head -c 20000 bar; read x < go; tail -c +20001 bar", "tty": True, "yield_time_ms": 250}

    def look(request: Request) -> list[dict[str, Any]]:
        (place.repo / "go").write_text("on\n")
        return [call("c2", "write_stdin", {"session_id": session_id_of(request.output_of("c1"))})]

    with FakeResponses([call("c1", "exec_command", {**begun, "login": False})], look, [say("done")]) as model:
        place.use_model(model.base_url)
        assert run(place, "exec", "-s", FULL, "go").status == 0
    first, rest = (output_of(model.requests[-1].output_of(name)) for name in ("c1", "c2"))
    assert (first.count("|"), rest) == (2, f"{LINES['frames'][1].decode().rstrip()}\r\n")


def test_context_from_a_hook_has_one_line_for_a_progress_bar(place: Place) -> None:
    place.write("bar", BAR)
    use_hooks(place, UserPromptSubmit=[entry("cat bar")])
    with FakeResponses([say("done")]) as model:
        place.use_model(model.base_url)
        assert run(place, "exec", "go").status == 0
    [context] = [
        text for text in model.requests[0].texts("developer") + model.requests[0].texts("user") if "100%" in text
    ]
    assert context.count("#") == 40
