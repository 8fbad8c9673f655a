from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.context.host_messages import user_shell_item
from codex_py.protocol.items import ResponseItem, message
from codex_py.render.entry import Flow
from codex_py.render.transcript import render_items
from tests.support.drawing import MONO, uncoloured

CWD = Path("/work")


def item(**fields: Any) -> ResponseItem:
    return ResponseItem.from_wire(fields)


def call(call_id: str, name: str, **arguments: Any) -> ResponseItem:
    return item(type="function_call", call_id=call_id, name=name, arguments=json.dumps(arguments))


def output(call_id: str, text: str) -> ResponseItem:
    return item(type="function_call_output", call_id=call_id, output=text)


def said(text: str) -> ResponseItem:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def drawn(*items: ResponseItem, expanded: bool = False) -> list[str]:
    flow = Flow()
    return [
        uncoloured(line)
        for entry in render_items(items, cwd=CWD, expanded=expanded)
        for line in flow.lines(entry, width=60, theme=MONO)
    ]


def test_of_a_session_at_work_what_has_no_answer_yet_is_under_way() -> None:
    items = [
        call("c1", "exec_command", cmd="make all"),
        call("c2", "exec_command", cmd="make test"),
        call("c3", "lookup", query="x"),
        output("c1", "Wall time: 1.0000 seconds\nProcess exited with code 0\nOriginal token count: 0\nOutput:\n"),
    ]
    drawn = [
        uncoloured(line)
        for entry in render_items(items, cwd=CWD, at_work=True)
        for line in Flow().lines(entry, width=60, theme=MONO)
    ]
    assert drawn == ["✓ $ make all · 1.0s", "▸ $ make test · under way", "▸ lookup · under way"]


def test_a_stored_session_looks_as_it_did() -> None:
    report = (
        "Chunk ID: 1\nWall time: 0.2500 seconds\nProcess exited with code 1\nOriginal token count: 1\nOutput:\nno\n"
    )
    running = "Wall time: 10.0000 seconds\nProcess running with session ID 4\nOriginal token count: 1\nOutput:\n"
    patch = "*** Begin Patch\n*** Add File: n.txt\n+hello\n*** End Patch"
    patched = "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess."
    assert drawn(
        message("developer", "rules"),
        message("user", "<environment_context>\n</environment_context>"),
        message("user", "<skill>\n<name>lint</name>\n<path>/work/.agents/skills/lint/SKILL.md</path>\n</skill>"),
        message("user", "fix it"),
        item(type="reasoning", summary=[{"type": "summary_text", "text": "**Looking**"}]),
        call("a", "exec_command", cmd="make"),
        call("b", "exec_command", cmd="serve"),
        output("a", report),
        output("b", running),
        said("<proposed_plan>\nNow I **fix** it.\n</proposed_plan>"),
        item(type="custom_tool_call", call_id="p", name="apply_patch", input=patch),
        item(type="custom_tool_call_output", call_id="p", output=patched),
        call("u", "update_plan", plan=[{"step": "Fix", "status": "completed"}, {"step": "?", "status": "odd"}]),
        item(type="function_call", call_id="m", name="search", namespace="mcp__docs", arguments='{"q":"x"}'),
        item(type="web_search_call", id="w", action={"type": "search", "query": "docs"}),
        item(type="something_new", value=1),
        message("user", "<turn_aborted>\n</turn_aborted>"),
    ) == [
        "› fix it",
        "",
        "◆ used skill lint · .agents/skills/lint/SKILL.md",
        "∴ Looking",
        "✗ $ make · exit 1 · 250ms · 1 line",
        "  │ no",
        "◌ $ serve · still running · 10.0s",
        "",
        "● Now I fix it.",
        "",
        "✓ Added n.txt  +1 −0",
        "  1 + hello",
        "",
        "≡ Plan · 1 of 1 done",
        "  ☑ Fix",
        "",
        '✓ mcp__docs.search {"q":"x"}',
        "⌕ searched the web for docs",
        "",
        "! interrupted",
    ]


def test_what_the_model_asked_stands_with_its_answers() -> None:
    questions: list[dict[str, Any]] = [
        {"id": "a", "header": "Colour", "question": "Which colour?", "options": []},
        {"id": "b", "header": "Size", "question": "Which size?", "options": []},
    ]
    assert drawn(
        call("q", "request_user_input", questions=questions),
        output("q", '{"answers":{"a":{"answers":["Blue"]},"b":{"answers":[]}}}'),
        call("r", "request_user_input", questions=questions),
        output("r", "request_user_input is not available"),
    )[:5] == ["? Which colour?", "  ↳ Blue", "", "? Which size?", "  ↳ no answer"]


