"""Skills from servers on the loopback, and a repository that is too large."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.home import Place
from tests.support.skill_servers import endless_repository, git_daemon, git_over_http
from tests.support.skill_sources import (
    records_of,
    repository,
    save,
    skill_files,
    skills,
    usable,
    user_root,
    write_files,
)


@pytest.mark.parametrize("server", [git_over_http, git_daemon])
def test_a_skill_comes_from_a_git_server_and_is_updated_from_it(user: Place, tmp_path: Path, server: object) -> None:
    repository(user, tmp_path / "packs")
    serve = git_over_http if server is git_over_http else git_daemon
    with serve(tmp_path, user.env) as address:
        ended = skills(user, "install", f"{address}/packs/.git#main:skills/spell", "--yes")
        assert ended.status == 0, ended.err
        write_files(tmp_path / "packs/skills/spell", skill_files(body="Read it once."))
        commit = save(user, tmp_path / "packs")
        assert skills(user, "update", "--check").status == 1
        ended = skills(user, "update", "--yes")
        assert ended.status == 0, ended.err
    assert "Read it once." in usable(user)["spell"]
    entry = records_of(user, user_root(user))["spell"]
    assert (entry["source"], entry["commit"]) == (f"{address}/packs/.git", commit)


def test_a_repository_that_is_too_large_is_refused_while_it_is_downloaded(user: Place, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with endless_repository(600 * 1024 * 1024) as (address, sent):
        ended = skills(user.with_env(TMPDIR=str(work)), "install", address, "--yes")
    assert (ended.status, ended.err) == (
        1,
        "error: the repository is refused: more than 256 MiB would be downloaded\n",
    )
    assert 0 < max(sent) < 600 * 1024 * 1024
    assert not list(work.iterdir())


def test_an_npm_package_is_refused_with_the_way_that_works(user: Place) -> None:
    for source in ("npm:spell-skill@1.0.0", "@scope/name"):
        ended = skills(user, "install", source, "--yes")
        assert (ended.status, "npm pack" in ended.err, len(ended.err.splitlines())) == (2, True, 1)
