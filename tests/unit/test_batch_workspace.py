"""What a workspace may hold when its changes are committed: where Landlock alone holds commands, anything."""

from __future__ import annotations

from pathlib import Path

from codex_py.batch.workspace import WorkspaceMaker
from tests.support.home import Place
from tests.support.skill_sources import git


def test_no_submodule_that_a_command_made_is_looked_into(place: Place, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    commit = git(place, place.repo, "rev-parse", "HEAD")
    git(place, place.repo, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    git(place, place.repo, "commit", "-q", "-m", "sub")
    maker = WorkspaceMaker(tmp_path / "fetched", place.env)
    workspace = maker.make(str(place.repo), "", tmp_path / "task/work")
    sub = workspace.top / "sub"
    git(place, tmp_path, "clone", "-q", str(place.repo), str(sub))
    git(place, sub, "checkout", "-q", commit)
    git(place, sub, "config", "filter.x.clean", f"touch {ran}; cat")
    (sub / ".git/info/attributes").write_text("* filter=x\n")
    # Of the same size, so that git has to compare the content.
    (sub / "README.md").write_text((sub / "README.md").read_text().swapcase())
    (workspace.top / "new.txt").write_text("new\n")
    made = maker.commit(workspace, "task", "changes")
    assert not ran.exists()
    assert git(place, place.repo, "diff", "--name-only", "HEAD", made).split() == ["new.txt"]
