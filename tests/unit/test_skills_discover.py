"""Finding `SKILL.md` files, in friendly and in hostile directories."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

import pytest

from codex_py.skills import parse, roots, scan, service
from codex_py.skills.model import SkillRoot, SkillScope
from codex_py.skills.scan import MAX_ENTRIES, Found, find_skill_files
from tests.support.work import within


@pytest.fixture
def top(tmp_path: Path) -> Path:
    directory = tmp_path.resolve() / "skills"
    directory.mkdir()
    return directory


def add(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "SKILL.md"
    file.write_text("---\nname: a\ndescription: b\n---\n")
    return file


def search(top: Path, scope: SkillScope = "user", *, inside: Path | None = None, namespace: str | None = None) -> Found:
    return find_skill_files(SkillRoot(top, scope, "home", namespace, inside=inside))


def reached(found: Found, top: Path) -> list[str]:
    return [str(Path(file.path).parent.relative_to(top)) for file in found.files]


def refused(found: Found, top: Path) -> dict[str, str]:
    return {str(problem.path.relative_to(top)): problem.message for problem in found.refused}


def manifest(directory: Path, text: str, kind: str = ".codex-plugin") -> None:
    (directory / kind).mkdir(parents=True)
    (directory / kind / "plugin.json").write_text(text)


def namespaces(found: Found) -> list[str | None]:
    return [file.namespace for file in found.files]


def test_directories_are_searched_level_by_level_and_by_name(top: Path) -> None:
    for name in (".", "b", "a", "a/nested/deep", "c/x"):
        add(top / name)
    assert reached(search(top), top) == [".", "a", "b", "c/x", "a/nested/deep"]


def test_skills_too_deep_are_reported_and_deep_directories_without_any_are_not(top: Path) -> None:
    add(top / "a")
    (top / "1/2/3/4/5/6/assets").mkdir(parents=True)
    assert search(top).notes == []
    add(top / "1/2/3/4/5/6/7")
    add(top / "1/2/3/4/5/6/8")
    assert search(top).notes == [
        f"`{top}` has skills more than 6 directories deep: some of its skills were not looked for"
    ]


def test_the_twenty_thousandth_directory_is_the_last(top: Path) -> None:
    for number in range(20_001):
        (top / f"{number:05}").mkdir()
    add(top / "19999")
    add(top / "20000")
    add(top / "00000" / "x")
    found = search(top)
    assert reached(found, top) == ["19999"]
    assert found.notes == [f"`{top}` has more than 20000 directories: some of its skills were not looked for"]


def test_linked_directories_are_followed_one_level_a_link(top: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path.resolve() / ".elsewhere"
    add(elsewhere / "1/2/3/4/5")
    add(elsewhere / "1/2/3/4/5x/6")
    (top / "link").symlink_to(elsewhere)
    (top / ".hidden").symlink_to(elsewhere)
    found = search(top)
    assert [(file.path, file.real) for file in found.files] == [
        (f"{top}/link/1/2/3/4/5/SKILL.md", f"{elsewhere}/1/2/3/4/5/SKILL.md")
    ]
    assert reached(search(top, "admin"), top) == ["link/1/2/3/4/5"]
    assert search(top, "system").files == []


def test_a_linked_skill_file_counts_when_it_leads_to_a_regular_file(top: Path, tmp_path: Path) -> None:
    real = add(tmp_path.resolve() / "shared")
    for name, target in {"a": str(real), "b": "nowhere", "c": "/dev/zero", "d": "/", "e": str(real)}.items():
        (top / name).mkdir()
        (top / name / "SKILL.md").symlink_to(target)
    os.mkfifo(add(top / "f").parent / "fifo")
    (top / "g").mkdir()
    os.mkfifo(top / "g" / "SKILL.md")
    found = search(top)
    assert [(file.path, file.real) for file in found.files] == [
        (f"{top}/a/SKILL.md", str(real)),
        (f"{top}/f/SKILL.md", f"{top}/f/SKILL.md"),
    ]
    assert refused(found, top) == {
        "b/SKILL.md": "a link that leads nowhere",
        "c/SKILL.md": "not a regular file",
        "d/SKILL.md": "not a regular file",
        "g/SKILL.md": "not a regular file",
    }


def test_links_out_of_a_project_are_refused(top: Path, tmp_path: Path) -> None:
    project = tmp_path.resolve()
    outside = project.parent / f"{project.name}-outside"
    add(outside / "x")
    add(project / "docs" / "y")
    add(project / ".git" / "z")
    root = add(project / ".agents" / "skills" / "a").parent.parent
    (root / "directory").symlink_to(outside)
    (root / "inside").symlink_to(project / "docs")
    (root / "git").symlink_to(project / ".git")
    (root / "b").mkdir()
    (root / "b" / "SKILL.md").symlink_to(outside / "x" / "SKILL.md")
    found = search(root, "repo", inside=project)
    assert reached(found, root) == ["a", "inside/y"]
    assert refused(found, root) == {
        "b/SKILL.md": "a link that leads out of the project",
        "directory": "a link that leads out of the project",
        "git": "a link into a version control directory",
    }
    elsewhere = search(outside, "repo", inside=project)
    assert (elsewhere.files, refused(elsewhere, outside)) == (
        [],
        {".": f"a link that leads out of the project `{project}`"},
    )


def test_links_to_everything_are_survived(top: Path) -> None:
    add(top / "a")
    (top / "root").symlink_to("/")
    (top / "proc").symlink_to("/proc/self")
    (top / "dev").symlink_to("/dev")
    # However much there is on this machine, the limits end the search.
    found = within(40 * MAX_ENTRIES, lambda: search(top))
    assert "a" in reached(found, top)
    assert not any(path.startswith((f"{top}/root/proc/", f"{top}/root/dev/")) for path in found.stamps)
    assert not any(file.real.startswith(("/proc/", "/dev/")) for file in found.files)


def test_thousands_of_files_are_passed_over(top: Path) -> None:
    file = add(top / "a")
    for number in range(5000):
        os.link(file, f"{top}/a/{number}")
    found = within(50_000, lambda: search(top))
    assert reached(found, top) == ["a"]
    assert [path for path in found.stamps if path.startswith(f"{top}/a/")] == []


def test_no_clock_decides_which_skills_are_found() -> None:
    """On a busy machine a prompt has the skills that it has on an idle one."""
    for module in (scan, service, roots, parse):
        assert not re.search(r"^(import|from) time\b", inspect.getsource(module), re.MULTILINE), module.__name__


def test_skills_beyond_256_mebibytes_are_left_out_and_that_is_said(top: Path) -> None:
    for number in range(258):
        os.truncate(add(top / f"{number:03}"), 1024**2)
    found = scan.scan_root(SkillRoot(top, "user", "home"), None)
    assert [len(found.records), found.notes] == [256, (f"`{top}` has more than 256 MiB of skills: 2 were left out",)]


def test_a_path_that_cannot_be_shown_is_refused(top: Path) -> None:
    add(top / "a\n- evil")
    add(top / "b\u202e")
    (Path(os.fsdecode(os.fsencode(top) + b"/c\xff"))).mkdir()
    add(Path(os.fsdecode(os.fsencode(top) + b"/c\xff")))
    found = search(top)
    assert found.files == []
    assert [problem.message for problem in found.refused] == ["its path has characters that cannot be shown"] * 3


def test_a_directory_that_is_gone_or_unreadable_is_one_note(top: Path) -> None:
    found = search(top / "gone")
    assert found.notes == [f"cannot read 1 directory with skills, such as `{top}/gone`: no such file or directory"]


def test_the_nearest_manifest_names_the_skills_of_a_plugin(top: Path) -> None:
    add(top / "a")
    add(top / "b" / "x" / "y")
    add(top / "c" / "x")
    add(top / "d")
    add(top / "e")
    add(top / "f" / "x")
    manifest(top.parent, json.dumps({"name": "My Plugin!"}))
    manifest(top / "b", json.dumps({"name": "inner"}), ".claude-plugin")
    manifest(top / "c", json.dumps({"name": " "}))
    manifest(top / "d", "{broken")
    manifest(top / "d2", json.dumps({"name": 1}))
    add(top / "d2")
    manifest(top / "e", "[]")
    manifest(top / "f", json.dumps({"name": "f"}))
    manifest(top / "f" / "x", json.dumps({"name": "g"}), ".claude-plugin")
    found = search(top)
    assert dict(zip(reached(found, top), namespaces(found), strict=True)) == {
        "a": "My Plugin!",
        "d": "My Plugin!",
        "d2": "My Plugin!",
        "e": "My Plugin!",
        "c/x": "c",
        "f/x": "g",
        "b/x/y": "inner",
    }


def test_a_linked_directory_has_the_namespace_of_its_real_place(top: Path, tmp_path: Path) -> None:
    add(tmp_path / "plugin" / "skills" / "x")
    manifest(tmp_path / "plugin", json.dumps({"name": "p"}))
    (top / "link").symlink_to(tmp_path.resolve() / "plugin" / "skills" / "x")
    add(top / "own")
    assert namespaces(search(top)) == ["p", None]


def test_a_plugin_root_with_a_namespace_reads_no_manifest(top: Path) -> None:
    add(top / "a")
    manifest(top, json.dumps({"name": "other"}))
    assert namespaces(search(top, namespace="given")) == ["given"]
