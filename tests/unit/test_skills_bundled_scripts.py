"""The scripts of the bundled skills, run as a model runs them: plain Python, no package of ours."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.offline.skills import SHELL_LANGUAGES, fences
from codex_py.skills.evals import read_evals
from codex_py.skills.parse import parse_skill
from tests.support.home import make_repo

SKILLS = Path(__file__).parents[2] / "skills"
SCRIPTS = sorted(SKILLS.glob("*/scripts/*.py"))
ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run_script(
    script: str, *arguments: str | Path, cwd: Path, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `skill/scripts/name.py` in a directory; HOME and CODEX_HOME are of the test's own."""
    home = home or cwd
    return subprocess.run(
        [sys.executable, "-I", str(SKILLS / script), *map(str, arguments)],
        cwd=cwd,
        env={**ENV, "HOME": str(home), "CODEX_HOME": str(home / "codex")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    directory = tmp_path / "repo"
    make_repo(directory, {"README.md": "# Demo\n", "app/main.py": "print(1)\n", "tests/test_app.py": "x = 1\n"}, ENV)
    return directory


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_need_only_the_standard_library_and_explain_themselves(script: Path, tmp_path: Path) -> None:
    names = {
        alias.name.split(".")[0] if isinstance(node, ast.Import) else str(node.module).split(".")[0]
        for node in ast.walk(ast.parse(script.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert names <= sys.stdlib_module_names
    ended = run_script(str(script), "--help", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert os.access(script, os.X_OK)


@pytest.mark.parametrize("skill", sorted(path.name for path in SKILLS.iterdir()))
def test_each_skill_has_a_shell_block_that_calls_a_script_it_has_or_this_program(skill: str) -> None:
    text = (SKILLS / skill / "SKILL.md").read_text()
    blocks = [fence.text for fence in fences(text) if fence.language in SHELL_LANGUAGES]
    called = [block.split()[:2] for block in blocks]
    assert called
    for program, argument in called:
        assert (program, argument) == ("codex-py", "skills") or (SKILLS / skill / argument).is_file()
    assert len(text.splitlines()) < 150
    assert len(parse_skill(text).description) < 400


def test_the_tour_maps_a_repository(repo: Path) -> None:
    write(repo / "package.json", '{"scripts": {"build": "tsc"}}')
    os.mkfifo(repo / "pipe")
    ended = run_script("repo-tour/scripts/tour.py", ".", cwd=repo)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("# repo: 4 files, ")
    for line in ("  Python: 2 lines in 2 files", "  package.json: npm run build", "  app/main.py", "  tests: 1 files"):
        assert f"{line}\n" in ended.stdout


def test_the_tour_goes_without_git_and_shows_nothing_a_terminal_obeys(tmp_path: Path) -> None:
    write(tmp_path / "plain" / "main\x1b[2J.py", "1\n")
    ended = run_script("repo-tour/scripts/tour.py", tmp_path / "plain", cwd=tmp_path)
    assert ended.returncode == 0 and "main?[2J.py" in ended.stdout and "\x1b" not in ended.stdout


def test_the_review_names_files_signs_and_the_command(repo: Path) -> None:
    write(repo / "app" / "main.py", "print(1)\nsubprocess.run(x, shell=True)\npassword = 'hunter2hunter2'\n")
    write(repo / "new.py", "x = 1\n")
    ended = run_script("code-review/scripts/changes.py", cwd=repo)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "  app/main.py  +2 -0\n  new.py  new\n  note: code is changed, and no test\n" in ended.stdout
    assert "  app/main.py:2: shell or eval  subprocess.run(x, shell=True)\n  app/main.py:3: secret?\n" in ended.stdout
    assert "hunter2" not in ended.stdout
    assert "\nthe change: git diff HEAD\n" in ended.stdout


def test_the_review_of_a_branch_begins_where_it_left_the_main_one(repo: Path) -> None:
    for arguments in (["switch", "-qc", "topic"], ["commit", "-qm", "empty topic", "--allow-empty"]):
        subprocess.run(["git", *arguments], cwd=repo, env=ENV, check=True)
    write(repo / "app" / "main.py", "print(2)\n")
    subprocess.run(["git", "commit", "-qam", "second"], cwd=repo, env=ENV, check=True)
    ended = run_script("code-review/scripts/changes.py", cwd=repo)
    assert ended.stdout.startswith("scope: the commits of this branch since it left main\n\ncommits:\n")
    assert "second\n" in ended.stdout and "start\n" not in ended.stdout
    clean = run_script("code-review/scripts/changes.py", "--base", "HEAD", cwd=repo)
    assert clean.stdout.startswith("Nothing to review")
    odd = run_script("code-review/scripts/changes.py", "--base=--output=/x", cwd=repo)
    assert odd.stdout == "No such commit: --output=/x\n"


def test_the_review_outside_a_repository_says_so(tmp_path: Path) -> None:
    ended = run_script("code-review/scripts/changes.py", cwd=tmp_path)
    assert ended.returncode == 0 and "is not in a git repository" in ended.stdout


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""}, "pnpm run test"),
        ({"Cargo.toml": "[package]"}, "cargo test"),
        ({"go.mod": "module x"}, "go test ./..."),
        ({"Makefile": "build:\n\ncheck: build\n\ttrue\n"}, "make check"),
        ({"mix.exs": ""}, "mix test"),
        ({"pytest.ini": "[pytest]\n"}, "python3 -m pytest -q -p no:cacheprovider --tb=short"),
    ],
)
def test_the_test_command_is_chosen_by_what_lies_there(tmp_path: Path, files: dict[str, str], command: str) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    ended = run_script("fix-tests/scripts/run_tests.py", "--plan", cwd=tmp_path)
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, f"command: {command}")


def test_failing_tests_are_run_and_named(tmp_path: Path) -> None:
    text = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\n"
    write(tmp_path / "test_x.py", text)
    ended = run_script("fix-tests/scripts/run_tests.py", "--", sys.executable, "-m", "unittest", cwd=tmp_path)
    assert ended.returncode == 0
    assert "\nfailed (1):\n  test_a (test_x.T.test_a)\noutput:\n" in ended.stdout
    assert ended.stdout.endswith("result: tests failed\n")


def test_a_test_run_is_bounded_in_time_and_output(tmp_path: Path) -> None:
    script = "import time\nfor n in range(9999): print(n, flush=True)\ntime.sleep(60)\n"
    ended = run_script(
        "fix-tests/scripts/run_tests.py", "--timeout", "1", "--", sys.executable, "-c", script, cwd=tmp_path
    )
    assert ended.stdout.endswith("result: out of time\n")
    assert len(ended.stdout.splitlines()) < 100


def test_no_test_command_is_said(tmp_path: Path) -> None:
    ended = run_script("fix-tests/scripts/run_tests.py", cwd=tmp_path)
    assert ended.returncode == 2 and "No test command was found" in ended.stdout


def test_a_new_skill_is_made_and_passes_but_for_what_is_to_be_written(repo: Path) -> None:
    made = run_script(
        "skill-creator/scripts/skill.py",
        *(
            "new",
            "release-notes",
            "--description",
            'Write "notes": fast. Use when a release is near',
            "--with",
            "scripts",
            *("--request", 'write "notes" for 1.2'),
            *("--request", "what is new in 1.2?", "--other", "release 1.2"),
        ),
        cwd=repo / "app",
        home=repo.parent,
    )
    directory = repo / ".agents" / "skills" / "release-notes"
    assert (made.returncode, made.stderr) == (0, "")
    assert sorted(path.name for path in directory.iterdir()) == ["SKILL.md", "agents", "evals", "scripts"]
    cases = {case.name: (case.prompt, case.wants_skill) for case in read_evals(directory)}
    assert cases == {
        "evals 1": ('write "notes" for 1.2', True),
        "evals 2": ("what is new in 1.2?", True),
        "evals 3": ("release 1.2", False),
    }
    written = json.loads((directory / "evals/evals.json").read_text())
    assert (written["skill_name"], written["evals"][0]) == (
        "release-notes",
        {"id": 1, "prompt": 'write "notes" for 1.2', "expected_output": "", "files": [], "assertions": []},
    )
    parsed = parse_skill((directory / "SKILL.md").read_text())
    assert (parsed.name, parsed.description) == ("release-notes", 'Write "notes": fast. Use when a release is near')
    checked = run_script("skill-creator/scripts/skill.py", "check", cwd=repo, home=repo.parent)
    assert checked.returncode == 0
    assert "advice: 4 unfinished lines" in checked.stdout and "1 checked, 0 with errors" in checked.stdout
    again = run_script("skill-creator/scripts/skill.py", "new", "release-notes", "--description", "x", cwd=repo)
    assert again.returncode == 2 and "there is something already" in again.stderr


@pytest.mark.parametrize("name", ["Upper", "two--hyphens", "../x", "path", "x" * 65, "ümlaut", ""])
def test_a_name_that_would_not_work_is_refused(tmp_path: Path, name: str) -> None:
    ended = run_script("skill-creator/scripts/skill.py", "new", name, "--description", "x", cwd=tmp_path)
    assert ended.returncode == 2 and ended.stderr.startswith("error: not a good name")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the first line must be ---"),
        ("\ufeff---\nname: x\ndescription: y\n---\n", "byte order mark"),
        ("---\nname: x\ndescription: y\n", "no closing ---"),
        ("---\nname: x\n---\n", "missing field `description`"),
        ("---\nname: x\ndescription: ''\n---\n", "missing field `description`"),
        ("---\nname: x\nname: y\ndescription: z\n---\n", "`name` is there twice"),
        ("---\nname: x\n\tdescription: z\n---\n", "indented with a tab"),
        ("---\nname: x\ndescription: 'y\n---\n", "a quote is not closed"),
        (f"---\nname: {'x' * 65}\ndescription: y\n---\n", "at most 64"),
    ],
)
def test_the_check_finds_what_keeps_a_skill_from_loading(tmp_path: Path, text: str, reason: str) -> None:
    write(tmp_path / "x" / "SKILL.md", text)
    ended = run_script("skill-creator/scripts/skill.py", "check", tmp_path / "x", cwd=tmp_path)
    assert ended.returncode == 1
    assert reason in ended.stdout