def test_a_patch_that_was_not_written_says_why() -> None:
    patch = "*** Begin Patch\n*** Add File: n.txt\n+hello\n*** End Patch"
    outputs = [
        "patch rejected: declined by the user: do not try it again in another way",
        "apply_patch verification failed: no such file",
        "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nthe disk is full\n",
        "aborted",
    ]
    items = [
        one
        for number, said in enumerate(outputs)
        for one in (
            item(type="custom_tool_call", call_id=f"p{number}", name="apply_patch", input=patch),
            item(type="custom_tool_call_output", call_id=f"p{number}", output=said),
        )
    ]
    assert drawn(*items) == [
        "⊘ patch · declined",
        "✗ apply_patch verification failed: no such file",
        "",
        "✗ Added n.txt · failed",
        "  the disk is full",
        "",
        "✗ Added n.txt · failed",
    ]


def test_a_stored_patch_is_shown_without_the_line_numbers_it_does_not_tell() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@ def f\n x\n-y\n+z\n*** Delete File: b\n*** End Patch"
    patched = "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess."
    assert drawn(
        item(type="custom_tool_call", call_id="p", name="apply_patch", input=patch),
        item(type="custom_tool_call_output", call_id="p", output=patched),
    ) == [
        "✓ Edited 2 files  +1 −1",
        "  └ a.py  +1 −1",
        "    def f",
        "    x",
        "  - y",
        "  + z",
        "  └ deleted b  +0 −0",
    ]


def planned(call_id: str, done: int, of: int = 2) -> ResponseItem:
    statuses = ["completed"] * done + ["pending"] * (of - done)
    return call(call_id, "update_plan", plan=[{"step": f"s{n}", "status": status} for n, status in enumerate(statuses)])


def test_of_a_plan_a_turn_leaves_what_it_was_in_the_end() -> None:
    items = [
        message("user", "first"),
        planned("a", 0),
        output("a", "Plan updated"),
        planned("b", 1),
        output("b", "Plan updated"),
        call("c", "update_plan", plan=[]),
        output("c", "failed to parse function arguments: nonsense"),
        said("so far"),
        message("user", "second"),
        planned("d", 2),
        output("d", "Plan updated"),
    ]
    assert drawn(*items) == [
        "› first",
        "",
        '✗ update_plan {"plan": []} · failed · failed to parse funct…',
        "",
        "● so far",
        "",
        "≡ Plan · 1 of 2 done",
        "  ☑ s0",
        "  ☐ s1",
        "",
        "› second",
        "",
        "≡ Plan · 2 of 2 done",
        "  ☑ s0",
        "  ☑ s1",
    ]
    assert [line for line in drawn(*items, expanded=True) if "Plan" in line] == [
        "≡ Plan · 0 of 2 done",
        "≡ Plan · 1 of 2 done",
        "≡ Plan · 2 of 2 done",
    ]
    assert drawn(planned("a", 3, 20))[-1] == "    … 11 more after"


def test_a_command_of_the_user_is_shown_with_its_output() -> None:
    stored = user_shell_item("ls", "a.py", exit_code=0, seconds=0.5)
    assert drawn(stored) == ["✓ ! ls · 500ms · 1 line", "  │ a.py"]


def test_calls_that_make_no_sense_are_shown_all_the_same() -> None:
    assert drawn(
        item(type="function_call", call_id="a", name="exec_command", arguments="{nonsense"),
        item(type="function_call", call_id="b", name="exec_command", arguments='{"cmd":["ls","-l"]}'),
        output("b", "command declined by the user, who says: no"),
        item(type="function_call", call_id="c", name="\x1b[2J", arguments="[]"),
        output("c", "unsupported call: \x1b[2J"),
        item(type="custom_tool_call", call_id="d", name="apply_patch", input="nonsense"),
    ) == [
        "✓ exec_command {nonsense",
        "⊘ $ ls -l · declined",
        "  ↳ no",
        "✗ ␛[2J [] · failed · unsupported call: ␛[2J",
        "",
        "✗ A patch that cannot be read",
        "  nonsense",
    ]


