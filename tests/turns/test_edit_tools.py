"""Plain edits and whole files, for models that fail at patches: judged, asked about, written and shown like patches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.questions import ApprovalQuestion
from tests.support.fake_responses import FakeResponses
from tests.support.home import Place
from tests.support.process import run
from tests.support.rollout import read_rollout
from tests.support.session import Watched, scripted_session, watched_session
from tests.support.wire_dialects import DIALECTS, RESPONSES, Dialect

EDIT_MODEL = '[models."gpt-5.1-codex"]\nedit_tool = "edit"\n'


def edit(path: str, old: str, new: str, **more: Any) -> tuple[str, str, dict[str, Any]]:
    return "c1", "edit_file", {"path": path, "old_text": old, "new_text": new, **more}


def write(path: str, content: str) -> tuple[str, str, dict[str, Any]]:
    return "c1", "write_file", {"path": path, "content": content}


async def output_of(place: Place, call: tuple[str, str, Any], **options: Any) -> tuple[str, Watched]:
    """What the model reads of one call."""
    with FakeResponses(RESPONSES.answer("", [call]), RESPONSES.say("done")) as model:
        async with watched_session(place, model, EDIT_MODEL, **options) as watched:
            if options.get("can_ask"):
                watched.session.subscribe(watched.agree)
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    return model.requests[1].output_of("c1"), watched


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
@pytest.mark.parametrize("table", [EDIT_MODEL, ""], ids=["model", "provider"])
async def test_an_edit_and_a_new_file_on_every_api(place: Place, wire: Dialect, table: str) -> None:
    place.write("app.py", "def greet():\n    return 'Hi'\n")
    calls = [
        ("c1", "edit_file", edit("app.py", "'Hi'", "'Hello'")[2]),
        ("c2", "write_file", write("a/b.txt", "new")[2]),
    ]
    provider: dict[str, Any] = {} if table else {"edit_tool": "edit"}
    with wire.server(wire.answer("", calls), wire.say("done")) as model:
        async with watched_session(place, model, table, wire_api=wire.wire, **provider) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert (place.repo / "app.py").read_text() == "def greet():\n    return 'Hello'\n"
    assert (place.repo / "a/b.txt").read_text() == "new"
    assert [event.changes[0].diff.splitlines()[-2:] for event in watched.of(events.PatchFinished)] == [
        ["-    return 'Hi'", "+    return 'Hello'"],
        ["+new", "\\ No newline at end of file"],
    ]
    sent = json.dumps(model.requests[0].body["tools"])
    assert ('"edit_file"' in sent, '"write_file"' in sent, '"name": "apply_patch"' in sent) == (True, True, False)
    head = model.requests[0].body.get("instructions") or json.dumps(model.requests[0].body)
    assert "Edit files with `apply_patch`" not in head
    assert wire.outputs(model.requests[1]) == {
        "c1": "Success. Updated the following files:\nM app.py",
        "c2": "Success. Updated the following files:\nA a/b.txt",
    }


async def test_a_change_of_the_model_changes_what_is_said_about_its_tools(place: Place) -> None:
    with FakeResponses(*(RESPONSES.say(str(n)) for n in range(4))) as model:
        async with watched_session(place, model, EDIT_MODEL, overrides=('model="gpt-5.5"',)) as watched:
            await watched.say("go")
            for name in ("gpt-5.1-codex", "gpt-5.5"):
                await watched.session.submit(OverrideTurnContext(model=name))
                await watched.say("on")
            await watched.session.submit(OverrideTurnContext(model="gpt-5.4"))
            await watched.say("on")
    instructions = [each.body["instructions"] for each in model.requests]
    about = [("Edit files with `apply_patch`" in text, "`edit_file`" in text) for text in instructions]
    assert about == [(True, False), (False, True), (True, False), (True, False)]
    named = ["edit_file" in {tool.get("name") for tool in each.body["tools"]} for each in model.requests]
    assert named == [False, True, False, False]
    assert model.requests[2].head == model.requests[0].head


async def test_without_the_setting_models_have_patches(place: Place) -> None:
    async with scripted_session(
        place, RESPONSES.say("done"), top='[models."gpt-5.1-codex"]\nedit_tool = "patch"\n', edit_tool="edit"
    ) as (model, w):
        await w.say("go")
    names = [tool.get("name") for tool in model.requests[0].body["tools"]]
    assert ("apply_patch" in names, "edit_file" in names) == (True, False)


@pytest.mark.parametrize(
    ("before", "arguments", "after"),
    [
        ("a b a\n", {"old_text": "a", "new_text": "c", "all": True}, "c b c\n"),
        ("a\r\nb\r\nc\r\n", {"old_text": "a\nb\n", "new_text": "x\ny\n"}, "x\r\ny\r\nc\r\n"),
        ("one\ntwo\n", {"old_text": "two\n", "new_text": ""}, "one\n"),
        ("no end", {"old_text": "end", "new_text": "END"}, "no END"),
        ("a\n", {"old_string": "a", "new_string": "b", "replace_all": "true"}, "b\n"),
        ("*** End Patch\n", {"old_text": "*** End Patch", "new_text": "*** Begin Patch\n+x"}, "*** Begin Patch\n+x\n"),
    ],
)
async def test_what_an_edit_makes_of_a_file(place: Place, before: str, arguments: Any, after: str) -> None:
    file = place.write("f.txt", before.encode())
    file.chmod(0o755)
    await output_of(place, ("c1", "edit_file", {"path": "f.txt", **arguments}))
    assert file.read_bytes().decode() == after
    assert file.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (edit("f.txt", "tw", "x"), "the old text stands 2 times"),
        (edit("f.txt", "thre", "x", all=True), "is not in"),
        (edit("f.txt", "", "x"), "the old text is empty"),
        (edit("f.txt", "one", "one"), "the same"),
        (edit("gone.txt", "one", "x"), "no such file"),
        (edit("bin", "one", "x"), "not UTF-8"),
        (edit(".", "one", "x"), "directory"),
        (edit("", "one", "x"), "path"),
        (edit("f.txt\n", "one", "x"), "line break"),
        (edit("f\0.txt", "one", "x"), "NUL"),
        (write("README.md/x", "y"), "README.md"),
        (("c1", "edit_file", {"path": "f.txt", "old_text": "one"}), "missing field `new_text`"),
        (("c1", "edit_file", {"path": 5, "old_text": "one", "new_text": ""}), "`path` must be a string"),
        (("c1", "write_file", {"path": "n", "content": ["x"]}), "`content` must be a string"),
        (("c1", "write_file", "not json"), "failed to parse"),
        (("c1", "write_file", '{"path": "n", "content": "\\ud800"}'), "Unicode"),
    ],
)
async def test_an_edit_that_does_not_fit_changes_nothing_and_says_why(place: Place, call: Any, words: str) -> None:
    place.write("f.txt", "one\ntwo two\n")
    place.write("bin", b"\xff\xfe")
    output, _ = await output_of(place, call)
    assert words in output
    assert (place.repo / "f.txt").read_text() == "one\ntwo two\n"
    assert sorted(path.name for path in place.repo.iterdir()) == [".git", "README.md", "bin", "f.txt"]


@pytest.mark.parametrize("call", [write("../out.txt", "x"), write(".git/config", "x"), edit(".git/HEAD", "ref", "x")])
async def test_the_policy_holds_for_edits(place: Place, call: Any) -> None:
    before = (place.repo / ".git/HEAD").read_bytes()
    output, watched = await output_of(place, call, sandbox="workspace-write")
    assert output.startswith("patch rejected: ")
    assert len(watched.of(events.PatchRejected)) == 1
    assert (place.repo / ".git/HEAD").read_bytes() == before
    assert not (place.repo.parent / "out.txt").exists()


async def test_the_user_is_asked_with_the_diff(place: Place) -> None:
    place.write("f.txt", "one\ntwo\n")
    output, watched = await output_of(
        place, edit("f.txt", "two", "2"), sandbox="read-only", can_ask=True, approval="on-request"
    )
    [question] = [event.question for event in watched.of(events.QuestionRaised)]
    assert isinstance(question, ApprovalQuestion)
    assert "-two\n+2" in question.changes[0].diff
    assert question.files == (place.repo / "f.txt",)
    assert "Success" in output


def test_a_refusing_hook_for_patches_or_other_programs_edits_holds(place: Place) -> None:
    for matcher in ("apply_patch", "Edit", "edit_file"):
        hook = f'[[hooks.PreToolUse]]\nmatcher = "{matcher}"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\n'
        hook += 'command = "echo no edits >&2; exit 2"\n'
        with FakeResponses(RESPONSES.answer("", [edit("README.md", "Demo", "x")]), RESPONSES.say("done")) as model:
            place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"\n' + EDIT_MODEL + hook)
            assert run(place, "exec", "go").status == 0
        assert "no edits" in model.requests[1].output_of("c1")
        assert "Demo" in (place.repo / "README.md").read_text()


async def test_a_stored_edit_is_shown_as_a_change_and_brought_back(place: Place) -> None:
    with FakeResponses(RESPONSES.answer("", [edit("README.md", "Demo", "Shown")]), RESPONSES.say("done")) as model:
        place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"\n' + EDIT_MODEL)
        live = run(place, "exec", "--json", "go").events
        thread = read_rollout(place.rollouts()[0])[0].payload["id"]
        shown = run(place, "sessions", "show", thread).out
        rewound = run(place, "sessions", "rewind", thread, "--to", "1", "--files")
    changes = [event["item"]["changes"] for event in live if event.get("item", {}).get("type") == "file_change"]
    assert changes[-1] == [{"path": str(place.repo / "README.md"), "kind": "update"}]
    assert "README.md" in shown
    assert (rewound.status, "Demo" in (place.repo / "README.md").read_text()) == (0, True), rewound.err
