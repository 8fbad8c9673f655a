"""`codex-py skills report`: the uses of real runs, what they cost, how they ended, and what to do about each skill."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest

from codex_py.protocol.events import SkillUsed
from codex_py.skills.usage import TurnOutcome, UseDetails, UseWay, append_entry, record_outcome, record_use
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.process import Finished, run
from tests.support.skills import add_skill, repo_root, skill_text

GOOD = "Check the spelling of a text. Use when something is to be published."


@pytest.fixture
def lean(place: Place) -> Place:
    place.configure("[skills.bundled]\nenabled = false\n")
    return place


def report(place: Place, *arguments: str) -> dict[str, dict[str, Any]]:
    ended = run(place, "skills", "report", "--json", *arguments)
    assert ended.status == 0, ended.err
    return {entry["name"]: entry for entry in json.loads(ended.out)}


def add(place: Place, name: str, description: str = GOOD, body: str = "Do it.") -> Path:
    return add_skill(repo_root(place), name, skill_text(name, f'"{description}"', body=body))


def use(
    place: Place,
    path: Path,
    way: UseWay = "model",
    outcome: TurnOutcome = "completed",
    *,
    turn: str = "t",
    now: float | None = None,
) -> None:
    details = UseDetails("s", turn, way, 100)
    kind = "read" if way in ("model", "suggested") else "explicit"
    record_use(place.codex_home, SkillUsed(path.parent.name, "repo", path, kind), details=details, now=now)
    record_outcome(place.codex_home, "s", turn, outcome)


def test_what_real_runs_did_is_in_the_report(place: Place) -> None:
    path = add(place, "spell", body="x" * 2000)
    place.write(".agents/skills/spell/scripts/run.sh", "exit 4\n")
    script = call("c", "exec_command", {"cmd": "sh .agents/skills/spell/scripts/run.sh"})
    with FakeResponses([script], [say("one")], [say("two")], excuse={"threads"}) as model:
        place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"\n[skills.bundled]\nenabled = false\n')
        assert run(place, "exec", "$spell this").status == 0
        assert run(place, "exec", "resume", "--last", "no, wrong").status == 0
        entry = report(place)["spell"]
    assert (entry["uses"], entry["ways"]["named"], entry["script_runs"], entry["script_failures"]) == (1, 1, 1, 1)
    assert (entry["outcomes"], entry["completed"]) == ({"corrected": 1}, 0.0)
    assert 500 < entry["tokens"] < 700
    assert 10 < entry["tokens_in_list"] < 100
    assert entry["repositories"] == [str(place.repo)]
    assert entry["path"] == str(path)


def test_each_skill_has_a_verdict_with_its_reason(lean: Place) -> None:
    keep = add(lean, "keep")
    broken = add(lean, "broken", "Bake bread. Use when hungry for it.")
    disliked = add(lean, "disliked", "Paint walls of a house. Use when they are grey.")
    vague = add(lean, "vague", "Collected advice on networks and cables")
    add(lean, "stale", "Count sheep in the field. Use when you cannot sleep.", "Read `references/gone.md`.")
    add(lean, "long", "Tell stories about dragons. Use when children ask.", "line\n" * 600)
    add(lean, "idle", "Fold paper planes. Use when bored in a meeting.")
    for name in ("twin", "twain"):
        add(lean, name, "Convert spreadsheets into reports with charts. Use when numbers arrive by mail.")
    use(lean, keep)
    for turn in ("a", "b"):
        use(lean, broken, turn=turn)
        skills = [{"path": str(broken), "tokens": 0, "exits": [1]}]
        record_outcome(lean.codex_home, "s", turn, "completed", skills)
        use(lean, disliked, outcome="undone", turn=f"d{turn}")
    for turn in ("1", "2", "3"):
        use(lean, vague, "named", turn=turn)
    found = {name: (entry["verdict"], entry["reason"]) for name, entry in report(lean).items()}
    assert found == {
        "keep": ("keep", "used 1 time, 100% of its turns completed"),
        "broken": ("fix", "its scripts failed 2 of 2 times"),
        "disliked": ("fix", "of 2 turns 2 undone"),
        "vague": (
            "never chosen by the model",
            "named 3 times and never chosen by the model: its description does not say when",
        ),
        "stale": ("stale", found["stale"][1]),
        "long": ("shorten", "605 lines: move what is not always needed into `references/`; no use on record"),
        "idle": ("unused", "no use on record"),
        "twin": ("overlaps with twain", "its description is nearly that of `twain`; no use on record"),
        "twain": ("overlaps with twin", "its description is nearly that of `twin`; no use on record"),
    }
    assert "references/gone.md" in found["stale"][1]
    [finding] = report(lean)["stale"]["findings"]
    assert (Path(finding["file"]).name, finding["line"], bool(finding["remedy"])) == ("SKILL.md", 5, True)


def test_since_leaves_older_uses_out(lean: Place) -> None:
    path = add(lean, "spell")
    use(lean, path, now=0.0)
    assert report(lean)["spell"]["uses"] == 1
    for span in ("90d", "2w", "12h", "2026-01-31"):
        entry = report(lean, "--since", span)["spell"]
        assert (entry["uses"], entry["verdict"]) == (0, "unused")
    assert report(lean, "--since", "90d")["spell"]["reason"] == "not used in the last 90d"
    assert report(lean, "--since", "1970-01-01")["spell"]["uses"] == 1


@pytest.mark.parametrize("span", ["", "d", "soon", "-3d", "3", "90 days ago", "2026-13-01", "9999999999d", "１d"])
def test_a_time_span_that_is_none_is_refused(lean: Place, span: str) -> None:
    ended = run(lean, "skills", "report", "--since", span)
    assert (ended.status, ended.out) == (2, "")
    hint = "write `30d`, `12h`, `2w`, `6m`, `1y`, `today`, or a day such as `2026-11-01`"
    assert ended.err == f"error: `--since` needs a time, not `{span}`; {hint}\n"


def test_lines_that_make_no_sense_are_skipped(lean: Place) -> None:
    path = add(lean, "spell")
    home = lean.codex_home
    for entry in (
        {"kind": "turn", "outcome": []},
        {"kind": "turn", "outcome": "eaten", "skills": 3},
        {"kind": "turn", "session": [], "turn": {}, "outcome": "completed", "skills": [1, {"path": 2}, {"path": "/x"}]},
        {"kind": "read", "path": str(path), "tokens": "many", "way": "teleport", "turn": None},
        {"kind": "turn", "outcome": "completed", "skills": [{"path": str(path), "tokens": -4, "exits": ["x", None]}]},
    ):
        append_entry(home, entry)
    with (home / "skills-usage.jsonl").open("ab") as ledger:
        ledger.write(b'\xff\n{"torn')
    entry = report(lean)["spell"]
    assert (entry["uses"], entry["ways"]["model"], entry["script_runs"]) == (1, 1, 0)


def test_of_several_ends_of_a_turn_the_last_step_counts(lean: Place) -> None:
    path = add(lean, "spell")
    for outcome in ("undone", "completed", "corrected"):
        record_outcome(lean.codex_home, "s", "t", outcome)
    use(lean, path)
    assert report(lean)["spell"]["outcomes"] == {"undone": 1}
    assert set(get_args(TurnOutcome)) >= {"undone"}


class _Tags(HTMLParser):
    """Every tag with its attributes, and the text of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_one_file_with_charts_and_without_scripts(lean: Place) -> None:
    add(lean, "spell", "<script>alert(1)</script> Use when needed.")
    ended: Finished = run(lean, "skills", "report", "--html", "report.html")
    assert ended.status == 0, ended.err
    assert "spell" in ended.out
    page = _Tags()
    page.feed((lean.repo / "report.html").read_text())
    assert "meter" in page.tags
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert page.sources == []
    assert "spell" in page.text
    refused = run(lean, "skills", "report", "--html", "/nowhere/at/all.html")
    assert (refused.status, refused.err.splitlines()[-1][:36]) == (1, "error: cannot write `/nowhere/at/all")


