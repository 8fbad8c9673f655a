"""Saying what a repository is: right about any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.offline.readme import Readme, read_readme
from tests.unit.test_offline_loop import NOTICE, Host, git_tree, write_tree

PYTHON_PROJECT = {
    "README.md": """[![build](https://x.example/b.svg)](https://x.example) ![cover](c.svg)

# Weather **Station**

<!-- a comment

with paragraphs in it -->
[Docs](https://d.example) | [Chat](https://c.example)

Reads *thermometers* over the [serial port](https://s.example) and keeps
a year of values in one file.

## Usage

```console
$ weather read --once
21.5
$ weather plot
```
""",
    "pyproject.toml": """[project]
name = "weather-station"
description = "Reads thermometers."
[project.scripts]
weather = "weather.cli:main"
""",
    "weather/__init__.py": "",
    "weather/cli.py": "def main(): ...\n",
    "weather/store.py": "",
    "tests/test_store.py": "",
    "docs/guide.md": "# Guide\n",
    "Makefile": "all: build\n\nbuild:\n\ttrue\nrun:\n\ttrue\n",
}


async def test_the_whole_answer_about_a_python_project(tmp_path: Path) -> None:
    root = git_tree(tmp_path / "station", PYTHON_PROJECT)

    answer = await Host(root).ask("what is this repository?")

    assert (
        answer
        == f"""**weather-station** (folder `station`): \
Reads thermometers over the serial port and keeps a year of values in one file.

(from `README.md`)

- **Files:** 8 tracked by git
- **Languages:** Python (4 files)
- **Other files:** Markdown (2), TOML (1), other (1)
- **Tests:** `tests/` (1 test file)
- **Entry points:** command `weather` → `weather.cli:main`, `weather/cli.py`
- **How to run:** `weather read --once`, `weather plot` (from `README.md`); \
`pip install .`, `weather --help` (from `pyproject.toml`); `make all`, `make build`, `make run` (from `Makefile`)
- **Folders:** `weather/` (3), `docs/` (1), `tests/` (1)

{NOTICE}"""
    )


async def test_only_commands_that_read_are_run(tmp_path: Path) -> None:
    host = Host(git_tree(tmp_path / "station", PYTHON_PROJECT))

    await host.ask("explain this project")

    assert {command.split()[0] for command in host.commands} <= {"git", "head", "grep", "find", "pwd"}


async def test_scripts_without_a_suffix_are_counted_by_their_first_line(tmp_path: Path) -> None:
    files = {
        "scripts/check": "#!/usr/bin/env bash\ntrue\n",
        "scripts/bench": "#!/usr/bin/env -S python3.11 -E\n",
        "scripts/serve": "#!/usr/local/bin/node\n",
        "scripts/x y": "#! /bin/sh\n",
        "scripts/late": "\n#!/bin/sh\n",
        "LICENSE": "do what you like\n",
        "a.py": "",
    }

    told = await Host(git_tree(tmp_path, files)).ask("what is this repository?")

    assert (
        "- **Languages:** Python (2 files), Shell (2 files), JavaScript (1 file)\n- **Other files:** other (2)\n"
        in told
    )


async def test_what_is_left_out_of_a_list_is_counted(tmp_path: Path) -> None:
    files = {f"scripts/s{number:02}": "#!/bin/sh\n" for number in range(11)}

    told = await Host(git_tree(tmp_path, files)).ask("what is this repository?")

    shown = ", ".join(f"`scripts/s{number:02}`" for number in range(8))
    assert f"- **Entry points:** {shown} and 3 more\n" in told


async def test_a_readme_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "README.md").symlink_to("nowhere")

    told = await Host(tmp_path).ask("what is this repository?")

    assert "`README.md` cannot be read, so what it is for can only be guessed" in told


@pytest.mark.parametrize("prompt", ["what is this repository?", "run the tests", "make it faster"])
async def test_where_nothing_can_be_seen_nothing_is_said_of_it(tmp_path: Path, prompt: str) -> None:
    host = Host(write_tree(tmp_path / "repo", PYTHON_PROJECT))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bash").symlink_to("/bin/bash")
    host.path = str(tmp_path / "bin")

    told = await host.ask(prompt)

    assert told.startswith("I could not look at the files: ")


async def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    answer = await Host(tmp_path).ask("what is this repository?")

    assert answer == f"`{tmp_path.name}` is empty: there is no file in it to describe.\n\n{NOTICE}"


async def test_without_readme_and_git_the_files_speak(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path / "bare",
        {"main.go": "", "go.mod": "module example.com/x/tool\n", "a/b_test.go": "", "it's here.txt": ""},
    )

    answer = await Host(root).ask("explain this project")

    assert "**tool** (folder `bare`). There is no README" in answer
    assert "- **Files:** 4 (none tracked by git)" in answer
    assert "- **Languages:** Go (2 files)" in answer
    assert "- **Tests:** `a/b_test.go` (1 test file)" in answer
    assert "- **Entry points:** `main.go`" in answer


async def test_an_empty_readme_gives_way_to_the_manifest(tmp_path: Path) -> None:
    files = {
        "README.md": "",
        "package.json": '{"name": "n", "description": "Does things.", "scripts": {"start": "x", "test": "y"}}',
    }

    answer = await Host(git_tree(tmp_path / "js", files)).ask("describe this repo")

    assert "**n** (folder `js`): Does things." in answer
    assert "(from `package.json`; `README.md` has no text to go by.)" in answer
    assert "`npm start`, `npm test` (from `package.json`)" in answer


async def test_a_readme_that_begins_with_its_use_gives_way_to_the_manifest(tmp_path: Path) -> None:
    files = {
        "README.md": "semver(1) -- versions\n===\n\n## Install\n\n```bash\nnpm install semver\n```\n\n## Usage\n\n"
        "As a node module:\n\n```js\nrequire('semver')\n```\n",
        "package.json": '{"name": "semver", "description": "The version parser.", "main": "./index.js"}',
        "index.js": "",
    }

    answer = await Host(git_tree(tmp_path / "js", files)).ask("what is this repository?")

    assert "**semver** (folder `js`): The version parser." in answer
    assert "(from `package.json`; `README.md` begins with how to use it.)" in answer
    assert "- **Entry points:** `./index.js` (`main`)\n" in answer


@pytest.mark.parametrize(
    ("files", "name", "how"),
    [
        (
            {
                "pom.xml": "<project><parent><artifactId>top</artifactId></parent><artifactId>shop</artifactId>"
                "<description>Sells\n  things.</description></project>"
            },
            "**shop** (folder `x`): Sells things.",
            "`mvn package` (from `pom.xml`)",
        ),
        ({"build.gradle.kts": "plugins { application }"}, "**x**", "`gradle build`, `gradle run`"),
        ({"CMakeLists.txt": "project(Fast CXX)"}, "**Fast**", "`cmake -B build`, `cmake --build build`"),
        ({"setup.py": "", "setup.cfg": ""}, "**x**", "`pip install .` (from `setup.cfg`)\n"),
    ],
)
async def test_other_manifests_say_how_to_build(tmp_path: Path, files: dict[str, str], name: str, how: str) -> None:
    answer = await Host(git_tree(tmp_path / "x", files)).ask("what is this repository?")

    assert name in answer
    assert f"- **How to run:** {how}" in answer


async def test_broken_manifests_stop_nothing(tmp_path: Path) -> None:
    files = {
        "package.json": "{",
        "pyproject.toml": "[[",
        "Cargo.toml": "= =",
        "setup.cfg": "\x00",
        "a.rs": "",
        "README": "x",
    }

    answer = await Host(git_tree(tmp_path / "odd", files)).ask("describe this repo")

    assert "- **Files:** 6 tracked by git" in answer
    assert "Rust (1 file)" in answer


async def test_new_files_are_counted_apart(tmp_path: Path) -> None:
    root = git_tree(tmp_path / "r", {"a.py": "", ".gitignore": "*.log\n"})
    write_tree(root, {"b.py": "", "c.log": ""})

    answer = await Host(root).ask("how many files are in this repository?")

    assert "- **Files:** 2 tracked by git, and 1 untracked" in answer


async def test_from_a_subfolder_the_repository_is_described(tmp_path: Path) -> None:
    root = git_tree(tmp_path / "top", {"README.md": "# Top\n\nThe whole thing is here.\n", "src/deep/a.py": ""})

    answer = await Host(root / "src" / "deep").ask("what is this repository?")

    assert "**Top** (folder `top`): The whole thing is here." in answer
    assert "You are in `src/deep/` of it." in answer


async def test_a_package_that_describes_itself_is_described_as_a_folder(tmp_path: Path) -> None:
    root = git_tree(
        tmp_path / "top",
        {"README.md": "# Top\n\nThe whole thing.\n", "pkg/README.md": "# Pkg\n\nOnly this small part.\n"},
    )

    answer = await Host(root / "pkg").ask("explain this folder")

    assert "**Pkg** (folder `pkg`): Only this small part." in answer
    assert "- **Files:** 1 tracked by git" in answer


async def test_a_list_too_long_to_show_is_counted_by_the_shell(tmp_path: Path) -> None:
    files = {f"src/part{number % 7}/module_{number:04}.py": "" for number in range(900)}
    files |= {f"web/page_{number:03}.ts": "" for number in range(100)}
    host = Host(
        git_tree(tmp_path / "big", files | {"README.md": "# Big\n\nMany files in here.\n", "tests/test_a.py": ""})
    )
    host.cap = 4000

    answer = await host.ask("what is this repository?")

    assert "**Big** (folder `big`): Many files in here." in answer
    assert "- **Files:** 1002 tracked by git" in answer
    assert "Python (901 files), TypeScript (100 files)" in answer
    assert "`src/` (900), `web/` (100), `tests/` (1)" in answer
    assert "- **Tests:** `tests/`" in answer


async def test_names_git_would_quote_are_read_as_they_are(tmp_path: Path) -> None:
    answer = await Host(git_tree(tmp_path / "r", {"tests/tëst_ü.py": "", "a b.py": ""})).ask("what is this repo?")

    assert "Python (2 files)" in answer


@pytest.mark.parametrize(
    ("text", "title", "paragraph"),
    [
        ("", "", ""),
        ("# One\n\nThe first real words here.\n\nSecond.", "One", "The first real words here."),
        ("One\n===\n\nThe first real words here.", "One", "The first real words here."),
        (
            "<h1 align=center>My <b>Tool</b></h1>\n<p align=center>It does one thing well.</p>",
            "My Tool",
            "It does one thing well.",
        ),
        ("---\ntitle: x\n---\n# T\n\nAfter the front matter.", "T", "After the front matter."),
        ("# T\r\n\r\nWindows line ends are fine.\r\n", "T", "Windows line ends are fine."),
        ("# T\n\n> A quoted line that says it.\n", "T", "A quoted line that says it."),
        (
            "# T\n\n- a list item first\n- another one\n\nThen the prose comes along.",
            "T",
            "Then the prose comes along.",
        ),
        ("# T\n\n```\ncode block first here\n```\n\nThen the prose comes along.", "T", "Then the prose comes along."),
        (
            "T\n=\n\n.. image:: x.png\n   :alt: y\n\nA tool written in `Rust <https://r>`_ today.",
            "",
            "A tool written in Rust today.",
        ),
        ("# T\n\n| a | b |\n|---|---|\n\nAfter the table comes this.", "T", "After the table comes this."),
        ("just one plain line of text", "", "just one plain line of text"),
        ("# T\n\n[![a](b)](c) [![d](e)](f)\n\nTwo badges before this line.", "T", "Two badges before this line."),
        (
            "# T\n\n**Bold** and _soft_ and `code_with_underscores` stay.",
            "T",
            "Bold and soft and `code_with_underscores` stay.",
        ),
        ("# 名前\n\nこれは 短い 説明 です 本当に", "名前", "これは 短い 説明 です 本当に"),
    ],
)
def test_a_readme_is_reduced_to_title_and_first_paragraph(text: str, title: str, paragraph: str) -> None:
    readme = read_readme(text)

    assert (readme.title, readme.paragraph) == (title, paragraph)


@pytest.mark.parametrize(
    "text", ["<!--" * 6000, "![" * 12000, "[" * 24000, "*a" * 12000, "<h1>" * 6000, "`" * 24000, "#" * 24000]
)
def test_a_hostile_readme_is_read_in_no_time(text: str) -> None:
    assert isinstance(read_readme(text), Readme)
