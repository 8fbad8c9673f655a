"""Files and sessions from a clock that was wrong: nothing of them stops a start."""

from __future__ import annotations

import os
import re

import pytest

from tests.support.fake_responses import fake_model, repeat, say
from tests.support.home import Place
from tests.support.process import run
from tests.support.skills import add_skill, skill_text

YEAR_3000 = 32_503_680_000


@pytest.mark.parametrize("year", ["3000", "9999", "0001"])
def test_dates_of_another_age_stop_nothing(place: Place, year: str) -> None:
    add_skill(place.repo / ".agents/skills", "lint", skill_text("lint"))
    with fake_model(place, repeat([say("done")]), excuse={"prefix", "threads", "replay"}):
        assert run(place, "exec", "first").status == 0
        [path] = place.rollouts()
        dated = path.parents[3] / year / "01/01" / re.sub(r"rollout-\d+", f"rollout-{year}", path.name)
        dated.parent.mkdir(parents=True)
        dated.write_text(re.sub(r"20\d\d-(\d\d-\d\dT)", rf"{year}-\1", path.read_text()))
        path.unlink()
        for top in (place.home, place.repo):
            for directory, names, files in os.walk(top):
                for name in [*names, *files]:
                    os.utime(f"{directory}/{name}", (YEAR_3000, YEAR_3000), follow_symlinks=False)
        commands = (
            ["exec", "$lint second"],
            ["exec", "resume", "--last", "third"],
            ["sessions", "list", "--all"],
            ["sessions", "search", "first"],
            ["skills", "list"],
            ["cost", "--since", "30d"],
        )
        ended = {" ".join(arguments): run(place, *arguments) for arguments in commands}
    assert {name: each.status for name, each in ended.items()} == dict.fromkeys(ended, 0)
    assert not list((place.codex_home / "log").glob("*"))
