"""Which directories are searched for skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.skills.model import SkillRoot
from codex_py.skills.roots import SkillRootsRequest, skill_roots


class Places:
    """A home, a user's home and a project with a directory in it, all below one real path."""

    def __init__(self, top: Path) -> None:
        self.top = top.resolve()
        self.user = self.make("user")
        self.home = self.make("user/.codex")
        self.project = self.make("project")
        self.cwd = self.make("project/a/b")

    def make(self, name: str) -> Path:
        path = self.top / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def request(self) -> SkillRootsRequest:
        return SkillRootsRequest(self.home, self.user, self.cwd, self.project, system=self.top / "etc")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def names(places: Places, roots: tuple[SkillRoot, ...]) -> list[str]:
    return [f"{root.scope} {root.path.relative_to(places.top)}" for root in roots]


def test_outside_a_project_only_the_own_directory_counts(places: Places) -> None:
    places.make("project/.agents/skills")
    places.make("project/a/b/.agents/skills")
    roots = skill_roots(places.request().replace(project_root=None))
    assert names(places, roots) == ["repo project/a/b/.agents/skills"]
    assert roots[0].inside == places.cwd


def test_a_directory_that_two_roots_name_has_the_scope_of_the_first(places: Places) -> None:
    places.make("user/.agents/skills")
    roots = skill_roots(places.request().replace(project_root=places.user, cwd=places.user))
    assert names(places, roots) == ["user user/.agents/skills"]


def test_the_home_is_no_config_directory_of_a_project(places: Places) -> None:
    places.make("user/.codex/skills")
    request = places.request().replace(cwd=places.user, project_root=None, project_config_dirs=(places.home,))
    assert names(places, skill_roots(request)) == ["user user/.codex/skills"]


def test_a_start_in_a_linked_directory_is_a_start_in_the_real_one(places: Places) -> None:
    places.make("project/a/.agents/skills")
    (places.top / "link").symlink_to(places.cwd)
    roots = skill_roots(places.request().replace(cwd=places.top / "link"))
    assert names(places, roots) == ["repo project/a/.agents/skills"]


def test_what_is_no_directory_is_no_root(places: Places) -> None:
    (places.home / "skills").write_text("x")
    (places.make("user/.agents") / "skills").symlink_to("nowhere")
    request = places.request().replace(extra_roots=(Path("a\0b"), places.top / "no"))
    assert skill_roots(request) == ()