def test_uses_elsewhere_are_counted_and_said(lean: Place) -> None:
    add(lean, "spell")
    use(lean, Path("/elsewhere/x/SKILL.md"))
    ended = run(lean, "skills", "report")
    assert ended.err == "1 use of skills that are not enabled here are left out: `--all` shows them\n"
    shown = report(lean, "--all")
    assert (shown["x"]["verdict"], shown["x"]["path"]) == ("not here", "/elsewhere/x/SKILL.md")
    assert "`/elsewhere/x/SKILL.md` is not enabled here" in run(lean, "skills", "report", "--all").out


def test_the_old_name_shows_every_use_and_names_the_new_one(lean: Place) -> None:
    path = add(lean, "spell")
    use(lean, path, "named", turn="a", now=0.0)
    use(lean, path, turn="b", now=60.0)
    use(lean, Path("/elsewhere/x/SKILL.md"), now=30.0)
    ended = run(lean, "skills", "usage", "--json")
    assert ended.err == "`skills usage` is now `codex-py skills report --all`\n"
    keys = ("name", "scope", "path", "explicit", "implicit", "last_used")
    assert [tuple(entry[key] for key in keys) for entry in json.loads(ended.out)] == [
        ("spell", "repo", str(path), 1, 1, "1970-01-01T00:01:00.000Z"),
        ("x", "repo", "/elsewhere/x/SKILL.md", 0, 1, "1970-01-01T00:00:30.000Z"),
    ]


@pytest.mark.parametrize(
    ("model", "tokens", "mark"),
    [("gpt-5.3-codex", 1312, ""), ("claude-opus-5", 861, "≈ "), ("gpt-5-unknown/x", 861, "≈ ")],
)
def test_tokens_are_counted_where_the_tokenizer_is_known(lean: Place, model: str, tokens: int, mark: str) -> None:
    path = add_skill(
        repo_root(lean), "spell", skill_text("spell", '"Use."', body="Über 漢字, it's <|endoftext|>.\n" * 100)
    )
    entry = report(lean, "-c", f"model={model}")["spell"]
    assert (entry["tokens"], entry["tokens_estimated"]) == (tokens, bool(mark))
    (shown,) = json.loads(run(lean, "skills", "show", "spell", "--json", "-c", f"model={model}").out)
    assert (shown["tokens"], shown["tokens_estimated"]) == (tokens, bool(mark))
    assert f"{mark}{tokens:,}" in run(lean, "skills", "report", "-c", f"model={model}").out
    assert f"{mark}{tokens:,}\n" in run(lean, "skills", "show", "spell", "-c", f"model={model}").out

    # What was noted at a use is an estimate.
    use(lean, path)
    entry = report(lean, "-c", f"model={model}")["spell"]
    assert (entry["tokens"], entry["tokens_estimated"]) == (100, True)


def test_a_million_blanks_are_counted(lean: Place) -> None:
    # tiktoken itself ends the program there.
    add(lean, "blank", body="x" + " " * 1_500_000)
    assert 8_000 < report(lean, "-c", "model=gpt-5")["blank"]["tokens"] < 20_000
