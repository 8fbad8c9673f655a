"""The bundled skills under CODEX_HOME: put there once, kept current, never in the way of what is somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.skills.bundled import MARKER, bundled_source, sync_bundled
from codex_py.skills.lint import lint
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.service import SkillService

NAMES = ["code-review", "fix-tests", "repo-tour", "skill-creator", "skill-installer"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A bundle of one skill with a script."""
    directory = tmp_path / "shipped"
    write(directory / "tour" / "SKILL.md", "---\nname: tour\ndescription: one\n---\n")
    write(directory / "tour" / "scripts" / "go.py", "#!/usr/bin/env python3\n").chmod(0o755)
    return directory


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def tree(directory: Path) -> dict[str, tuple[int, str]]:
    """Every file below a directory with its mode and text, our marker left out."""
    return {
        path.relative_to(directory).as_posix(): (path.stat().st_mode & 0o777, path.read_text())
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != MARKER
    }


def identities(directory: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in [directory, *directory.rglob("*")]}


def test_the_bundle_is_installed_privately_with_our_marker(home: Path, source: Path) -> None:
    write(source / "README.md", "not a skill")
    write(source / "tour" / "__pycache__" / "go.pyc", "x")
    write(source / "tour" / ".hidden", "x")
    (source / "tour" / "link").symlink_to("/etc/hostname")

    assert sync_bundled(home, enabled=True, source=source) is None

    system = home / "skills" / ".system"
    assert tree(system) == {
        "tour/SKILL.md": (0o600, "---\nname: tour\ndescription: one\n---\n"),
        "tour/scripts/go.py": (0o700, "#!/usr/bin/env python3\n"),
    }
    assert (system / "tour").stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in (home / "skills").iterdir()] == [".system"]


def test_an_up_to_date_copy_is_not_touched(home: Path, source: Path) -> None:
    sync_bundled(home, enabled=True, source=source)
    before = identities(home / "skills")
    assert sync_bundled(home, enabled=True, source=source) is None
    assert identities(home / "skills") == before


def test_what_the_user_edits_stays_until_the_bundle_changes(home: Path, source: Path) -> None:
    sync_bundled(home, enabled=True, source=source)
    system = home / "skills" / ".system"
    edited = write(system / "tour" / "SKILL.md", "mine")
    added = write(system / "own" / "SKILL.md", "mine too")

    # Written again with the same content, as by another installation of the same version.
    write(source / "tour" / "SKILL.md", "---\nname: tour\ndescription: one\n---\n")
    os.utime(source / "tour" / "SKILL.md", (1, 1))
    assert sync_bundled(home, enabled=True, source=source) is None
    assert (edited.read_text(), added.read_text()) == ("mine", "mine too")

    write(source / "tour" / "SKILL.md", "---\nname: tour\ndescription: two\n---\n")
    assert sync_bundled(home, enabled=True, source=source) is None
    assert "description: two" in edited.read_text()
    assert not added.exists()
    assert [entry.name for entry in (home / "skills").iterdir()] == [".system"]


@pytest.mark.parametrize("change", ["content", "name", "mode"])
def test_every_kind_of_change_to_the_bundle_counts(home: Path, source: Path, change: str) -> None:
    sync_bundled(home, enabled=True, source=source)
    script = source / "tour" / "scripts" / "go.py"
    match change:
        case "content":
            script.write_text("#!/usr/bin/env python4\n")
        case "name":
            script.rename(script.with_name("went.py"))
        case _:
            script.chmod(0o644)
    assert sync_bundled(home, enabled=True, source=source) is None
    assert {name for name in tree(home / "skills" / ".system")} == {name for name in tree(source)}
    assert (home / "skills/.system/tour/scripts/go.py").exists() == (change != "name")