def test_a_message_with_a_picture_is_what_was_typed() -> None:
    tag, picture = '<image name=[Image #1] path="/p/a.png">', "data:image/png;base64,AA=="
    message_item = item(
        type="message",
        role="user",
        content=[
            {"type": "input_text", "text": tag},
            {"type": "input_image", "image_url": picture},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "what is [Image #1]?"},
        ],
    )

    assert drawn(message_item) == ["› what is [Image #1]?"]


def test_agents_of_a_stored_session_are_reported_as_they_were() -> None:
    def ended(status: object) -> str:
        return json.dumps({"status": status, "timed_out": not status})

    notice = {"agent_path": "id-2", "nickname": "explorer-1", "status": {"completed": "The server is </fine>."}}
    told_of = json.dumps(notice).replace("</", "<\\/")
    assert drawn(
        call("s1", "spawn_agent", message="look at\nthe parser"),
        call("s2", "spawn_agent", items=[{"type": "text", "text": "look at the server"}], agent_type="explorer"),
        call("s3", "spawn_agent", message="one more"),
        output("s1", '{"agent_id":"id-1","nickname":"agent-1"}'),
        output("s2", '{"agent_id":"id-2","nickname":"explorer-1"}'),
        output("s3", "as many agents are at work as may be, 2"),
        call("w1", "wait_agent", targets=["agent-1", "id-2"]),
        output("w1", ended({})),
        call("w2", "wait_agent", targets=["agent-1", "id-2"]),
        output("w2", ended({"agent-1": {"completed": "The parser is fine."}})),
        message("user", f"<subagent_notification>\n{told_of}\n</subagent_notification>"),
        call("w3", "wait_agent", targets=["id-2"]),
        output("w3", ended({"id-2": {"completed": "The server is fine."}})),
        call("t1", "send_input", target="id-1", message="look again"),
        output("t1", '{"submission_id":"x"}'),
        call("w4", "wait_agent", targets=["id-1"]),
        output("w4", ended({"id-1": {"errored": "401"}})),
        call("x1", "close_agent", target="agent-1"),
        output("x1", '{"previous_status":{"errored":"401"}}'),
        call("t2", "send_input", target="explorer-1", message="and the client"),
        output("t2", '{"submission_id":"x"}'),
        call("w5", "wait_agent", targets=["explorer-1"]),
        output("w5", "aborted"),
        message("user", "<turn_aborted>\n</turn_aborted>"),
    ) == [
        "▸ agent-1 look at the parser",
        "▸ agent explorer-1 look at the server",
        "✗ spawn_agent · failed · as many agents are at work as may …",
        "✓ agent-1 done",
        "  │ The parser is fine.",
        "✓ agent explorer-1 done",
        "  │ The server is </fine>.",
        "▸ agent-1 look again",
        "✗ agent-1 failed",
        "  │ 401",
        "⊘ agent-1 closed",
        "▸ agent explorer-1 and the client",
        "⊘ agent explorer-1 interrupted",
        "",
        "! interrupted",
    ]


def test_calls_about_agents_that_make_no_sense_are_shown_all_the_same() -> None:
    assert drawn(
        call("a", "spawn_agent", message="x"),
        output("a", '{"agent_id":7}'),
        call("b", "wait_agent", targets="x"),
        output("b", '{"status":["x"]}'),
        message("user", "<subagent_notification>\nnonsense\n</subagent_notification>"),
        item(type="function_call", call_id="c", name="spawn_agent", namespace="mcp__farm", arguments='{"kind":"x"}'),
        output("c", '{"agent_id":"id-1"}'),
    ) == ['✓ spawn_agent {"message": "x"}', '✓ mcp__farm.spawn_agent {"kind":"x"}']


@pytest.mark.parametrize(
    "refusal",
    [
        "command declined by the user",
        "command refused: in plan mode nothing is written until the user has accepted the plan",
        "refused: the command is dangerous; nobody can be asked in this session",
        "escalated permissions are not available: the approval policy `never` does not let you ask for them here",
        "blocked by a PreToolUse hook: no pushing",
    ],
)
def test_a_command_that_was_not_let_run_was_declined_and_not_stopped(refusal: str) -> None:
    assert drawn(call("a", "exec_command", cmd="git push"), output("a", refusal)) == ["⊘ $ git push · declined"]
