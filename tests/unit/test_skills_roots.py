"""Which directories are searched for skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.skills.model import SkillRoot
from codex_py.skills.roots import PluginSkills, SkillRootsRequest, skill_roots


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


def test_roots_come_in_the_order_of_discovery(places: Places) -> None:
    for name in ("project", "project/a", "project/a/b"):
        places.make(f"{name}/.agents/skills")
    for name in ("project", "project/a/b"):
        places.make(f"{name}/.codex/skills")
    for name in (".codex/skills/.system", ".codex/skills/.system-codex-py", ".agents/skills"):
        places.make(f"user/{name}")
    for name in ("etc/skills", "plugin/skills", "extra", "mine"):
        places.make(name)
    request = places.request().replace(
        project_config_dirs=(places.cwd / ".codex", places.cwd.parent / ".codex", places.project / ".codex"),
        plugin_roots=(PluginSkills(places.top / "plugin/skills", places.top / "plugin", "p@m", "p"),),
        extra_roots=(places.top / "extra",),
        extra_user_roots=(places.top / "mine", places.top / "missing"),
    )
    roots = skill_roots(request)
    assert names(places, roots) == [
        "repo project/a/b/.codex/skills",
        "repo project/.codex/skills",
        "user user/.codex/skills",
        "user user/.agents/skills",
        "system user/.codex/skills/.system",
        "system user/.codex/skills/.system-codex-py",
        "admin etc/skills",
        "user plugin/skills",
        "user extra",
        "user mine",
        "repo project/.agents/skills",
        "repo project/a/.agents/skills",
        "repo project/a/b/.agents/skills",
    ]
    assert roots[7] == SkillRoot(
        places.top / "plugin/skills", "user", "plugin", "p", "p@m", places.top / "plugin", None
    )
    assert {root.inside for root in roots if root.scope == "repo"} == {places.project}
    assert {root.inside for root in roots if root.scope != "repo"} == {None}


def test_without_bundled_skills_there_is_no_system_root(places: Places) -> None:
    places.make("user/.codex/skills/.system")
    assert names(places, skill_roots(places.request().replace(bundled=False))) == ["user user/.codex/skills"]


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


def test_a_linked_root_is_known_by_its_real_path(places: Places) -> None:
    real = places.make("elsewhere")
    (places.home / "skills").symlink_to(real)
    assert names(places, skill_roots(places.request())) == ["user elsewhere"]


def test_what_is_no_directory_is_no_root(places: Places) -> None:
    (places.home / "skills").write_text("x")
    (places.make("user/.agents") / "skills").symlink_to("nowhere")
    request = places.request().replace(extra_roots=(Path("a\0b"), places.top / "no"))
    assert skill_roots(request) == ()
