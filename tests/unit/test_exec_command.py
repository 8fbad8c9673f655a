"""`exec_command` and `write_stdin` as the model meets them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.events import CommandFinished, CommandStarted, FileChange, PatchFinished
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import ReadOnly, WorkspaceWrite
from codex_py.protocol.questions import ApprovalQuestion, Question
from codex_py.tools.exec_command import ExecCommand
from tests.unit.command_builders import Session, is_alive, output_of, reply, session_id_of

BROKEN = "failed to parse function arguments"


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(tmp_path)
    yield made
    await made.processes.kill_all()


async def test_output_arrives_merged_with_the_exit_code(session: Session) -> None:
    assert await session.exec("echo out; echo err >&2; exit 3") == reply("out\nerr\n", 3)
    assert session.events == [
        CommandStarted("call_1", "/bin/bash -c 'echo out; echo err >&2; exit 3'", session.cwd),
        CommandFinished(
            "call_1",
            "/bin/bash -c 'echo out; echo err >&2; exit 3'",
            session.cwd,
            "out\nerr\n",
            3,
            session.finished()[0].seconds,
            "failed",
        ),
    ]


async def test_the_header_is_laid_out_as_published(session: Session) -> None:
    text = (await ExecCommand().run(_call("exec_command", cmd="printf hello"), session.context("c"))).text
    lines = text.split("\n")
    assert lines[0].startswith("Chunk ID: ")
    assert len(lines[0]) == len("Chunk ID: ") + 6
    assert lines[1].startswith("Wall time: ")
    assert lines[2:] == ["Process exited with code 0", "Original token count: 2", "Output:", "hello"]


async def test_a_death_by_signal_is_128_plus_its_number(session: Session) -> None:
    assert await session.exec("kill -9 $$") == reply("", 137)
    assert await session.exec("kill -15 $$") == reply("", 143)


async def test_stdin_is_closed_without_a_terminal(session: Session) -> None:
    assert await session.exec("cat; echo done") == reply("done\n")


async def test_commands_run_where_the_model_says(session: Session) -> None:
    (session.cwd / "sub").mkdir()
    assert output_of(await session.exec("pwd", workdir="sub")) == f"{session.cwd}/sub\n"
    assert output_of(await session.exec("pwd", workdir=str(session.cwd))) == f"{session.cwd}\n"
    assert output_of(await session.exec("pwd", workdir=None)) == f"{session.cwd}\n"


async def test_a_missing_directory_is_an_error_the_model_reads(session: Session) -> None:
    missing = session.cwd / "missing"
    expected = f"cannot run the command: working directory `{missing}` does not exist"
    assert await session.exec("true", workdir="missing") == f"error: {expected}"
    finished = session.finished()
    assert [(event.output, event.exit_code, event.status) for event in finished] == [(expected, None, "failed")]


async def test_a_directory_of_an_impossible_name_is_an_error_the_model_reads(session: Session) -> None:
    for name in ("x" * 300, "a\0b"):
        assert await session.exec("true", workdir=name) == (
            f"error: cannot run the command: working directory `{session.cwd / name}` does not exist"
        )


async def test_a_file_is_no_directory_to_run_in(session: Session) -> None:
    (session.cwd / "file").touch()
    expected = f"cannot run the command: working directory `{session.cwd / 'file'}` is not a directory"
    assert await session.exec("true", workdir="file") == f"error: {expected}"


async def test_a_deleted_working_directory_is_an_error_the_model_reads(session: Session) -> None:
    session.cwd = session.cwd / "gone"
    assert "does not exist" in await session.exec("true")


async def test_the_shell_can_be_chosen(session: Session) -> None:
    await session.exec("true", shell="/bin/sh")
    assert session.started()[0].command == "/bin/sh -c true"
    assert await session.exec("true", shell="/bin/nosuch") == "error: cannot use shell `/bin/nosuch`: no such file"


async def test_a_login_shell_can_be_asked_for(session: Session) -> None:
    assert output_of(await session.exec("echo $0", login=True)) == "/bin/bash\n"
    assert session.started()[0].command == "/bin/bash -lc 'echo $0'"


async def test_a_shell_that_assigns_in_another_way_reads_the_command_as_it_is(session: Session) -> None:
    fish = session.cwd / "fish"
    fish.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n")
    fish.chmod(0o755)
    assert output_of(await session.call(ExecCommand(), {"cmd": "echo hi", "shell": str(fish)})) == "-c|echo hi|"


async def test_the_user_can_rule_login_shells_out(session: Session) -> None:
    tool = ExecCommand(allow_login_shell=False)
    await session.call(tool, {"cmd": "true", "login": True})
    assert session.started()[0].command == "/bin/bash -c true"


async def test_commands_know_which_call_they_belong_to(session: Session) -> None:
    assert output_of(await session.exec('echo "$CODEX_TOOL_CALL_ID $TERM $NO_COLOR"')) == "call_1 dumb 1\n"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("{bad", "not JSON: "),
        ("[1]", "not a JSON object: `[1]`"),
        ("", "missing field `cmd`"),
        ("{}", "missing field `cmd`"),
        ('{"cmd": null}', "missing field `cmd`"),
        ('{"cmd": 5}', "`cmd` must be a string, found `5`"),
        ('{"cmd": ["ls"]}', '`cmd` must be a string, found `["ls"]`'),
        ('{"cmd": "x", "login": "maybe"}', "`login` must be true or false, found `maybe`"),
        ('{"cmd": "x", "yield_time_ms": "soon"}', "`yield_time_ms` must be a whole number, found `soon`"),
        ('{"cmd": "x", "yield_time_ms": 1e999}', "`yield_time_ms` must be a finite number, found `Infinity`"),
        (
            '{"cmd": "x", "sandbox_permissions": "all"}',
            "`sandbox_permissions` must be one of `use_default` or `require_escalated`, found `all`",
        ),
        ('{"cmd": 1, "tty": 7}', "`cmd` must be a string, found `1`; `tty` must be true or false, found `7`"),
    ],
)
async def test_wrong_arguments_are_named_in_one_line(session: Session, arguments: str, fault: str) -> None:
    text = await session.call(ExecCommand(), arguments)
    assert text.startswith(f"error: {BROKEN}: {fault}")
    assert "\n" not in text
    assert session.events == []


async def test_numbers_may_come_as_strings_or_fractions_and_unknown_fields_are_ignored(session: Session) -> None:
    text = await session.exec("echo hi", yield_time_ms="500", max_output_tokens=99.9, extra={"a": 1})
    assert text == reply("hi\n")


@pytest.mark.parametrize("cmd", ["a\0b", "a\ud800b"])
async def test_what_no_argument_can_hold_is_refused(session: Session, cmd: str) -> None:
    text = await session.call(ExecCommand(), json.dumps({"cmd": cmd}))
    assert text.startswith("error: ")
    assert "\n" not in text


async def test_a_command_longer_than_the_system_allows_is_refused(session: Session) -> None:
    text = await session.exec(f": {'x' * 3_000_000}")
    assert text.startswith("error: cannot start the command: it is longer than the system allows")


async def test_an_empty_command_does_nothing(session: Session) -> None:
    assert await session.exec("") == reply("")


async def test_long_output_loses_its_middle(session: Session) -> None:
    text = await session.exec("seq 1 30000", max_output_tokens=100)
    output = output_of(text)
    warning = "Warning: truncated output (original token count: 42224)\nTotal output lines: 30000\n\n"
    assert output.startswith(f"{warning}1\n2\n3\n")
    assert output.endswith("\n29999\n30000\n")
    assert "…42124 tokens truncated…" in output
    head, tail = output.removeprefix(warning).split("…42124 tokens truncated…")
    assert (len(head), len(tail)) == (200, 200)
    assert session.finished()[0].output == "".join(f"{n}\n" for n in range(1, 30001))


async def test_an_output_budget_of_zero_leaves_the_marker(session: Session) -> None:
    text = await session.exec("seq 1 30000", max_output_tokens=0)
    assert text.endswith("Total output lines: 30000\n\n…42224 tokens truncated…")


async def test_the_models_own_limit_bounds_the_whole_reply(session: Session) -> None:
    session.output_tokens = 200
    text = (await ExecCommand().run(_call("exec_command", cmd="seq 1 30000", login=False), session.context("c"))).text
    assert 900 < len(text.encode()) <= 960
    session.output_tokens = 0
    assert (await session.exec("seq 1 30000")).endswith("…42224 tokens truncated…")


async def test_a_flood_keeps_its_ends_and_counts_all(session: Session) -> None:
    output = output_of(await session.exec("yes | head -c 20000000", yield_time_ms=30_000, max_output_tokens=50))
    header = "Warning: truncated output (original token count: 5000000)\n... 18951424 bytes omitted ...\n\n"
    assert output == header + "y\n" * 50 + "…4999950 tokens truncated…" + "y\n" * 50
    assert len(session.finished()[0].output) < 1024 * 1024 + 100


async def test_one_endless_line_of_noise_is_held(session: Session) -> None:
    text = await session.exec("head -c 5000000 /dev/urandom | tr -d '\\n'", max_output_tokens=100)
    assert "bytes omitted" in text
    assert len(text.encode()) < 1000


async def test_a_running_command_goes_on_in_the_background(session: Session) -> None:
    fifo = _fifo(session)
    first = await session.exec(f"echo started; cat {fifo}; exit 4", yield_time_ms=250)
    running = session_id_of(first)
    assert first.startswith(f"Wall time: S\nProcess running with session ID {running}\nOriginal token count: ")
    assert 1000 <= running <= 99999
    assert session.finished() == []
    poll = asyncio.create_task(session.write(running, yield_time_ms=60_000))
    await asyncio.to_thread(fifo.write_text, "ended\n")
    last = await poll
    assert last.startswith("Wall time: S\nProcess exited with code 4\n")
    # Each output once, wherever the first answer was cut.
    assert output_of(first) + output_of(last) == "started\nended\n"
    assert [(event.call_id, event.output, event.exit_code, event.status) for event in session.finished()] == [
        ("call_1", "started\nended\n", 4, "failed")
    ]
    unknown = f"error: write_stdin failed: Unknown process id {running}: its command has ended, or there never was one"
    assert await session.write(running) == unknown


async def test_a_command_without_terminal_cannot_be_typed_to_but_interrupted(session: Session) -> None:
    running = session_id_of(await session.exec(f"cat {_fifo(session)}", yield_time_ms=250))
    refused = await session.write(running, "x")
    assert refused == (
        "error: write_stdin failed: stdin is closed for this session: it has no terminal; "
        "run the command again with tty=true"
    )
    assert await session.write(running, "\x03", yield_time_ms=30_000) == reply("", 130)


async def test_every_command_is_asked_about_where_the_sandbox_holds_only_a_part(session: Session) -> None:
    session.policy = WorkspaceWrite()
    questions: list[ApprovalQuestion] = []
    answers = ["once", None]

    async def ask(question: Question) -> str | None:
        assert isinstance(question, ApprovalQuestion)
        questions.append(question)
        return answers.pop(0)

    context = session.context("c").replace(approval="on-request", ask=ask, shortfall="only half of it works here")
    call = ToolCall("c", "exec_command", '{"cmd": "cat /dev/null", "login": false}')
    assert "exited with code 0" in (await ExecCommand().run(call, context)).text
    with pytest.raises(ToolError, match="declined by the user"):
        await ExecCommand().run(call, context)
    assert [(one.reason, one.outside) for one in questions] == [
        ("the sandbox here cannot hold everything: only half of it works here", False)
    ] * 2


async def test_a_terminal_is_24_by_80_and_echoes(session: Session) -> None:
    text = await session.exec("stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all", tty=True)
    assert output_of(text) == "24 80\r\nall\r\n"


async def test_ctrl_c_interrupts_what_runs_in_a_terminal_and_the_session_goes_on(session: Session) -> None:
    for policy in (session.policy, WorkspaceWrite()):
        session.policy = policy
        script = "trap 'echo caught' INT; echo ready; while read -r line || true; do echo got $line; done"
        running = session_id_of(await session.exec(script, tty=True, yield_time_ms=250))
        await session.until(running, "ready")
        await session.type_until(running, "\x03", "caught")
        await session.write(running, "more\n")
        await session.until(running, "got more")
        await session.processes.kill_all()


async def test_the_end_of_input_ends_a_terminal_reader(session: Session) -> None:
    running = session_id_of(await session.exec("cat; echo over", tty=True, yield_time_ms=250))
    text = await session.write(running, "hi\n\x04", yield_time_ms=30_000)
    assert output_of(text) == "hi\r\nhi\r\nover\r\n"


async def test_a_grandchild_that_keeps_the_pipe_does_not_hold_the_reply(session: Session) -> None:
    text = await session.exec("sleep 1000 & echo $!", yield_time_ms=30_000)
    pid = int(output_of(text))
    assert text == reply(f"{pid}\n")
    assert is_alive(pid)
    await session.processes.kill_all()
    assert not is_alive(pid)


async def test_cancelling_kills_the_command_with_all_it_started(session: Session) -> None:
    fifo = _fifo(session)
    work = asyncio.create_task(session.exec(f"setsid sleep 1000 & echo $! > {fifo}; sleep 1000"))
    daemon = int(await asyncio.to_thread(fifo.read_text))
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not is_alive(daemon)
    assert [(event.exit_code, event.status) for event in session.finished()] == [(None, "failed")]


async def test_escalation_is_refused_where_nobody_can_be_asked(session: Session) -> None:
    session.policy = ReadOnly()
    text = await session.exec("true", sandbox_permissions="require_escalated", justification="may I?")
    assert text.startswith("error: escalated permissions are not available: the approval policy `never`")
    assert session.started() == []
    assert [event.status for event in session.finished()] == ["declined"]


async def test_a_patch_in_a_heredoc_is_applied_and_not_run(session: Session) -> None:
    body = "*** Begin Patch\n*** Add File: new.txt\n+hi\n*** End Patch"
    text = await session.exec(f"apply_patch <<'EOF'\n{body}\nEOF")
    assert (session.cwd / "new.txt").read_text() == "hi\n"
    assert text.startswith("Wall time: S\nOutput:\nExit code: 0\nWall time: ")
    assert text.endswith("\nOutput:\nSuccess. Updated the following files:\nA new.txt\n")
    (done,) = [event for event in session.events if isinstance(event, PatchFinished)]
    assert [(change.path, change.kind) for change in done.changes] == [(session.cwd / "new.txt", "add")]
    assert all(isinstance(change, FileChange) for change in done.changes)
    assert session.started() == []


async def test_a_bare_patch_is_sent_back_with_how_to_call_it(session: Session) -> None:
    text = await session.exec("*** Begin Patch\n*** Add File: new.txt\n+hi\n*** End Patch")
    assert text.startswith("error: apply_patch verification failed: patch detected without explicit call")
    assert not (session.cwd / "new.txt").exists()


async def test_three_hundred_children_are_no_trouble(session: Session) -> None:
    text = await session.exec("for i in $(seq 300); do sleep 0.01 & done; wait; echo done", yield_time_ms=30_000)
    assert output_of(text) == "done\n"


def _call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c", name, json.dumps(arguments))


def _fifo(session: Session) -> Path:
    path = session.cwd / "fifo"
    if not path.exists():
        os.mkfifo(path)
    return path
