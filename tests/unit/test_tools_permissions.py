"""`request_permissions` and `request_user_input`: what is asked, what is answered, and what that changes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import (
    ApprovalPolicy,
    DangerFullAccess,
    GranularApproval,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
)
from codex_py.protocol.questions import (
    ChoiceQuestion,
    ModelAnswers,
    PermissionsQuestion,
    Question,
    QuestionAnswer,
    QuestionOption,
)
from codex_py.sandbox.command import Sandbox
from codex_py.tools.ask_user import RequestPermissions, RequestUserInput
from codex_py.tools.spec import ToolContext, ToolOutput
from tests.unit.command_builders import Session

NETWORK = {"network": {"enabled": True}}

PERMISSIONS, USER_INPUT = RequestPermissions().run, RequestUserInput().run


class User:
    """Says one thing after the other to what is asked."""

    def __init__(self, *says: QuestionAnswer | None) -> None:
        self.says = list(says)
        self.asked: list[Question] = []
        self.policies: list[SandboxPolicy] = []

    async def ask(self, question: Question) -> QuestionAnswer | None:
        self.asked.append(question)
        return self.says.pop(0)


async def said(
    run: Callable[[ToolCall, ToolContext], Awaitable[ToolOutput]],
    cwd: Path,
    arguments: dict[str, Any],
    user: User | None,
    policy: SandboxPolicy | None = None,
    *,
    approval: ApprovalPolicy = "on-request",
) -> str:
    context = Session(cwd, policy or WorkspaceWrite()).context("c").replace(approval=approval)
    if user is not None:
        context = context.replace(ask=user.ask, widen=user.policies.append)
    try:
        return (await run(ToolCall("c", "tool", json.dumps(arguments)), context)).text
    except ToolError as error:
        return f"error: {error}"


def write(*directories: str) -> dict[str, Any]:
    return {"file_system": {"write": list(directories)}}


async def test_a_yes_widens_the_sandbox_by_what_was_shown(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "work/link").symlink_to(tmp_path / "out")
    user = User("yes")
    policy = WorkspaceWrite(writable_roots=(Path("/srv"),), exclude_slash_tmp=True)
    arguments = {"permissions": NETWORK | write("link", str(tmp_path / "out")), "reason": "to publish"}
    answer = await said(PERMISSIONS, tmp_path / "work", arguments, user, policy)
    out = tmp_path / "out"
    assert json.loads(answer) == {
        "permissions": {"network": {"enabled": True}, "file_system": {"write": [str(out)]}},
        "scope": "turn",
    }
    [question] = user.asked
    assert isinstance(question, PermissionsQuestion)
    assert question == PermissionsQuestion(question.id, True, (out,), "to publish")
    assert user.policies == [policy.replace(writable_roots=(Path("/srv"), out), network_access=True)]


async def test_what_was_not_asked_for_stays_as_it_was(tmp_path: Path) -> None:
    user = User("yes")
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    out.mkdir()
    policy = WorkspaceWrite(network_access="loopback", exclude_slash_tmp=True)
    await said(PERMISSIONS, work, {"permissions": write("../out")}, user, policy)
    assert user.policies == [policy.replace(writable_roots=(out,))]


async def test_what_is_open_already_is_not_asked_for(tmp_path: Path) -> None:
    user = User("yes")
    work, out = tmp_path / "work", tmp_path / "out"
    (work / "inner").mkdir(parents=True)
    out.mkdir()
    policy = WorkspaceWrite(network_access=True, exclude_slash_tmp=True)
    answer = await said(PERMISSIONS, work, {"permissions": NETWORK | write("inner")}, user, policy)
    assert json.loads(answer)["permissions"] == NETWORK | write(str(work / "inner"))
    assert (user.asked, user.policies) == ([], [])
    answer = await said(PERMISSIONS, work, {"permissions": NETWORK | write("inner", "../out")}, user, policy)
    assert json.loads(answer)["permissions"] == NETWORK | write(str(work / "inner"), str(out))
    [question] = user.asked
    assert question == PermissionsQuestion(question.id, False, (out,), "")
    assert user.policies == [policy.replace(writable_roots=(out,))]


@pytest.mark.parametrize("answer", [None, "no", "", "YES please", "y"])
async def test_anything_but_a_yes_changes_nothing(tmp_path: Path, answer: str | None) -> None:
    user = User(answer)
    assert "did not grant" in await said(PERMISSIONS, tmp_path, {"permissions": NETWORK}, user)
    assert user.policies == []


@pytest.mark.parametrize(
    ("directory", "why"),
    [
        ("missing", "not a directory"),
        ("file", "not a directory"),
        (".git", "kept read-only"),
        (".git/hooks", "kept read-only"),
        ("hooks", "kept read-only"),
        ("a\0b", "no such directory"),
    ],
)
async def test_what_stays_closed_is_not_even_asked_for(tmp_path: Path, directory: str, why: str) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / "hooks").symlink_to(".git/hooks")
    (tmp_path / "file").touch()
    user = User()
    answer = await said(PERMISSIONS, tmp_path, {"permissions": write(directory)}, user)
    assert answer.startswith("error: cannot ask for ")
    assert why in answer
    assert (user.asked, user.policies) == ([], [])


async def test_what_must_not_be_read_is_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "secret/deep").mkdir(parents=True)
    user = User()
    context = Session(tmp_path, WorkspaceWrite()).context("c").replace(approval="on-request", ask=user.ask)
    context = context.replace(widen=user.policies.append, sandbox=Sandbox({}, deny_read=["secret"]))
    call = ToolCall("c", "tool", json.dumps({"permissions": write("secret/deep")}))
    with pytest.raises(ToolError, match="must not even be read"):
        await PERMISSIONS(call, context)
    assert user.asked == []


async def test_where_there_is_nothing_to_ask(tmp_path: Path) -> None:
    user = User()
    wanted = {"permissions": NETWORK}
    assert "not available in a read-only sandbox" in await said(PERMISSIONS, tmp_path, wanted, user, ReadOnly())
    free = await said(PERMISSIONS, tmp_path, wanted, user, DangerFullAccess())
    assert json.loads(free) == {"permissions": NETWORK, "scope": "turn"}
    assert "not available: nobody can answer" in await said(PERMISSIONS, tmp_path, wanted, None)
    assert (user.asked, user.policies) == ([], [])


async def test_a_granular_policy_says_whether_it_is_asked(tmp_path: Path) -> None:
    wanted = {"permissions": NETWORK}
    silent = GranularApproval(sandbox_approval=True, rules=True, mcp_elicitations=True)
    user = User("yes")
    answer = await said(PERMISSIONS, tmp_path, wanted, user, approval=silent)
    assert "not available under the approval policy `granular`" in answer
    assert user.asked == []
    answer = await said(PERMISSIONS, tmp_path, wanted, user, approval=silent.replace(request_permissions=True))
    assert json.loads(answer)["permissions"] == NETWORK


def question(id_: str, *labels: str) -> dict[str, Any]:
    options = [{"label": label, "description": f"{label} it is"} for label in labels]
    return {"id": id_, "header": id_.title(), "question": f"Which {id_}?", "options": options}


async def test_questions_are_put_one_after_the_other(tmp_path: Path) -> None:
    user = User("Red", None, "something else")
    questions = [question("colour", "Red", "Blue"), question("size", "S"), question("ünï", "x")]
    answer = await said(USER_INPUT, tmp_path, {"questions": questions}, user)
    assert answer == (
        '{"answers":{"colour":{"answers":["Red"]},"size":{"answers":[]},"ünï":{"answers":["something else"]}}}'
    )
    first = user.asked[0]
    choices = (QuestionOption("Red", "Red it is"), QuestionOption("Blue", "Blue it is"))
    other = (QuestionOption("S", "S it is"),), (QuestionOption("x", "x it is"),)
    assert isinstance(first, ChoiceQuestion)
    asks = first.asks
    assert first == ChoiceQuestion(first.id, "Colour", "Which colour?", choices, count="1 of 3", asks=asks)
    assert asks is not None
    assert [(one.id, one.options) for one in asks.questions] == [
        ("colour", choices),
        ("size", other[0]),
        ("ünï", other[1]),
    ]
    assert asks.call_id == "c"
    assert [isinstance(one, ChoiceQuestion) and one.asks for one in user.asked[1:]] == [None, None]
    assert len({one.id for one in user.asked}) == 3


async def test_all_questions_may_be_answered_at_once(tmp_path: Path) -> None:
    questions = [question("colour", "Red", "Blue"), question("size", "S"), question("name", "x")]
    user = User(ModelAnswers((("Red", "but a dark one"), (), ())))
    answer = await said(USER_INPUT, tmp_path, {"questions": questions}, user)
    assert answer == (
        '{"answers":{"colour":{"answers":["Red","but a dark one"]},"size":{"answers":[]},"name":{"answers":[]}}}'
    )
    assert len(user.asked) == 1


@pytest.mark.parametrize(
    ("questions", "fault"),
    [
        (None, "missing field `questions`"),
        ([], "`questions` must have at least 1, found 0"),
        ([question(str(number), "x") for number in range(4)], "`questions` must have at most 3, found 4"),
        ([question("a")], "`questions.0.options` must have at least 1, found 0"),
        (["what?"], "`questions.0` must be an object, found `what?`"),
        ([question("a", "x"), question("a", "y")], "`questions` must each have an `id` of their own"),
    ],
)
async def test_wrong_questions_are_named_in_one_line(tmp_path: Path, questions: Any, fault: str) -> None:
    answer = await said(USER_INPUT, tmp_path, {"questions": questions}, User())
    assert answer.startswith(f"error: failed to parse function arguments: {fault}")
    assert "\n" not in answer
