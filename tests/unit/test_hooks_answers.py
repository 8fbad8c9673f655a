"""What hooks answer, each way, and what several say together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.hooks.answer import HookAnswer, HookVerdict, combine_answers, read_answer
from codex_py.hooks.command import HookResult
from codex_py.hooks.matching import Matcher
from codex_py.hooks.schema import Hook, HookOrigin


def said(event: str, **fields: Any) -> HookAnswer:
    return read_answer(event, HookResult(0, json.dumps(fields).encode()))


def named(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookEventName": event, **fields}


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        ("PreToolUse", HookAnswer(permission="deny", reason="no")),
        ("PermissionRequest", HookAnswer(permission="deny", reason="no")),
        ("PostToolUse", HookAnswer(blocks=True, reason="no")),
        ("Stop", HookAnswer(blocks=True, reason="no")),
        ("UserPromptSubmit", HookAnswer(blocks=True, reason="no")),
        ("SessionStart", HookAnswer(message="no")),
        ("Notification", HookAnswer(message="no")),
    ],
)
def test_exit_code_2_is_a_no_where_there_can_be_one(event: str, answer: HookAnswer) -> None:
    assert read_answer(event, HookResult(2, b"ignored", b" no\n")) == answer


def test_a_byte_order_mark_does_not_hide_an_answer() -> None:
    ran = HookResult(0, b'\xef\xbb\xbf{"decision": "block", "reason": "no"}\r\n')
    assert read_answer("PreToolUse", ran) == HookAnswer(permission="deny", reason="no")


def test_a_no_without_a_word_says_so() -> None:
    assert read_answer("Stop", HookResult(2)).reason == "it gave no reason"


@pytest.mark.parametrize("code", [1, 3, 126, 127, 137, 255])
def test_any_other_exit_code_is_a_warning(code: int) -> None:
    answer = read_answer("PreToolUse", HookResult(code, b'{"decision": "block"}', b"oh\nno"))
    assert answer == HookAnswer(warning=f"failed with exit code {code}: oh no")


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"decision": "approve"}, HookAnswer(permission="allow")),
        ({"decision": "block", "reason": "no"}, HookAnswer(permission="deny", reason="no")),
        (
            {"hookSpecificOutput": named("PreToolUse", permissionDecision="ask", permissionDecisionReason="why")},
            HookAnswer(permission="ask", reason="why"),
        ),
        ({"hookSpecificOutput": named("PreToolUse", permissionDecision="defer")}, HookAnswer(permission="ask")),
        (
            {"decision": "approve", "hookSpecificOutput": named("PreToolUse", permissionDecision="deny")},
            HookAnswer(permission="deny"),
        ),
        (
            {"hookSpecificOutput": named("PreToolUse", updatedInput={"command": "x"}, additionalContext="c")},
            HookAnswer(updated={"command": "x"}, context="c"),
        ),
        ({"continue": False, "stopReason": "enough"}, HookAnswer(stop="enough")),
        ({"continue": False}, HookAnswer(stop="it gave no reason")),
        ({"continue": True, "suppressOutput": True, "systemMessage": "hey"}, HookAnswer(message="hey")),
        ({}, HookAnswer()),
    ],
)
def test_json_before_a_tool_call(fields: dict[str, Any], answer: HookAnswer) -> None:
    assert said("PreToolUse", **fields) == answer


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"behavior": "allow"}, HookAnswer(permission="allow")),
        (
            {"behavior": "allow", "updatedInput": {"command": "git push --dry-run"}},
            HookAnswer(
                warning="answered with what is not understood: `updatedInput` cannot be used here, only at `PreToolUse`"
            ),
        ),
        ({"behavior": "deny", "message": "no"}, HookAnswer(permission="deny", reason="no")),
        (
            {"behavior": "deny", "message": "no", "interrupt": True},
            HookAnswer(permission="deny", reason="no", stop="no"),
        ),
        ({"behavior": "deny", "interrupt": True}, HookAnswer(permission="deny", stop="it gave no reason")),
        ({"behavior": "allow", "interrupt": True}, HookAnswer(permission="allow")),
        (
            {"behavior": "allow", "updatedPermissions": [{"type": "addRules"}]},
            HookAnswer(
                permission="allow",
                warning="answered with what is not understood: "
                "`updatedPermissions` is not kept: an answer is for one call",
            ),
        ),
    ],
)
def test_json_in_place_of_the_user(fields: dict[str, Any], answer: HookAnswer) -> None:
    assert said("PermissionRequest", hookSpecificOutput=named("PermissionRequest", decision=fields)) == answer


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "SubagentStart", "Setup"])
def test_plain_text_is_context_where_it_is_asked_for(event: str) -> None:
    assert read_answer(event, HookResult(0, b"branch: main\n")) == HookAnswer(context="branch: main")


@pytest.mark.parametrize("text", ["[pipeline: a] [phase: b]", "[" * 10_000, 'settings:\n{"a": 1}', "a {\n}"])
def test_text_that_only_looks_like_json_is_text(text: str) -> None:
    assert read_answer("SessionStart", HookResult(0, text.encode())) == HookAnswer(context=text)


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop", "Notification", "PreCompact"])
def test_plain_text_is_nothing_elsewhere(event: str) -> None:
    assert read_answer(event, HookResult(0, b"1 file reformatted\n")) == HookAnswer()


@pytest.mark.parametrize(
    ("stdout", "complaint"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"a\0b", "not text"),
        (b"{", "looks like JSON but is invalid"),
        (b"{" * 100_000, "looks like JSON but is invalid"),
        (b'{"decision": "block"}\nbye\n', "looks like JSON but is invalid"),
        (b'checking\n{"decision": "block"}\n', "wrote other text before its JSON"),
        (b'checking\n  {\n  "decision": "block"\n  }\n', "wrote other text before its JSON"),
        (b'{"not": \n{"continue": false}', "looks like JSON but is invalid"),
        (b'one: {\n{"level": 1}\n{"continue": false}', "wrote other text before its JSON"),
        (b"[1]", "JSON that is not an object"),
        (b'{"decision": 5}', "`decision` is none of"),
        (b'{"decision": {}}', "`decision` is not a string"),
        (b'{"continue": "no"}', "`continue` is neither true nor false"),
        (b'{"reason": []}', "`reason` is not a string"),
        (b'{"hookSpecificOutput": {"updatedMCPToolOutput": "x"}}', "`updatedMCPToolOutput` is not used"),
        (b'{"hookSpecificOutput": 1}', "`hookSpecificOutput` is not an object"),
        (b'{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}}', "is for `Stop`"),
        (b'{"hookSpecificOutput": {"permissionDecision": "maybe"}}', "`permissionDecision` is none of"),
    ],
)
def test_junk_is_a_warning_and_decides_nothing(stdout: bytes, complaint: str) -> None:
    answer = read_answer("PreToolUse", HookResult(0, stdout))
    assert complaint in answer.warning
    assert answer == HookAnswer(warning=answer.warning)


def test_what_a_hook_says_to_the_model_has_a_limit() -> None:
    context = read_answer("UserPromptSubmit", HookResult(0, "é".encode() * 100_000)).context
    assert context.endswith("é [cut here]")
    assert len(context.encode()) < 17_000
    assert len(read_answer("Stop", HookResult(2, b"", b"x" * 1_000_000)).reason) < 5_000


def hook(command: str) -> Hook:
    return Hook("PreToolUse", Matcher(), command, 60.0, HookOrigin("user"))


A, B, C = hook("a"), hook("b"), hook("c")


@pytest.mark.parametrize(
    ("words", "together"),
    [
        (["allow", "ask", "deny"], "deny"),
        (["allow", None, "ask"], "ask"),
        ([None, "allow", None], "allow"),
        ([None, None, None], None),
    ],
)
def test_the_strictest_word_counts(words: list[Any], together: Any) -> None:
    answers = [HookAnswer(permission=word, reason=f"{word}!") for word in words]
    verdict = combine_answers(list(zip((A, B, C), answers, strict=True)))
    assert (verdict.permission, verdict.reason) == (together, f"{together}!" if together else "")


def test_answers_are_reported_in_the_order_of_the_hooks() -> None:
    verdict = combine_answers(
        [
            (A, HookAnswer(context="one", blocks=True, reason="first", message="hello")),
            (B, HookAnswer(context="two", updated={"x": 1}, warning="failed with exit code 1")),
            (C, HookAnswer(context="one", blocks=True, reason="second", updated={"x": 2}, stop="halt")),
        ]
    )
    assert verdict == HookVerdict(
        blocks=True,
        reason="first\nsecond",
        contexts=("one", "two"),
        stop="halt",
        updated={"x": 1},
        messages=("PreToolUse hook: hello",),
        warnings=(
            "the PreToolUse hook `b` failed with exit code 1",
            "the PreToolUse hooks `b` and `c` both change the input of one call: the first one counts",
        ),
    )