@pytest.mark.parametrize("marker", [".codex-system-skills.marker", None])
def test_the_directory_of_another_program_is_left_alone_and_ours_goes_beside(
    home: Path, source: Path, marker: str | None
) -> None:
    foreign = home / "skills" / ".system"
    write(foreign / "imagegen" / "SKILL.md", "---\nname: imagegen\ndescription: x\n---\n")
    if marker:
        write(foreign / marker, "e2e416a9532c044f\n")
    before = identities(foreign)

    assert sync_bundled(home, enabled=True, source=source) is None
    assert sync_bundled(home, enabled=True, source=source) is None

    assert identities(foreign) == before
    assert set(tree(home / "skills" / ".system-codex-py")) == {"tour/SKILL.md", "tour/scripts/go.py"}
    found = SkillService().catalog(SkillRootsRequest(home, home, home, system=home / "etc"))
    assert [(skill.name, skill.scope) for skill in found.skills] == [("imagegen", "system"), ("tour", "system")]


def test_a_copy_beside_stays_the_only_one_when_the_other_program_is_gone(home: Path, source: Path) -> None:
    foreign = write(home / "skills" / ".system" / "marker", "x")
    sync_bundled(home, enabled=True, source=source)
    foreign.unlink()
    foreign.parent.rmdir()
    assert sync_bundled(home, enabled=True, source=source) is None
    assert [entry.name for entry in (home / "skills").iterdir()] == [".system-codex-py"]


def test_a_directory_that_another_program_has_taken_over_is_not_ours_any_more(home: Path, source: Path) -> None:
    sync_bundled(home, enabled=True, source=source)
    (home / "skills" / ".system" / MARKER).rename(home / "skills" / ".system" / ".codex-system-skills.marker")
    assert sync_bundled(home, enabled=True, source=source) is None
    assert sorted(entry.name for entry in (home / "skills").iterdir()) == [".system", ".system-codex-py"]


def test_of_two_copies_of_ours_one_is_kept(home: Path, source: Path) -> None:
    sync_bundled(home, enabled=True, source=source)
    write(home / "skills" / ".system-codex-py" / MARKER, "old\n")
    assert sync_bundled(home, enabled=True, source=source) is None
    assert [entry.name for entry in (home / "skills").iterdir()] == [".system"]


def test_a_link_is_somebody_elses(home: Path, source: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / MARKER, "x\n")
    (home / "skills").mkdir()
    (home / "skills" / ".system").symlink_to(elsewhere)
    assert sync_bundled(home, enabled=True, source=source) is None
    assert [entry.name for entry in elsewhere.iterdir()] == [MARKER]
    assert (home / "skills" / ".system-codex-py" / MARKER).exists()
    assert sync_bundled(home, enabled=False, source=source) is None
    assert (home / "skills" / ".system").is_symlink()


def test_switched_off_our_copy_goes_and_only_ours(home: Path, source: Path) -> None:
    foreign = write(home / "skills" / ".system" / "x" / "SKILL.md", "x")
    mine = write(home / "skills" / "mine" / "SKILL.md", "x")
    sync_bundled(home, enabled=True, source=source)
    assert sync_bundled(home, enabled=False) is None
    assert foreign.exists() and mine.exists()
    assert sorted(entry.name for entry in (home / "skills").iterdir()) == [".system", "mine"]


def test_switched_off_nothing_is_made(home: Path) -> None:
    assert sync_bundled(home, enabled=False) is None
    assert list(home.iterdir()) == []


def test_links_inside_our_copy_are_removed_and_not_followed(home: Path, source: Path, tmp_path: Path) -> None:
    sync_bundled(home, enabled=True, source=source)
    kept = write(tmp_path / "kept" / "file", "x")
    (home / "skills" / ".system" / "tour" / "link").symlink_to(kept.parent)
    assert sync_bundled(home, enabled=False) is None
    assert kept.exists()
    assert not (home / "skills" / ".system").exists()


def test_a_home_that_cannot_be_written_gives_one_line(home: Path, source: Path) -> None:
    write(home / "skills", "a file where the directory should be")
    result = sync_bundled(home, enabled=True, source=source)
    assert result == f"cannot install the bundled skills in `{home}/skills`: not a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_home_gives_one_line(home: Path, source: Path) -> None:
    home.chmod(0o500)
    result = sync_bundled(home, enabled=True, source=source)
    home.chmod(0o700)
    assert result == f"cannot install the bundled skills in `{home}/skills`: permission denied"


