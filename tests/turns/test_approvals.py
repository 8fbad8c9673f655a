"""Questions about commands and patches, answered each way, as the model and a front end see them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from codex_py.protocol.policy import ApprovalPolicy
from codex_py.protocol.questions import ApprovalQuestion, ApprovalReply, FormReply, ModelAnswers, QuestionAnswer
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import Watched, scripted_session, watched_session
from tests.unit.patch_cases import patch

ALWAYS = "rules/codex-py/default.rules"


def answering(watched: Watched, *answers: QuestionAnswer | None) -> list[ApprovalQuestion]:
    """Answer the questions in turn, as a front end does: by an op, while the turn waits."""
    waiting = iter(answers)
    questions: list[ApprovalQuestion] = []

    def listen(event: events.Event) -> None:
        if isinstance(event, events.QuestionRaised):
            assert isinstance(event.question, ApprovalQuestion)
            questions.append(event.question)
            answer = watched.session.submit(AnswerQuestion(event.question.id, next(waiting)))
            watched.tasks.append(asyncio.ensure_future(answer))

    watched.session.subscribe(listen)
    return questions


def run(number: int, cmd: str, **arguments: Any) -> Any:
    return call(f"c{number}", "exec_command", {"cmd": cmd, "login": False, **arguments})


class TurnResult:
    """What a turn gave: the questions, and the outputs the model read."""

    def __init__(self, questions: list[ApprovalQuestion], model: FakeResponses, watched: Watched) -> None:
        self.asked = questions
        self.outputs = [model.requests[-1].output_of(f"c{number + 1}") for number in range(len(model.requests) - 1)]
        self.watched = watched


async def turn(
    place: Place,
    *calls: Any,
    answers: tuple[QuestionAnswer | None, ...] = (),
    approval: ApprovalPolicy = "untrusted",
    sandbox: str = "workspace-write",
    can_ask: bool = True,
    top: str = "",
) -> TurnResult:
    """A turn that makes the calls one after the other."""
    with FakeResponses(*([one] for one in calls), [say("done")]) as model:
        async with watched_session(place, model, top, sandbox=sandbox, approval=approval, can_ask=can_ask) as watched:
            questions = answering(watched, *answers)
            ended = await watched.say("go")
            assert isinstance(ended, events.TurnCompleted), ended
    return TurnResult(questions, model, watched)


async def test_reading_needs_no_question_and_the_rest_does(place: Place) -> None:
    result = await turn(place, run(1, "cat README.md | head -1"), run(2, "touch made"), answers=("once",))
    assert result.outputs[0].endswith("# Demo\n")
    assert "exited with code 0" in result.outputs[1]
    assert (place.repo / "made").exists()
    [question] = result.asked
    assert question == ApprovalQuestion(
        id=question.id,
        call_id="c2",
        command="/bin/bash -c 'touch made'",
        cwd=place.repo,
        reason="it is not known to only read",
        pattern=("touch", "made"),
        scopes=("once", "session", "project", "always"),
    )


@pytest.mark.parametrize("answer", [None, "", "no", "yes", "ALWAYS", "once "])
async def test_whatever_is_no_scope_is_a_no(place: Place, answer: str | None) -> None:
    result = await turn(place, run(1, "touch made"), answers=(answer,))
    assert result.outputs[0].startswith("command declined by the user")
    assert not (place.repo / "made").exists()
    [finished] = result.watched.of(events.CommandFinished)
    assert (finished.status, finished.exit_code) == ("declined", None)
    assert result.watched.of(events.CommandStarted) == []


async def test_a_yes_for_the_session_is_for_this_very_command(place: Place) -> None:
    calls = [run(1, "touch a"), run(2, "touch a"), run(3, "touch b"), run(4, "touch a", workdir=".git/..")]
    result = await turn(place, *calls, answers=("session", "once", "once"))
    assert [question.call_id for question in result.asked] == ["c1", "c3", "c4"]


async def test_a_yes_for_good_is_remembered_by_the_next_session(place: Place) -> None:
    wanted = {"prefix_rule": ["touch"]}
    result = await turn(place, run(1, "touch a", **wanted), run(2, "touch b"), answers=("always",))
    assert [question.pattern for question in result.asked] == [("touch",)]
    assert 'prefix_rule(pattern = ["touch"], decision = "allow")' in (place.codex_home / ALWAYS).read_text()
    result = await turn(place, run(1, "touch c"))
    assert result.asked == []
    assert (place.repo / "c").exists()


async def test_a_yes_for_the_project_counts_there_only(place: Place) -> None:
    await turn(place, run(1, "touch a"), answers=("project",))
    assert not (place.codex_home / ALWAYS).exists()
    [file] = (place.codex_home / "rules/codex-py/projects").iterdir()
    assert f"`{place.repo}`" in file.read_text()
    assert (await turn(place, run(1, "touch a"))).asked == []
    file.rename(file.with_name("other-0123.rules"))
    assert len((await turn(place, run(1, "touch a"), answers=("once",))).asked) == 1


async def test_leaving_the_sandbox_takes_a_yes(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    policy = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    leave = {"sandbox_permissions": "require_escalated", "justification": "May I write next door?"}
    calls = [run(1, f"touch {out}/a"), run(2, f"touch {out}/b", **leave), run(3, f"touch {out}/c", **leave)]
    result = await turn(place, *calls, answers=(None, "once"), approval="on-request", top=policy)
    assert "Read-only file system" in result.outputs[0]
    assert result.outputs[1].startswith("command declined")
    assert sorted(path.name for path in out.iterdir()) == ["c"]
    assert [question.outside for question in result.asked] == [True, True]
    assert result.asked[0].justification == "May I write next door?"


async def test_without_a_justification_nobody_is_asked(place: Place) -> None:
    result = await turn(place, run(1, "true", sandbox_permissions="require_escalated"), approval="on-request")
    assert "needs a `justification`" in result.outputs[0]


async def test_a_denied_command_runs_once_more_outside_after_a_yes(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    policy = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    calls = [run(1, f"touch {out}/a"), run(2, f"touch {out}/b"), run(3, "false")]
    result = await turn(place, *calls, answers=("once", None), approval="on-failure", top=policy)
    assert "exited with code 0" in result.outputs[0]
    assert "Read-only file system" in result.outputs[1]
    assert [path.name for path in out.iterdir()] == ["a"]
    assert [question.call_id for question in result.asked] == ["c1", "c2"]


@pytest.mark.parametrize("approval", ["on-request", "never"])
async def test_a_dangerous_command_is_asked_about_or_refused(place: Place, approval: ApprovalPolicy) -> None:
    place.write("keep", "x")
    answers = (None,) if approval == "on-request" else ()
    result = await turn(place, run(1, "git clean -fdx"), answers=answers, approval=approval)
    assert (place.repo / "keep").exists()
    if approval == "never":
        assert result.outputs[0].startswith("refused: the command is dangerous: ")
    else:
        assert result.asked[0].scopes == ("once", "session")


async def test_exec_never_asks(place: Place) -> None:
    leave = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    result = await turn(place, run(1, "true", **leave), run(2, "true"), approval="on-request", can_ask=False)
    assert result.asked == []
    assert result.outputs[0].startswith("escalated permissions are not available")
    assert "exited with code 0" in result.outputs[1]


async def test_rules_are_read_and_allowing_does_not_lift_the_sandbox(place: Place, tmp_path: Path) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "mine.rules").write_text(
        'prefix_rule(pattern = ["touch"])\n'
        'prefix_rule(pattern = ["mkdir"], sandbox = "off")\n'
        'prefix_rule(pattern = ["git", "push"], decision = "forbidden", justification = "a person pushes")\n'
    )
    machine = place.system / "rules"
    machine.mkdir(parents=True)
    (machine / "all.rules").write_text('prefix_rule(["sudo"], "forbidden", "nobody is root here")\n')
    out = tmp_path / "out"
    policy = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    calls = [run(1, f"mkdir {out}"), run(2, f"touch {out}/a"), run(3, "x=$(git push)"), run(4, f"mkdir {out}/b > log")]
    result = await turn(place, *calls, run(5, "env sudo ls > log"), approval="never", top=policy)
    assert result.outputs[4] == "command refused: forbidden by a rule of the user: nobody is root here"
    assert out.is_dir()
    assert "Read-only file system" in result.outputs[1]
    assert result.outputs[2] == "command refused: forbidden by a rule of the user: a person pushes"
    assert "Read-only file system" in (place.repo / "log").read_text() + result.outputs[3]
    assert not (out / "b").exists()


async def test_no_command_runs_beside_a_rules_file_with_a_fault(place: Place) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "a.rules").write_text('prefix_rule(["git", "push"], "forbiden")\n')
    (rules / "b.rules").write_text('prefix_rule(pattern = ["touch"])\n')
    result = await turn(place, run(1, "touch a"), run(2, "cat README.md"))
    fault = (
        f"the rules in `{rules}/a.rules` cannot be used: line 1: `decision` is `forbiden`; did you mean `forbidden`? "
        "allowed are `allow`, `prompt`, `forbidden`; correct or remove it, or start with `--ignore-rules`"
    )
    assert result.outputs == [f"command refused: {fault}"] * 2
    assert (result.asked, (place.repo / "a").exists()) == ([], False)
    assert [warning.message for warning in result.watched.of(events.Warned)] == [f"no command runs: {fault}"]


async def test_a_project_s_rules_file_with_a_fault_stops_its_commands(place: Place) -> None:
    place.write(".codex/rules/team.rules", "prefix_rule(\n")
    trusted = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
    result = await turn(place, run(1, "touch a"), top=trusted)
    assert f"`{place.repo}/.codex/rules/team.rules` cannot be used: line 1" in result.outputs[0]
    assert "exited with code 0" in (await turn(place, run(1, "true"), approval="never")).outputs[0]


async def test_a_rules_file_that_others_can_write_only_restricts(place: Place) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "c.rules").write_text('prefix_rule(["make"])\nprefix_rule(["touch"], "forbidden")\n')
    (rules / "c.rules").chmod(0o666)
    result = await turn(place, run(1, "make"), run(2, "touch b"), answers=(None,))
    assert len(result.asked) == 1
    assert "forbidden by a rule" in result.outputs[1]
    assert "can be written by others" in result.watched.of(events.Warned)[0].message


async def test_rules_that_are_not_read_stop_every_command(place: Place) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    for number in range(66):
        (rules / f"{number:02}.rules").write_text('prefix_rule(pattern = ["touch"], decision = "forbidden")\n')
    of_machine = place.system / "rules"
    of_machine.parent.mkdir(parents=True)
    of_machine.write_text("no directory")
    result = await turn(place, run(1, "touch a"))
    faults = [
        f"the rules in `{of_machine}` cannot be used: not a directory; correct or remove it",
        f"the rules in `{rules}` cannot be used: 66 files of rules, of which only 64 are read; "
        "correct or remove it, or start with `--ignore-rules`",
    ]
    assert result.outputs == [f"command refused: {faults[0]}"]
    assert [one.message for one in result.watched.of(events.Warned)] == [
        f"no command runs: {fault}" for fault in faults
    ]


async def test_a_rule_holds_behind_a_here_document(place: Place) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "a.rules").write_text('prefix_rule(pattern = ["touch"], decision = "forbidden")\n')
    result = await turn(place, run(1, "cat > f <<E; touch a\nhi\nE"), approval="never")
    assert "forbidden by a rule" in result.outputs[0]
    assert not (place.repo / "a").exists()


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_trusted_projects_rules_may_only_be_stricter(place: Place, trusted: bool) -> None:
    place.write(
        ".codex/rules/team.rules",
        'prefix_rule(pattern = ["touch"])\nprefix_rule(pattern = ["make"], decision = "forbidden")\n',
    )
    level = "trusted" if trusted else "untrusted"
    top = f'[projects."{place.repo}"]\ntrust_level = "{level}"\n'
    answers = (None,) if trusted else (None, None)
    result = await turn(place, run(1, "touch a"), run(2, "make"), answers=answers, top=top)
    assert not (place.repo / "a").exists()
    assert ("forbidden by a rule" in result.outputs[1]) == trusted


async def test_what_is_shown_hides_nothing(place: Place) -> None:
    result = await turn(place, run(1, "echo 'a\u202e\u200b\x1b[2K' > x\r\nrm\u00a0-i x"), answers=(None,))
    assert result.asked[0].command == "/bin/bash -c \"echo 'a\\u{202e}\\u{200b}␛[2K' > x␍\nrm\\u{a0}-i x\""


async def test_a_shell_of_the_models_choice_makes_nothing_safe(place: Place) -> None:
    evil = place.write("evil", "#!/bin/sh\ntouch ran\n")
    evil.chmod(0o755)
    result = await turn(place, run(1, "ls", shell=str(evil)), answers=(None,))
    assert len(result.asked) == 1
    assert not (place.repo / "ran").exists()


async def test_a_program_from_the_repository_is_not_the_one_that_is_known(place: Place) -> None:
    fake = place.write("bin/cat", "#!/bin/sh\ntouch ran\n")
    fake.chmod(0o755)
    place = place.with_env(PATH=f"{place.repo}/bin:{place.env['PATH']}")
    result = await turn(place, run(1, "cat README.md"), answers=(None,))
    assert len(result.asked) == 1


def planted(place: Place, name: str) -> Place:
    """The place with a virtual environment of the project on the `PATH`, and a program in it that leaves a trace."""
    program = place.write(f".venv/bin/{name}", "#!/bin/sh\ntouch planted\n")
    program.chmod(0o755)
    return place.with_env(PATH=f"{place.repo}/.venv/bin:{place.env['PATH']}")


OUTSIDE = {"sandbox_permissions": "require_escalated", "justification": "it has to"}
LEAVING = 'prefix_rule(pattern = ["{}"], sandbox = "off")\n'


def own_rules(place: Place, text: str) -> None:
    (place.codex_home / "rules").mkdir(mode=0o700)
    (place.codex_home / "rules/own.rules").write_text(text)


async def test_a_rule_about_a_bare_name_does_not_let_a_planted_program_out(place: Place) -> None:
    place = planted(place, "git")
    own_rules(place, LEAVING.format("git"))
    result = await turn(place, run(1, "git status"), answers=(None,), approval="on-request")
    assert result.asked[0].outside
    assert f"`git` is `{place.repo}/.venv/bin/git`" in result.asked[0].reason
    assert not result.asked[0].pattern
    assert not (place.repo / "planted").exists()


async def test_with_nobody_to_ask_a_planted_program_stays_in_the_sandbox(place: Place, tmp_path: Path) -> None:
    place = planted(place, "git")
    place.write(".venv/bin/git", f"#!/bin/sh\ntouch {tmp_path}/outside\n")
    own_rules(place, LEAVING.format("git"))
    policy = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    result = await turn(place, run(1, "git status"), approval="never", can_ask=False, top=policy)
    assert "Read-only file system" in result.outputs[0] or "Permission denied" in result.outputs[0]
    assert not (tmp_path / "outside").exists()


async def test_a_rule_that_names_the_program_itself_lets_it_out(place: Place) -> None:
    place = planted(place, "tool")
    path = f"{place.repo}/.venv/bin/tool"
    own_rules(place, LEAVING.format("tool") + f'host_executable(name = "tool", paths = ["{path}"])\n')
    await turn(place, run(1, "tool"), approval="on-request")
    assert (place.repo / "planted").exists()


async def test_a_yes_for_the_session_is_to_the_program_it_named(place: Place) -> None:
    place = planted(place, "other")
    plant = f"printf '#!/bin/sh\\ntouch planted\\n' > {place.repo}/.venv/bin/tac && chmod +x {place.repo}/.venv/bin/tac"
    result = await turn(
        place,
        run(1, "tac README.md", **OUTSIDE),
        run(2, plant),
        run(3, "tac README.md", **OUTSIDE),
        answers=("session", None),
        approval="on-request",
    )
    assert [f"`tac` is `{place.repo}/.venv/bin/tac`" in question.reason for question in result.asked] == [False, True]
    assert "# Demo" in result.outputs[0]
    assert not (place.repo / "planted").exists()


@pytest.mark.parametrize("login", [False, True])
async def test_a_command_let_out_finds_no_program_where_commands_may_write(place: Place, login: bool) -> None:
    place = planted(place, "tac")
    (place.home / ".profile").write_text(f"PATH={place.repo}/.venv/bin:$PATH\n")
    place.write("name", "tac\n")
    script = "read -r one < name; $one README.md"  # a word that nobody can look up beforehand
    result = await turn(place, run(1, script, **OUTSIDE, login=login), answers=("once",), approval="on-request")
    assert result.asked[0].reason == "it asks to run outside the sandbox"
    assert "# Demo" in result.outputs[0]
    assert not (place.repo / "planted").exists()


async def test_two_calls_at_once_ask_one_after_the_other(place: Place) -> None:
    both = [run(1, "touch a"), run(2, "touch a")]
    async with scripted_session(
        place, both, [say("done")], sandbox="workspace-write", approval="untrusted", can_ask=True
    ) as (_, watched):
        questions = answering(watched, "session")
        await watched.say("go")
    assert len(questions) == 1
    assert len(watched.of(events.CommandFinished)) == 2


ADD = "*** Add File: {}\n+x"


@pytest.mark.parametrize("answer", ["once", "session", None])
async def test_a_patch_outside_the_directories_asks(place: Place, tmp_path: Path, answer: str | None) -> None:
    policy = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    target = tmp_path / "outside.txt"
    again = patch(f"*** Update File: {target}\n@@\n-x\n+y")
    calls = [
        call("c1", "apply_patch", {"input": patch(ADD.format("inside.txt"))}),
        call("c2", "apply_patch", {"input": patch(ADD.format(target))}),
        call("c3", "apply_patch", {"input": again}),
    ]
    answers = {"once": ("once", None), "session": ("session",), None: (None, None)}[answer]
    result = await turn(place, *calls, answers=answers, approval="on-request", top=policy)
    assert (place.repo / "inside.txt").read_text() == "x\n"
    assert result.asked[0].call_id == "c2"
    assert result.asked[0].files == (target,)
    assert result.asked[0].outside
    found = target.read_text() if target.exists() else None
    assert found == {"once": "x\n", "session": "y\n", None: None}[answer]
    if answer is None:
        assert result.outputs[1].startswith("patch rejected: declined by the user")


async def test_a_patch_into_skills_asks_and_says_what_a_skill_is(place: Place) -> None:
    new = call("c1", "apply_patch", {"input": patch(ADD.format(".agents/skills/new/SKILL.md"))})
    result = await turn(place, new, answers=("once",), approval="on-request")
    assert [question.reason for question in result.asked] == [
        "it writes a skill, which the agent of later sessions follows like your own instructions"
    ]
    assert (place.repo / ".agents/skills/new/SKILL.md").read_text() == "x\n"


async def test_a_patch_of_a_file_that_must_not_be_read_is_refused_and_shows_nothing_of_it(place: Place) -> None:
    top = 'sandbox.deny_read = ["**/.env"]\n'
    place.write(".env", "TOKEN=hunter2-hunter2\n")
    place.write("linked", "").unlink()
    (place.repo / "linked").symlink_to(".env")
    edits = [
        call(f"c{number}", "apply_patch", {"input": patch(hunk)})
        for number, hunk in enumerate(
            (
                "*** Update File: .env\n@@\n-TOKEN=guess\n+x",
                "*** Delete File: linked",
                "*** Update File: sub/../.env\n@@\n-TOKEN=guess\n+x",
                "*** Update File: late/.env\n@@\n-TOKEN=guess\n+x",
            )
        )
    ]
    with FakeResponses([run(9, "true")], [say("one")], edits, [say("two")]) as model:
        async with watched_session(place, model, top, sandbox="workspace-write", approval="on-request") as watched:
            questions = answering(watched, *["once"] * len(edits))
            await watched.say("go")
            place.write("late/.env", "TOKEN=hunter2-hunter2\n")
            await watched.say("go")
    outputs = [model.requests[-1].output_of(f"c{number}") for number in range(len(edits))]
    assert all(output.startswith("patch rejected: the sandbox does not let") for output in outputs)
    assert "hunter2" not in model.requests[-1].raw.decode() + repr(watched.seen)
    assert questions == []
    assert (place.repo / ".env").read_text() == "TOKEN=hunter2-hunter2\n"


async def test_under_untrusted_every_patch_asks(place: Place) -> None:
    calls = [call(f"c{n}", "apply_patch", {"input": patch(ADD.format(f"f{n}"))}) for n in (1, 2)]
    result = await turn(place, *calls, answers=("once", None))
    assert [question.outside for question in result.asked] == [False, False]
    assert (place.repo / "f1").exists()
    assert not (place.repo / "f2").exists()


async def test_a_pattern_that_was_edited_is_what_is_kept(place: Place) -> None:
    edited = ApprovalReply("always", ("npm", "run"))
    result = await turn(place, run(1, "npm run build -- --fast"), run(2, "npm run lint"), answers=(edited,))
    assert len(result.asked) == 1
    assert '["npm", "run"]' in (place.codex_home / ALWAYS).read_text()


@pytest.mark.parametrize("words", [("git", "push"), ("npm", "test"), ("",)])
async def test_a_pattern_that_does_not_fit_is_not_kept_and_the_command_runs(
    place: Place, words: tuple[str, ...]
) -> None:
    result = await turn(place, run(1, "touch made"), answers=(ApprovalReply("always", words),))
    assert (place.repo / "made").exists()
    assert not (place.codex_home / ALWAYS).exists()
    assert [one.message for one in result.watched.of(events.Warned) if "is not kept" in one.message]


async def test_a_no_tells_the_model_what_the_user_says(place: Place) -> None:
    result = await turn(place, run(1, "touch made"), answers=(ApprovalReply(message="use make instead"),))
    assert result.outputs == ["command declined by the user, who says: use make instead"]
    assert not (place.repo / "made").exists()


@pytest.mark.parametrize(
    "answer", ["{", '{"scope": "once"}', ModelAnswers((("once",),)), FormReply("accept", {"scope": "once"})]
)
async def test_a_reply_that_makes_no_sense_is_a_no(place: Place, answer: QuestionAnswer) -> None:
    result = await turn(place, run(1, "touch made"), answers=(answer,))
    assert result.outputs[0].startswith("command declined by the user: do not try it again")
    assert not (place.repo / "made").exists()


async def test_neither_commands_nor_patches_change_a_home_that_lies_in_the_workspace(place: Place) -> None:
    own = place.repo / "tools" / "own"
    own.mkdir(parents=True)
    moved = Place(place.home, own, place.repo, {**place.env, "CODEX_HOME": str(own)})
    planted = call("c3", "apply_patch", {"input": patch("*** Add File: tools/own/work.config.toml", "+x")})
    result = await turn(
        moved,
        run(1, "echo 'approval_policy = \"never\"' >> tools/own/config.toml; touch tools/own/new"),
        run(2, "mv tools other"),
        planted,
        run(4, "touch tools/beside"),
        approval="never",
        can_ask=False,
    )
    # The settings are hidden from commands, too.
    assert "Permission denied" in result.outputs[0]
    assert "Read-only file system" in result.outputs[0]
    assert "busy" in result.outputs[1]
    assert result.outputs[2].startswith("patch rejected: the sandbox does not let")
    assert (place.repo / "tools" / "beside").exists()
    assert "never" not in (own / "config.toml").read_text()
    assert not (own / "work.config.toml").exists()


async def test_a_home_that_is_the_workspace_is_reported_to_the_model_as_no_writable_directory(place: Place) -> None:
    place.configure("")
    moved = Place(place.home, place.repo, place.repo, {**place.env, "CODEX_HOME": str(place.repo)})
    with FakeResponses([run(1, "echo x >> config.toml; touch new")], [say("done")]) as model:
        async with watched_session(moved, model, sandbox="workspace-write") as watched:
            await watched.say("go")
    for refusal in ("Permission denied", "Read-only file system"):
        assert refusal in model.requests[1].output_of("c1")
    [result] = [text for text in model.requests[0].texts("developer") if "sandbox_mode" in text]
    assert "The writable roots are " in result
    assert f"`{place.repo}`" not in result
