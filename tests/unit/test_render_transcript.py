from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codex_py.context.user_shell import user_shell_item
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


def told(*items: ResponseItem, expanded: bool = False) -> list[str]:
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
    told = [
        uncoloured(line)
        for entry in render_items(items, cwd=CWD, at_work=True)
        for line in Flow().lines(entry, width=60, theme=MONO)
    ]
    assert told == ["✓ $ make all · 1.0s", "▸ $ make test · under way", "▸ lookup · under way"]


def test_a_stored_session_looks_as_it_did() -> None:
    report = (
        "Chunk ID: 1\nWall time: 0.2500 seconds\nProcess exited with code 1\nOriginal token count: 1\nOutput:\nno\n"
    )
    running = "Wall time: 10.0000 seconds\nProcess running with session ID 4\nOriginal token count: 1\nOutput:\n"
    patch = "*** Begin Patch\n*** Add File: n.txt\n+hello\n*** End Patch"
    patched = "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess."
    assert told(
        message("developer", "rules"),
        message("user", "<environment_context>\n</environment_context>"),
        message("user", "<skill>\n<name>lint</name>\n<path>/s/SKILL.md</path>\n</skill>"),
        message("user", "fix it"),
        item(type="reasoning", summary=[{"type": "summary_text", "text": "**Looking**"}]),
        call("a", "exec_command", cmd="make"),
        call("b", "exec_command", cmd="serve"),
        output("a", report),
        output("b", running),
        said("Now I **fix** it."),
        item(type="custom_tool_call", call_id="p", name="apply_patch", input=patch),
        item(type="custom_tool_call_output", call_id="p", output=patched),
        call("u", "update_plan", plan=[{"step": "Fix", "status": "completed"}, {"step": "?", "status": "odd"}]),
        item(type="function_call", call_id="m", name="search", namespace="mcp__docs", arguments='{"q":"x"}'),
        item(type="web_search_call", id="w", action={"type": "search", "query": "docs"}),
        item(type="something_new", value=1),
        message("user", "<turn_aborted>\n</turn_aborted>"),
    ) == [
        "◆ used skill lint · user · /s/SKILL.md",
        "",
        "› fix it",
        "",
        "∴ Looking",
        "✗ $ make · exit 1 · 250ms · 1 line",
        "◌ $ serve · still running · 10.0s",
        "",
        "● Now I fix it.",
        "",
        "✓ Added n.txt  +1 −0",
        "  + hello",
        "",
        "≡ Plan · 1 of 1 done",
        "  ☑ Fix",
        "",
        '✓ mcp__docs.search {"q":"x"}',
        "⌕ searched the web for docs",
        "",
        "! interrupted",
    ]


def test_a_command_of_the_user_is_shown_with_its_output() -> None:
    stored = user_shell_item("ls", "a.py", exit_code=0, seconds=0.5)
    assert told(stored) == ["✓ ! ls · 500ms · 1 line", "  │ a.py"]


def test_calls_that_make_no_sense_are_shown_all_the_same() -> None:
    assert told(
        item(type="function_call", call_id="a", name="exec_command", arguments="{nonsense"),
        item(type="function_call", call_id="b", name="exec_command", arguments='{"cmd":["ls","-l"]}'),
        output("b", "command declined by the user, who says: no"),
        item(type="function_call", call_id="c", name="\x1b[2J", arguments="[]"),
        output("c", "unsupported call: \x1b[2J"),
        item(type="custom_tool_call", call_id="d", name="apply_patch", input="nonsense"),
    ) == [
        "✓ exec_command {nonsense",
        "⊘ $ ls -l · declined",
        "✗ ␛[2J [] · failed · unsupported call: ␛[2J",
        "",
        "✗ A patch that cannot be read",
        "  nonsense",
    ]


def test_a_message_with_a_picture_is_what_was_typed() -> None:
    tag, picture = '<image name=[Image #1] path="/p/a.png">', "data:image/png;base64,AA=="
    asked = item(
        type="message",
        role="user",
        content=[
            {"type": "input_text", "text": tag},
            {"type": "input_image", "image_url": picture},
            {"type": "input_text", "text": "</image>"},
            {"type": "input_text", "text": "what is [Image #1]?"},
        ],
    )

    assert told(asked) == ["› what is [Image #1]?"]
