"""Fixtures for tests that work in a place of their own."""

from __future__ import annotations

import compileall
import difflib
import gc
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from codex_py.protocol.encoding import as_object
from tests.support.home import Place, Tree, make_place
from tests.support.process import PACKAGE
from tests.support.skills import NO_BUNDLED
from tests.support.warm import warm_starts


def pytest_configure(config: pytest.Config) -> None:
    """Start from the same state whatever the shell and the checkout are like.

    A shell starts its background jobs with SIGINT ignored, and so would be everything started from here. With an open
    umask all files of a test could be written by others, and would be refused.
    """
    os.umask(0o022)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        # The processes of tests keep no bytecode: without this each would compile again what no test imports itself.
        compileall.compile_dir(PACKAGE, quiet=2)
        # A program that takes as long to load as several starts takes, and needs what only Linux has.
        if config.getoption("numprocesses", None) and sys.platform == "linux":
            with ExitStack() as stack:
                directory = Path(stack.enter_context(TemporaryDirectory(prefix="warm-")))
                stack.enter_context(warm_starts(directory))
                config.add_cleanup(stack.pop_all().close)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Keep the garbage collector away from the thousands of tests, which are there to the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show where two request bodies differ line by line: their texts are long."""
    bodies = [as_object(value) for value in (left, right)]
    if op != "==" or not all("input" in body for body in bodies):
        return None
    seen, expected = (json.dumps(body, indent=1).replace("\\n", "\n").splitlines() for body in bodies)
    return ["expected (-) and seen (+)", *difflib.unified_diff(expected, seen, n=0, lineterm="")]


@pytest.fixture(scope="session")
def first_repo(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A git repository with one commit, to be written again for each test: git makes one a hundred times slower."""
    place = make_place(tmp_path_factory.mktemp("first"))
    # Directories are what takes longest to make and to remove.
    subprocess.run(["git", "repack", "-adq"], cwd=place.repo, env=place.env, check=True)
    for unneeded in ("logs", "objects/info", "refs/tags", "info"):
        shutil.rmtree(place.repo / ".git" / unneeded)
    return Tree.read(place.repo)


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """One for each temporary directory of this worker."""
    return itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, numbers: Iterator[int]) -> Path:
    """As that of pytest, which looks through all earlier directories for a free number: a millisecond a test."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}_{next(numbers)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def place(tmp_path: Path, first_repo: Tree) -> Place:
    """A home, a CODEX_HOME without config, a git repository with one commit, a clean environment."""
    return make_place(tmp_path, like=first_repo)


@pytest.fixture
def user(place: Place) -> Place:
    """A place without the bundled skills."""
    place.configure(NO_BUNDLED)
    return place


@pytest.fixture(scope="session", autouse=True)
def swept(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Generator[None]:
    """Remove what tests have left when all of them have passed.

    Not after each: ext4 looks at all that was deleted in the last seconds whenever it makes a file. And nobody waits
    for it: a disk takes ten seconds for the hundred thousand files of a whole run.
    """
    yield
    if not request.session.testsfailed:
        # Put aside, because pytest looks through it at the end.
        left = tmp_path_factory.getbasetemp()
        aside = mkdtemp(prefix="swept-", dir=left.parent)
        left.rename(Path(aside, left.name))
        # What holds an output of ours open would keep its reader waiting.
        nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        os.posix_spawnp("rm", ["rm", "-rf", "--", aside], os.environ, file_actions=nothing, setpgroup=0)
