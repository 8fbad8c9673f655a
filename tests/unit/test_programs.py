"""Where programs of our own are looked for."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from codex_py.errors import UserError
from codex_py.programs import ProbeResults, program_finder, project_directory


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory that is not temporary in the eyes of the sandbox."""
    with TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name).resolve()


def program(directory: Path, name: str = "tool") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_programs_of_a_project_and_of_writable_and_temporary_directories_are_passed_over(
    outside: Path, tmp_path: Path
) -> None:
    project = outside / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    cwd = project / "src"
    cwd.mkdir()
    untrusted = [project / ".venv/bin", cwd / "bin", outside / "added/bin", tmp_path / "bin", outside / "own-tmp"]
    for directory in untrusted:
        program(directory)
    good = program(outside / "bin")
    path = ":".join(["bin", ".", "", *map(str, untrusted), str(good.parent)])
    env = {"PATH": path, "TMPDIR": str(outside / "own-tmp")}
    finder = program_finder(env, cwd, [outside / "added"])
    assert finder.find("tool") == str(good)
    assert finder.trusted_path() == str(good.parent)
    assert finder.find_untrusted("tool") == str(untrusted[0] / "tool")
    assert program_finder({"PATH": ":".join(map(str, untrusted))}, cwd, [outside]).find("tool") is None


@pytest.mark.parametrize("relative", [False, True])
def test_a_link_on_the_way_through_a_writable_directory_is_followed(outside: Path, relative: bool) -> None:
    project, links, real = outside / "project", outside / "links", outside / "real"
    target = program(real)
    for directory in (project, links):
        directory.mkdir()
    # It ends in a good place, and any command can lead it elsewhere.
    (project / "tool").symlink_to(target)
    first = links / "tool"
    first.symlink_to(os.path.relpath(project / "tool", links) if relative else project / "tool")
    finder = program_finder({"PATH": f"{links}:{real}"}, project)
    assert finder.find("tool") == str(target)
    (links / "directory").symlink_to(project)
    assert program_finder({"PATH": f"{links}/directory:{real}"}, project).trusted_path() == str(real)


def test_a_directory_is_not_searched_through_a_link_that_commands_may_write(outside: Path) -> None:
    real, project = outside / "real", outside / "project"
    program(real / "bin")
    project.mkdir()
    (project / ".venv").symlink_to(real)
    finder = program_finder({"PATH": f"{project}/.venv/bin:/usr/bin"}, project)
    assert finder.find_untrusted("tool") == f"{project}/.venv/bin/tool"
    assert (finder.find("tool"), finder.trusted_path()) == (None, "/usr/bin")


def test_a_ring_of_links_is_no_program(outside: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (outside / one).symlink_to(outside / other)
    assert program_finder({"PATH": str(outside)}, outside / "project").find("a") is None


def test_a_chosen_program_that_commands_may_write_is_named_by_its_path(outside: Path, tmp_path: Path) -> None:
    finder = program_finder({"PATH": str(program(tmp_path / "bin").parent)}, outside)
    with pytest.raises(UserError, match=f"`tool` of EDITOR is not started: it is `{tmp_path}/bin/tool`"):
        finder.find_chosen("tool", "EDITOR")
    assert finder.find_chosen("./tool", "EDITOR") == "./tool"
    assert finder.find_chosen("missing", "EDITOR") == "missing"


def test_a_project_is_found_by_its_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /elsewhere\n")
    (tmp_path / "a/b").mkdir(parents=True)
    assert project_directory(tmp_path / "a/b") == tmp_path


def test_a_program_is_tried_out_once_and_waited_for_in_other_threads() -> None:
    known, started, may_end = ProbeResults(), threading.Event(), threading.Event()

    def probe() -> str | None:
        assert not started.is_set()
        started.set()
        may_end.wait()
        return "broken"

    with ThreadPoolExecutor() as threads:
        first = threads.submit(known.failure, "/bin/a", probe)
        started.wait()
        second = threads.submit(known.failure, "/bin/a", probe)
        may_end.set()
        assert (first.result(), second.result()) == ("broken", "broken")
    assert known.failure("/bin/b", lambda: None) is None
