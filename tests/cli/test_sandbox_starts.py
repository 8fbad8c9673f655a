"""How many sandboxes are set up: each is a process that users wait for.

The first command of a process has one more, for the login profile.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from codex_py.programs import ProbeResults
from codex_py.sandbox.linux import find_bwrap
from codex_py.services.git import GitReader
from codex_py.services.working_tree import working_changes
from tests.cli.test_rewind import git, rewind, shell, turn
from tests.support.home import Place
from tests.support.hooks import entry, use_project_hooks
from tests.support.process import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")


@pytest.fixture
def counted(place: Place) -> Iterator[Place]:
    """A machine whose bubblewrap is trusted, and writes down what it is started for."""
    bwrap, _ = find_bwrap(place.env, (), ProbeResults())
    assert bwrap is not None
    # Not below a temporary directory, from which git's sandbox would not be taken.
    with TemporaryDirectory(dir="/var/tmp") as directory:
        program = Path(directory, "bwrap")
        program.write_text(
            '#!/bin/sh\ncase "$*" in *"echo held") word=probe;; *" --no-pager "*) word=git;; *) word=command;; esac\n'
            f'echo $word >> {place.home}/starts\nexec {bwrap} "$@"\n'
        )
        program.chmod(0o755)
        yield place.with_env(PATH=f"{directory}:{place.env['PATH']}")


def starts(place: Place) -> dict[str, int]:
    """What sandboxes were set up for since the last look."""
    log = place.home / "starts"
    found = Counter(log.read_text().split()) if log.exists() else Counter[str]()
    log.unlink(missing_ok=True)
    return dict(found)


def test_a_turn_that_writes_asks_git_by_one_start_at_its_begin_and_one_at_its_end(counted: Place) -> None:
    ended = turn(counted, shell("echo changed > README.md"))
    assert "1 file changed" in ended.err
    assert starts(counted) == {"probe": 1, "git": 2, "command": 2}
    turn(counted, shell("git add README.md; echo more > new"), shell("echo again > new"), resumes=True)
    assert starts(counted) == {"probe": 1, "git": 2, "command": 3}


def test_a_turn_that_only_reads_asks_git_by_one_start(counted: Place) -> None:
    turn(counted, shell("cat README.md"))
    assert starts(counted) == {"probe": 1, "git": 1, "command": 2}


def test_nested_repositories_are_read_by_one_start_each(counted: Place) -> None:
    for name in ("a", "b"):
        git(counted, "init", "-q", name)
        counted.write(f"{name}/file", "")
    turn(counted, shell("cat README.md"))
    assert starts(counted) == {"probe": 1, "git": 3, "command": 2}


def test_a_rewind_asks_git_by_few_starts(counted: Place) -> None:
    turn(counted, shell("echo changed > README.md"))
    starts(counted)
    assert rewind(counted, 1)["restored"] == ["README.md"]
    assert starts(counted) == {"probe": 1, "git": 4}


def test_the_working_changes_take_one_start(counted: Place) -> None:
    counted.write("README.md", "changed\n")
    counted.write("new", "")
    assert len(working_changes(GitReader(counted.repo, counted.env))) == 2
    assert starts(counted) == {"probe": 1, "git": 1}


def test_hooks_need_no_probe_of_their_own(counted: Place) -> None:
    counted.write("check.sh", "cat > /dev/null\n")
    use_project_hooks(counted, PreToolUse=[entry("sh check.sh", "Bash")])
    assert run(counted, "hooks", "trust", "--yes").status == 0
    starts(counted)
    turn(counted, shell("cat README.md"))
    assert starts(counted) == {"probe": 1, "git": 1, "command": 3}
