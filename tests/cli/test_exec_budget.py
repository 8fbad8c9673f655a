"""What `exec` says of cost, and where a budget ends it: the last lines, the JSON, sessions, `codex-py cost`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, call, completed, say, tokens
from tests.support.home import Place
from tests.support.process import run

# A million tokens of input cost 2 dollars, cached ones half a dollar, of output 8.
PRICED = '[models."gpt-5.1-codex"]\ninput_usd = 2.0\ncached_input_usd = 0.5\noutput_usd = 8.0\n'
FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'


def step(number: int, sent: int = 1000, received: int = 100, cached: int = 0) -> list[Any]:
    return [
        call(f"c{number}", "exec_command", {"cmd": f"echo {number} >> steps"}),
        completed(tokens(sent, received, cached=cached)),
    ]


def use(place: Place, model: FakeResponses, budget: str = "", prices: str = PRICED) -> None:
    place.use_model(model.base_url, FULL_ACCESS)
    config = place.codex_home / "config.toml"
    config.write_text(f"{config.read_text()}\n{prices}{budget}")


def test_the_cost_of_a_turn_stands_in_the_last_lines_the_json_and_the_list(place: Place) -> None:
    last = [say("done"), completed(tokens(2000, 100, cached=1000))]
    with FakeResponses(step(1), last, last) as model:
        use(place, model)
        human = run(place, "exec", "go")
        lines = run(place, "exec", "resume", "--last", "--json", "more")
    # 1,000 in and 100 out, then 1,000 in, 1,000 cached and 100 out.
    assert human.err.splitlines()[-3:] == ["cost: $0.0061", "tokens used", "2,200"]
    ended = lines.events[-1]
    assert (ended["usage"]["cost_usd"], ended["turn_usage"]["cost_usd"]) == (0.0094, 0.0033)
    [listed] = json.loads(run(place, "sessions", "list", "--json").out)
    assert listed["cost_usd"] == 0.0094
    assert "$0.0094" in run(place, "sessions", "list").out


def test_an_unknown_price_is_a_question_mark(place: Place) -> None:
    with FakeResponses([say("done"), completed(tokens(1000, 10))]) as model:
        use(place, model, prices="")
        ended = run(place, "exec", "-m", "home-made-model", "--json", "go")
        listed = run(place, "sessions", "list").out
    assert ended.events[-1]["usage"]["cost_usd"] is None
    assert "  ?  " in listed
    shown = run(place, "cost", "--by", "model")
    assert (shown.out.splitlines()[-1].split()[0], shown.out.split()[-1]) == ("home-made-model", "?")


def test_three_requests_are_three_and_the_session_goes_on_later(place: Place) -> None:
    with FakeResponses(step(1), step(2), step(3), [say("all done")]) as model:
        use(place, model)
        ended = run(place, "exec", "--max-requests", "3", "go")
        assert len(model.requests) == 3
        again = run(place, "exec", "resume", "--last", "--max-requests", "1", "go on")
    assert (ended.status, ended.out) == (75, "")
    assert ended.err.splitlines()[-2:] == [
        "cost: $0.0084",
        "ERROR: the budget is used up: 3 of 3 requests for this run; the session can be resumed",
    ]
    # The third call was carried out and answered, and the next run begins with its output.
    assert (place.repo / "steps").read_text() == "1\n2\n3\n"
    assert (again.status, again.out) == (0, "all done\n")
    assert model.requests[3].output_of("c3").endswith("Output:\n")


@pytest.mark.parametrize(
    ("flag", "value", "requests"),
    [("--max-usd", "0.006", 2), ("--max-usd", "0.0028", 1), ("--max-tokens", "2300", 2), ("--max-tokens", "1", 0)],
)
def test_a_budget_stops_before_the_request_that_would_exceed_it(
    flag: str, value: str, requests: int, place: Place
) -> None:
    script = [step(number) for number in range(requests)]
    with FakeResponses(*script) as model:
        use(place, model)
        ended = run(place, "exec", flag, value, "--json", "go")
    assert (ended.status, len(model.requests)) == (75, requests)
    assert ended.events[-1]["type"] == "turn.failed"
    assert "the budget is used up" in ended.events[-1]["error"]["message"]


def test_what_the_model_said_before_the_end_of_a_budget_is_the_answer(place: Place) -> None:
    first = [say("half of it"), *step(1)]
    with FakeResponses(first) as model:
        use(place, model)
        ended = run(place, "exec", "--max-requests", "1", "-o", "last.txt", "go")
    assert (ended.status, ended.out, (place.repo / "last.txt").read_text()) == (75, "half of it\n", "half of it")


def test_eighty_percent_are_a_warning(place: Place) -> None:
    with FakeResponses(step(1, 500, 8200), [say("done")]) as model:
        use(place, model)
        ended = run(place, "exec", "--max-tokens", "10000", "go")
    assert (ended.status, ended.err.count("of a budget is used")) == (0, 1)
    assert "warning: 87% of a budget is used: 8,700 of 10,000 tokens for this run" in ended.err


def test_time_ends_a_command_that_takes_too_long(place: Place) -> None:
    slow = call("c", "exec_command", {"cmd": "sleep 30", "yield_time_ms": 30000})
    with FakeResponses([slow]) as model:
        use(place, model)
        ended = run(place, "exec", "--max-seconds", "1.5", "go")
    assert ended.status == 75
    assert "of 1.5 seconds for this run" in ended.err


def test_budgets_of_the_settings_count_turns_sessions_and_days(place: Place) -> None:
    with FakeResponses(step(1), step(2), step(3), [say("last")], excuse={"threads"}) as model:
        use(
            place,
            model,
            "[budget.turn]\nmax_requests = 1\n[budget.session]\nmax_requests = 3\n[budget.day]\nmax_requests = 4\n",
        )
        spans = [run(place, "exec", "go")]
        spans += [run(place, "exec", "resume", "--last", "more") for _ in range(3)]
        spans += [run(place, "exec", "go") for _ in range(2)]
    assert [ended.status for ended in spans] == [75, 75, 75, 75, 0, 75]
    assert "1 of 1 requests for a turn" in spans[1].err
    assert "3 of 3 requests for the session" in spans[3].err
    assert "4 of 4 requests for the day" in spans[5].err


def test_a_budget_in_dollars_needs_a_price(place: Place) -> None:
    with FakeResponses() as model:
        use(place, model, prices="")
        ended = run(place, "exec", "-m", "home-made-model", "--max-usd", "1", "go")
    assert (ended.status, model.requests) == (2, [])
    assert "the price of `home-made-model` is unknown" in ended.err


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--max-usd", "0"),
        ("--max-usd", "-1"),
        ("--max-usd", "nan"),
        ("--max-usd", "inf"),
        ("--max-usd", "a"),
        ("--max-tokens", "1.5"),
        ("--max-tokens", ""),
        ("--max-requests", "0"),
        ("--max-requests", "٣"),
        ("--max-seconds", "1h"),
    ],
)
def test_a_limit_that_is_no_number_is_a_mistake_of_the_command_line(flag: str, value: str, place: Place) -> None:
    ended = run(place, "exec", "--offline", flag, value, "go")
    assert (ended.status, ended.out) == (2, "")
    assert f"`{flag}` needs a" in ended.err


@pytest.mark.parametrize("entry", ["max_usd = 0", 'max_usd = "1"', "max_requests = 1.5", "max_tokens = -1"])
def test_an_odd_budget_in_the_settings_is_refused(entry: str, place: Place) -> None:
    place.configure(f"[budget.turn]\n{entry}\n")
    ended = run(place, "exec", "--offline", "go")
    assert (ended.status, "budget.turn" in ended.err) == (2, True)


def test_stored_sessions_are_added_up_by_day_model_repository_and_skill(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: Lints.\n---\nbody\n")
    usage = completed(tokens(1000, 100, cached=500))
    with FakeResponses([say("a"), usage], [say("b"), usage], [say("c"), usage], excuse={"threads"}) as model:
        use(place, model)
        for prompt in ("one", "use $lint"):
            assert run(place, "exec", prompt).status == 0
        assert run(place, "exec", "fork", "--last", "three").status == 0
    for by, names in (("model", ["gpt-5.1-codex"]), ("repo", [str(place.repo)]), ("skill", ["(no skill)", "lint"])):
        found = json.loads(run(place, "cost", "--by", by, "--json", "--since", "1d").out)
        assert [row[by] for row in found["rows"]] == names
        assert (found["total"]["requests"], found["total"]["cost_usd"]) == (3, pytest.approx(3 * 0.00205))
        assert isinstance(found["total"]["requests"], int)
    by_skill = json.loads(run(place, "cost", "--by", "skill", "--json").out)["rows"]
    assert [row["requests"] for row in by_skill] == [2, 1]
    assert json.loads(run(place, "cost", "--json", "--since", "2099-01-01").out)["rows"] == []
    assert run(place, "cost", "--since", "2099-01-01").out == ""
    table = run(place, "cost").out.splitlines()
    assert (table[0].split(), table[1].split()[1:]) == (
        ["DAY", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST"],
        ["3", "3,000", "1,500", "300", "$0.0062"],
    )


def test_sessions_that_wrote_no_cost_are_priced_by_the_table(place: Place) -> None:
    with FakeResponses([say("a"), completed(tokens(1_000_000, 0))]) as model:
        use(place, model, prices="")
        assert run(place, "exec", "go").status == 0
    [path] = place.rollouts()
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"type":"request_cost"' not in line]
    path.write_text("".join(lines))
    assert json.loads(run(place, "cost", "--json").out)["total"]["cost_usd"] == 1.25


@pytest.mark.parametrize(
    "arguments", [["--by", "week"], ["--since", "yesterday"], ["--since", ""], ["--since", "30"], ["more"]]
)
def test_an_odd_question_about_cost_is_a_mistake(arguments: list[str], place: Place) -> None:
    assert run(place, "cost", *arguments).status == 2
