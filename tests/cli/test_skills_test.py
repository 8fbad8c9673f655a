"""`codex-py skills test`: each prompt runs through the real loop with the skill and without it, and is judged."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import (
    FakeResponses,
    Request,
    api_error,
    call,
    completed,
    fake_model,
    repeat,
    say,
    tokens,
)
from tests.support.home import Place
from tests.support.process import Finished, run
from tests.support.script import Stream
from tests.support.skills import NO_BUNDLED, add_skill, own_root, repo_root, skill_text

BODY = "Run `printf linted > out.txt`, then say LINTED."
WHEN = '"Lints a file. Use when the user asks for lint."'
VAGUE = '"Lints a file."'
CASE = """
prompt: please lint app.py
files:
  app.py: "x = 1"
checks:
  - skill: used
  - file: out.txt
    matches: ^linted$
  - command: grep -q linted out.txt && test -f app.py
  - answer: LINTED
"""
PRICED = "\n[models.'gpt-5.1-codex']\ninput_usd = 1.0\noutput_usd = 1.0\n"
OTHER = "prompt: say hello\nchecks:\n  - skill: unused\n  - answer: hello\n"


def obedient(request: Request) -> Stream:
    """Follows the skill for a message about lint, if its description says `Use when`; says hello otherwise."""
    text = json.dumps(request.body)
    listed = re.search(r"- lint: ([^\n]*?)\(file: ([^)]*)\)", "\n".join(request.texts("developer")))
    question = [message for message in request.texts("user") if "please lint" in message]
    outputs = [item for item in request.input if item["type"] == "function_call_output"]
    if not (question and listed and "Use when" in listed[1]):
        return [say("hello")]
    if not outputs:
        return [call("c1", "exec_command", {"cmd": f"cat '{_whole(listed[2], text)}'"})]
    if len(outputs) == 1:
        return [call("c2", "exec_command", {"cmd": "printf linted > out.txt"})]
    return [say("LINTED")]


def _whole(path: str, body: str) -> str:
    """The path of the list with its alias replaced."""
    alias, _, rest = path.partition("/")
    root = re.search(rf"`{alias}`[^/]*`(/[^`]*)`", body)
    return f"{root[1]}/{rest}" if root else path


def add(place: Place, description: str, *cases: str, root: Callable[[Place], Path] = repo_root) -> Path:
    path = add_skill(root(place), "lint", skill_text("lint", description, body=BODY))
    for number, case in enumerate(cases, start=1):
        file = path.parent / f"evals/case{number}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(case)
    return path


def run_test(place: Place, *arguments: str, play: Callable[[Request], Any] = obedient) -> tuple[Finished, int]:
    """The command against a model that plays this; how it ended, and how many requests it made."""
    with fake_model(place, repeat(play), excuse={"threads"}, top=NO_BUNDLED) as model:
        ended = run(place, "skills", "test", *arguments)
    return ended, len(model.requests)


def result(place: Place, *arguments: str) -> dict[str, Any]:
    ended, _ = run_test(place, "lint", "--json", *arguments)
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


@pytest.mark.parametrize("root", [repo_root, own_root])
def test_a_model_that_follows_the_skill_gives_the_figures_its_script_implies(
    place: Place, root: Callable[[Place], Path]
) -> None:
    add(place, WHEN, CASE, OTHER, root=root)
    found = result(place, "--runs", "2")
    assert (found["skill"], found["activation"]) == ("lint", 1.0)
    assert (found["with"]["pass_rate"], found["without"]["pass_rate"]) == (1.0, 0.5)
    assert (found["with"]["runs"], found["without"]["runs"]) == (4, 4)
    # The scripted model counts each request the same: three for the skill, one without.
    one = found["without"]["tokens"]
    assert found["with"]["tokens"] == (3 * one + one) / 2
    assert found["tokens"] == 4 * found["with"]["tokens"] + 4 * one
    difference = found["difference"]["pass_rate"]
    assert (difference["value"], difference["low"] < 0.5 < difference["high"]) == (0.5, True)
    assert not (place.codex_home / "skills-usage.jsonl").exists()
    assert place.rollouts() == []


def test_a_description_that_does_not_say_when_is_seen_in_the_activation(place: Place) -> None:
    add(place, VAGUE, CASE, OTHER)
    found = result(place)
    assert found["activation"] == 0.5
    assert (found["with"]["pass_rate"], found["without"]["pass_rate"]) == (0.5, 0.5)
    assert [(entry["case"], entry["arm"], entry["used"], entry["passed"]) for entry in found["runs"]] == [
        ("case1", "with", False, False),
        ("case1", "without", False, False),
        ("case2", "with", False, True),
        ("case2", "without", False, True),
    ]


def test_triggers_cost_one_request_a_prompt(place: Place) -> None:
    add(place, WHEN, CASE, OTHER)
    ended, requests = run_test(place, "lint", "--triggers", "--json")
    found = json.loads(ended.out)
    assert (ended.status, requests, found["activation"]) == (0, 2, 1.0)
    assert "without" not in found


def test_the_table_and_the_page_say_the_same(place: Place) -> None:
    add(place, WHEN, CASE)
    ended, _ = run_test(place, "lint", "--jobs", "2", "--html", "page.html")
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[:2] == ["skill: lint", "activation: 100% (used 1 of 1 times when it should be)"]
    assert [line.split("  ")[0] for line in lines[3:]] == ["", "pass rate", "tokens", "seconds"]
    assert " ".join(lines[4].split()) == "pass rate 100% (1 of 1) 0% (0 of 1) +100% -42% to +100%"
    page = (place.repo / "page.html").read_text()
    assert "100% (1 of 1) with the skill, 0% (0 of 1) without it; difference +100% (-42% to +100%)." in page
    assert "<script" not in page


def test_the_result_is_printed_when_the_page_cannot_be_written(place: Place) -> None:
    add(place, WHEN, CASE)
    ended, _ = run_test(place, "lint", "--html", "/nowhere/page.html")
    assert ended.status == 1
    assert ended.out.splitlines()[0] == "skill: lint"
    assert ended.err.splitlines()[-1].startswith("error: cannot write `/nowhere/page.html`")


def test_each_run_has_a_fresh_copy_and_sees_no_evaluations(place: Place) -> None:
    add(place, WHEN, CASE)
    seen: list[str] = []

    def look(request: Request) -> Stream:
        outputs = [item["output"] for item in request.input if item["type"] == "function_call_output"]
        if not outputs:
            listed = re.search(r"\(file: ([^)]*)/SKILL.md\)", "\n".join(request.texts("developer")))
            where = f"ls '{listed[1]}'; " if listed else ""
            return [call("c1", "exec_command", {"cmd": f"{where}pwd; ls; touch left-behind"})]
        seen.append(str(outputs[0]))
        return [say("done")]

    ended, _ = run_test(place, "lint", "--runs", "2", play=look)
    assert ended.status == 0, ended.err
    assert len(seen) == 4
    assert all("app.py" in text and "left-behind" not in text and "evals" not in text for text in seen)
    assert len({line for text in seen for line in text.splitlines() if line.endswith("/work")}) == 4
    assert not any(Path(line).exists() for text in seen for line in text.splitlines() if line.endswith("/work"))


def test_a_model_that_fails_is_no_failed_check(place: Place) -> None:
    add(place, WHEN, CASE)
    ended, _ = run_test(place, "lint", "--json", play=lambda _: api_error(400, "no such model"))
    found = json.loads(ended.out)
    assert (ended.status, found["failed"], found["activation"], found["with"]["pass_rate"]) == (1, 2, None, None)
    assert "2 of 2 runs count in no rate: " in ended.err
    assert "no such model" in ended.err
    shown, _ = run_test(place, "lint", play=lambda _: api_error(400, "no such model"))
    assert (shown.status, [line.split() for line in shown.out.splitlines()[4:]]) == (
        1,
        [
            ["pass", "rate", "-", "(0", "of", "0)", "-", "(0", "of", "0)", "-", "-"],
            ["tokens", *"----"],
            ["seconds", *"----"],
        ],
    )


def test_a_run_that_dies_takes_no_other_with_it(place: Place) -> None:
    add(place, WHEN, CASE, OTHER.replace("say hello", "die"))

    def dying(request: Request) -> Stream:
        if "die" not in request.texts("user"):
            return obedient(request)
        # The shell of a command is a child of the process of the run.
        return [call("c1", "exec_command", {"cmd": "kill -9 $PPID"})]

    with fake_model(place, repeat(dying), excuse={"threads"}, top=f'sandbox_mode = "danger-full-access"\n{NO_BUNDLED}'):
        ended = run(place, "skills", "test", "lint", "--json")
    found = json.loads(ended.out)
    assert (ended.status, found["failed"], found["with"]["pass_rate"]) == (1, 2, 1.0)
    assert "2 of 4 runs count in no rate: the run ended with status -9" in ended.err


def test_the_budget_ends_the_test(place: Place) -> None:
    add(place, WHEN, CASE)
    with fake_model(place, repeat(obedient), excuse={"threads"}, top=NO_BUNDLED):
        ended = run(place, "skills", "test", "lint", "--max-usd", "0.000001", "--runs", "3", "--json")
    found = json.loads(ended.out)
    assert (ended.status, found["failed"] > 0) == (1, True)
    assert "budget" in ended.err


def test_evaluations_of_the_community_are_read(place: Place) -> None:
    path = add(place, WHEN)
    evals = path.parent / "evals"
    (evals / "files").mkdir(parents=True)
    (evals / "files/app.py").write_text("x = 1\n")
    listed = [
        {"id": 7, "prompt": "please lint app.py", "expected_output": "a clean file", "files": ["evals/files/app.py"],
         "assertions": ["The file is linted", {"text": "It says so"}]},
        {"id": 8, "prompt": "say hello", "expected_output": "", "assertions": [], "should_trigger": False,
         "checks": [{"answer": "^hello$"}, "says hello", {"type": "regex"}], "runs": 2},
    ]  # fmt: skip
    (evals / "evals.json").write_text(json.dumps({"skill_name": "lint", "evals": listed}))
    queries = [{"query": "please lint it", "should_trigger": True}, {"query": "hi", "should_trigger": False}]
    (evals / "triggers.json").write_text(json.dumps(queries))
    found = result(place)
    assert found["activation"] == 1.0
    first = found["runs"][0]
    assert (first["case"], first["used"], first["passed"]) == ("evals 7", True, None)
    assert first["expectations"] == ["a clean file", "The file is linted", "It says so"]
    own = [entry for entry in found["runs"] if entry["case"] == "evals 8"]
    assert [(entry["should_use"], entry["passed"]) for entry in own] == [(False, True)] * 4


def community(place: Place) -> None:
    path = add(place, WHEN)
    file = path.parent / "evals/evals.json"
    file.parent.mkdir()
    sentences = ["The file out.txt is there", "It says so"]
    file.write_text(json.dumps({"evals": [{"id": 1, "prompt": "please lint app.py", "expectations": sentences}]}))


def judging(request: Request) -> Any:
    """Follows the skill, and judges what it is shown."""
    text = "\n".join(request.texts("user"))
    if "<sentences>" not in text:
        return obedient(request)
    assert "1. The file out.txt is there\n2. It says so" in text
    assert "- lint:" not in json.dumps(request.body)
    verdicts = [
        {"passed": '<file name="out.txt">\nlinted' in text, "reason": "there is no out.txt"},
        {"passed": "<answer>\nLINTED" in text, "reason": "it says hello"},
    ]
    return [say(json.dumps({"verdicts": verdicts}))]


def test_sentences_are_judged_by_the_model_with_one_request_a_run(place: Place) -> None:
    community(place)
    ended, requests = run_test(place, "lint", "--json", play=judging)
    found = json.loads(ended.out)
    assert (ended.status, found["with"]["pass_rate"], found["without"]["pass_rate"]) == (0, 1.0, 0.0)
    # Three for the skill and one without it, and one for each judgement.
    assert requests == 3 + 1 + 2
    assert found["with"]["tokens"] == 3 * found["without"]["tokens"]
    checks = found["runs"][1]["checks"]
    assert [(check["passed"], check["detail"]) for check in checks] == [
        (False, "judged by the model: there is no out.txt"),
        (False, "judged by the model: it says hello"),
    ]
    assert all(check["check"].endswith("judged by the model") for check in checks)
    assert "the model judged 4 sentences; they count in the pass rates" in ended.err


@pytest.mark.parametrize(
    "answer", ["yes to all", '{"verdicts": []}', '{"verdicts": [{"passed": "yes", "reason": ""}]}']
)
def test_sentences_without_verdicts_are_not_judged_and_that_is_said(place: Place, answer: str) -> None:
    community(place)

    def evading(request: Request) -> Any:
        return [say(answer)] if "<sentences>" in "\n".join(request.texts("user")) else obedient(request)

    ended, _ = run_test(place, "lint", "--json", play=evading)
    found = json.loads(ended.out)
    assert (ended.status, found["with"]["pass_rate"], found["activation"]) == (0, None, 1.0)
    assert all(entry["passed"] is None and entry["not_judged"] for entry in found["runs"])
    assert "the model did not judge 4 sentences (" in ended.err


def test_a_judgement_that_was_asked_for_twice_costs_what_both_requests_cost(place: Place) -> None:
    community(place)

    def hesitating(request: Request) -> Stream:
        answer = judging(request) if "<sentences>" in "\n".join(request.texts("user")) else [say("hello")]
        if "<sentences>" in "\n".join(request.texts("user")) and not request.texts("assistant"):
            answer = [say("yes to all")]
        return [*answer, completed(tokens(1000, 0))]

    with fake_model(place, repeat(hesitating), excuse={"threads"}, top=NO_BUNDLED) as model:
        place.configure((place.codex_home / "config.toml").read_text() + PRICED)
        ended = run(place, "skills", "test", "lint", "--json")
    found = json.loads(ended.out)
    # In each arm one request for the answer and two for the judgement, of a thousand tokens each.
    assert [round(entry["usd"], 6) for entry in found["runs"]] == [0.003, 0.003]
    assert len(model.requests) == 6


def test_the_offline_model_judges_no_sentence(place: Place) -> None:
    community(place)
    place.configure(NO_BUNDLED)
    ended = run(place, "skills", "test", "lint", "--offline")
    assert "the model did not judge 4 sentences (the offline model cannot judge)" in ended.err


@pytest.mark.parametrize("skill", ["code-review", "fix-tests", "repo-tour", "skill-creator", "skill-installer"])
def test_the_bundled_skills_pass_their_evaluations_with_the_offline_model(place: Place, skill: str) -> None:
    ended = run(place, "skills", "test", skill, "--offline", "--json")
    assert ended.status == 0, ended.err
    found = json.loads(ended.out)
    failed = [
        (entry["case"], check) for entry in found["runs"] if entry["arm"] == "with" for check in entry["checks"]
        if not check["passed"]
    ]  # fmt: skip
    assert failed == []
    assert (found["activation"], found["with"]["pass_rate"]) == (1.0, 1.0)
    assert found["without"]["pass_rate"] < 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("promt: x\n", "unknown key `promt`; did you mean `prompt`?"),
        ("prompt: ''\n", "`prompt` is missing or empty"),
        ("prompt: [a]\n", "`prompt` is missing or empty"),
        ("- prompt: x\n- 3\n", "an evaluation is not a mapping"),
        ("prompt: x\nchecks: yes\n", "`checks` is not a list"),
        ("prompt: x\nchecks:\n  - {}\n", "a check needs exactly one of `command`, `file`, `answer`, `skill`"),
        ("prompt: x\nchecks:\n  - {command: a, answer: b}\n", "a check needs exactly one of"),
        ("prompt: x\nchecks:\n  - {skill: maybe}\n", "`skill` of a check is `used` or `unused`, not `maybe`"),
        ("prompt: x\nchecks:\n  - {answer: '('}\n", "`(` is no regular expression"),
        ("prompt: x\nchecks:\n  - {answer: a, matches: b}\n", "`matches` belongs to a `file` check"),
        ("prompt: x\nchecks:\n  - {file: ../a}\n", "`../a` is not a path inside the workspace"),
        ("prompt: x\nchecks:\n  - {fil: a}\n", "a check has the unknown key `fil`; did you mean `file`?"),
        ("prompt: x\nfiles: {/etc/a: b}\n", "`/etc/a` is not a path inside the workspace"),
        ("prompt: x\nfiles: {a/../../b: c}\n", "is not a path inside the workspace"),
        ("prompt: x\nfiles: {.git/config: c}\n", "would write into a repository's own files"),
        ("prompt: x\nfiles: [evals/none.txt]\n", "`evals/none.txt` of `files` is not in the skill"),
        ("prompt: x\nfiles: {a: [b]}\n", "the content of `a` is not a text"),
        ("prompt: x\nruns: 0\n", "`runs` is a number from 1 to 100, not `0`"),
        ("prompt: x\nruns: many\n", "`runs` is a number from 1 to 100, not `many`"),
        ("prompt: [x\n", "line"),
        ("", "an evaluation is not a mapping"),
    ],
)
def test_an_evaluation_with_a_fault_is_refused_in_a_line(place: Place, text: str, message: str) -> None:
    path = add(place, WHEN, text)
    ended = run(place, "skills", "test", "lint", "--offline")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith(f"error: cannot read `{path.parent}/evals/case1.yaml`: ")
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1


def test_links_in_the_evaluations_lead_nowhere_else(place: Place) -> None:
    path = add(place, WHEN, "prompt: x\nfiles: [evals/secret]\n")
    outside = place.home / "secret"
    outside.write_text("s3cret")
    (path.parent / "evals/secret").symlink_to(outside)
    ended = run(place, "skills", "test", "lint", "--offline")
    assert (ended.status, "leads out of the skill" in ended.err) == (1, True)
    (path.parent / "evals/more.yaml").symlink_to(outside)
    assert run(place, "skills", "test", "lint", "--offline").status == 1


def test_no_run_changes_the_skill_for_another_one(place: Place, tmp_path: Path) -> None:
    add(place, WHEN, CASE)
    seen: list[str] = []

    def plant(request: Request) -> Stream:
        outputs = [item["output"] for item in request.input if item["type"] == "function_call_output"]
        listed = re.search(r"\(file: ([^)]*/SKILL.md)\)", "\n".join(request.texts("developer")))
        if listed and not outputs:
            return [
                call("c1", "exec_command", {"cmd": f"head -1 '{listed[1]}'; echo planted >> '{listed[1]}' && echo it"})
            ]
        seen.extend(map(str, outputs))
        return [say("done")]

    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with FakeResponses(repeat(plant), excuse={"threads"}) as model:
        place.use_model(model.base_url, f"{NO_BUNDLED}\n[sandbox_workspace_write]\nexclude_slash_tmp = true\n")
        ended = run(place.with_env(TMPDIR=str(temporary)), "skills", "test", "lint")
    assert ended.status == 0, ended.err
    assert seen
    assert all("---" in output and "\nit" not in output for output in seen)
    assert list((place.codex_home / "skill-tests").iterdir()) == []


@pytest.mark.parametrize("target", ["../../..", "{home}"], ids=["relative", "absolute"])
def test_files_of_an_evaluation_are_not_written_through_a_link(place: Place, target: str) -> None:
    path = add(place, WHEN, "prompt: x\nfiles: [evals/files/start, 'evals/files/way{}/.bashrc']\n".format(
        "" if "home" in target else place.home
    ))  # fmt: skip
    files = path.parent / "evals/files"
    (files / "start").mkdir(parents=True)
    # In the workspace, two directories below the one for temporary files, this leads to the root.
    (files / "start/way").symlink_to(target.format(home=place.home))
    planted = files / ("way" if "home" in target else f"way{place.home}")
    planted.mkdir(parents=True)
    (planted / ".bashrc").write_text("echo planted\n")
    ended = run(place.with_env(TMPDIR="/tmp"), "skills", "test", "lint", "--offline")
    assert not (place.home / ".bashrc").exists()
    assert "cannot write the files of `case1`" in ended.err
    assert ended.status == 1


def test_a_page_is_not_written_through_a_link(place: Place) -> None:
    profile = place.home / ".profile"
    profile.write_text("mine\n")
    page = place.repo / "page.html"
    page.symlink_to(profile)
    assert run(place, "skills", "report", "--html", page).status == 0
    assert (profile.read_text(), page.is_symlink()) == ("mine\n", False)
    assert page.read_text().startswith("<!doctype html>")


def test_an_expression_that_takes_years_fails_its_check(place: Place) -> None:
    slow = "a" * 60 + "!"
    listed = '  - {file: app.py, matches: "^x$"}\n  - {file: long.txt, matches: "(a|aa)+$"}\n'
    add(place, WHEN, f'prompt: please lint app.py\nfiles: {{app.py: "x", long.txt: "{slow}"}}\nchecks:\n{listed}')
    checks = result(place)["runs"][0]["checks"]
    assert [check["passed"] for check in checks] == [True, False]
    assert "`(a|aa)+$` takes more than" in checks[1]["detail"]


def test_what_cannot_be_tested_says_so(place: Place) -> None:
    add(place, WHEN)
    none = run(place, "skills", "test", "lint", "--offline")
    assert (none.status, none.err.startswith("error: the skill has no evaluations: ")) == (1, True)
    absent = run(place, "skills", "test", "lnt", "--offline")
    assert (absent.status, absent.err) == (2, "error: no skill `lnt`; did you mean `lint`?\n")
    for flag, value in (("--runs", "0"), ("--jobs", "0"), ("--max-usd", "0"), ("--max-usd", "nan"), ("--runs", "x")):
        ended = run(place, "skills", "test", "lint", "--offline", flag, value)
        assert (ended.status, ended.out) == (2, "")
        assert flag in ended.err