def test_both_places_taken_gives_one_line(home: Path, source: Path) -> None:
    write(home / "skills" / ".system" / "x", "x")
    write(home / "skills" / ".system-codex-py", "a file")
    result = sync_bundled(home, enabled=True, source=source)
    assert result == (
        f"cannot install the bundled skills in `{home}/skills`: other files are in the way: "
        "`.system` and `.system-codex-py`"
    )


def test_a_source_without_skills_gives_one_line_and_removes_nothing(home: Path, source: Path, tmp_path: Path) -> None:
    sync_bundled(home, enabled=True, source=source)
    empty = tmp_path / "empty"
    empty.mkdir()
    for broken in (empty, tmp_path / "missing"):
        result = sync_bundled(home, enabled=True, source=broken)
        assert result is not None and result.startswith(f"cannot install the bundled skills in `{home}/skills`: ")
    assert (home / "skills" / ".system" / "tour" / "SKILL.md").exists()


@pytest.mark.parametrize("text", ["", "\0\0", "x" * 1000, "\u2028\n\n\n"])
def test_a_marker_that_makes_no_sense_is_still_ours_and_is_renewed(home: Path, source: Path, text: str) -> None:
    write(home / "skills" / ".system" / MARKER, text)
    assert sync_bundled(home, enabled=True, source=source) is None
    assert (home / "skills" / ".system" / "tour" / "SKILL.md").exists()


def test_what_dead_processes_left_is_swept_and_what_live_ones_write_is_not(home: Path, source: Path) -> None:
    old = write(home / "skills" / ".codex-py-draft-1" / "x" / "SKILL.md", "x").parents[1]
    fresh = write(home / "skills" / ".codex-py-draft-2" / "SKILL.md", "x").parent
    os.utime(old, (1, 1))
    assert sync_bundled(home, enabled=True, source=source) is None
    assert (old.exists(), fresh.exists()) == (False, True)


def test_processes_that_install_at_once_leave_one_whole_copy(home: Path, source: Path) -> None:
    for number in range(30):
        write(source / f"skill-{number}" / "SKILL.md", f"---\nname: s{number}\ndescription: one\n---\n")
    write(home / "skills" / ".system" / MARKER, "an older one\n")
    code = (
        "import sys; from pathlib import Path; from codex_py.skills.bundled import sync_bundled\n"
        "sys.stdin.readline()\n"
        "for _ in range(5): print(sync_bundled(Path(sys.argv[1]), enabled=True, source=Path(sys.argv[2])))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(home), str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    result = [process.communicate(timeout=60)[0] for process in started]
    assert result == ["None\n" * 5] * 4
    assert set(tree(home / "skills" / ".system")) == set(tree(source))
    assert [entry.name for entry in (home / "skills").iterdir()] == [".system"]


def test_of_a_current_copy_only_the_marker_is_read(home: Path) -> None:
    assert sync_bundled(home, enabled=True) is None
    code = (
        "import sys; from pathlib import Path; from codex_py.skills.bundled import sync_bundled\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, of: opened.append(str(of[0])) if event == 'open' else None)\n"
        "print(sync_bundled(Path(sys.argv[1]), enabled=True), *set(opened), sep='\\n')"
    )
    result = subprocess.check_output([sys.executable, "-c", code, str(home)], text=True)
    assert result == f"None\n{home / 'skills' / '.system' / MARKER}\n"


def test_the_shipped_skills_load_and_nothing_is_to_be_said_against_them(home: Path) -> None:
    shipped = bundled_source()
    assert shipped is not None
    assert sync_bundled(home, enabled=True) is None
    catalog = SkillService().catalog(SkillRootsRequest(home, home, home, system=home / "etc"))
    assert [skill.name for skill in catalog.skills] == NAMES
    assert (catalog.problems, catalog.remarks, catalog.notes) == ((), (), ())
    assert {skill.scope for skill in catalog.skills} == {"system"}
    assert all(skill.interface and skill.interface.display_name for skill in catalog.skills)
    assert lint(shipped) == ()
