"""Every code block of the documentation works: commands run, settings load, JSON and YAML parse.

The commands of a page run one after the other in a fresh home, in a small repository, with a fake model. A block that
cannot run there has the reason in a comment above it: `<!-- not run: needs a key -->`.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.support.fake_responses import fake_model, repeat, say
from tests.support.home import Place, make_place
from tests.support.process import run
from tests.support.warm import warm_path

ROOT: Final = Path(__file__).resolve().parents[2]
NOT_RUN: Final = re.compile(r"<!-- not run: (.+) -->")
FENCE: Final = re.compile(r"^( *)(```+)([a-z]*)$")
SHELL: Final = ("sh", "console")
DATA: Final = ("toml", "json", "yaml", "python")
# Prose in a frame: patterns, screens, skills, answers.
UNCHECKED: Final = ("", "text", "markdown", "diff", "csv", "dockerfile", "xml")
PROJECT: Final = {
    "README.md": "# Demo\n\nA small demo.\n",
    "pyproject.toml": '[project]\nname = "demo"\nversion = "0.1.0"\n',
    "src/api.py": "def add(a, b):\n    return a + b\n",
    "tests/test_api.py": "from src.api import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, its language and its text; `reason` says why it is not run."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    lines = page.read_text().splitlines()
    at = 0
    while at < len(lines):
        begin = FENCE.match(lines[at])
        if begin is None:
            at += 1
            continue
        indent, fence, language = begin.groups()
        body = list(takewhile(lambda line: line.strip() != fence, lines[at + 1 :]))  # noqa: B023 - used at once
        above = next((line for line in reversed(lines[:at]) if line.strip()), "")
        marker = NOT_RUN.search(above)
        text = "\n".join(line.removeprefix(indent) for line in body) + "\n"
        yield Block(page, at + 1, language, text, marker[1] if marker else None)
        at += len(body) + 2


def pages() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if "decisions" not in page.parts]


def pages_with(languages: Sequence[str]) -> list[str]:
    return [
        str(page.relative_to(ROOT))
        for page in pages()
        if any(block.language in languages and block.reason is None for block in blocks_of(page))
    ]


def blocks(name: str, languages: Sequence[str]) -> list[Block]:
    return [block for block in blocks_of(ROOT / name) if block.language in languages and block.reason is None]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in pages()])
def test_every_block_has_a_language_that_is_checked_or_is_prose(page: str) -> None:
    languages = {block.language for block in blocks_of(ROOT / page)}
    assert languages <= {*SHELL, *DATA, *UNCHECKED}


@pytest.mark.parametrize("page", pages_with(SHELL))
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    place = make_place(tmp_path, PROJECT)
    with fake_model(place, repeat([say("done")]), excuse={"threads", "unplayed"}):
        shell = Shell(place, tmp_path / "state")
        for block in blocks(page, SHELL):
            for command, expected in commands_of(block):
                finished = shell.run(command)
                said = f"{block}: `{command}` ended with {finished.returncode}:\n{finished.stdout}{finished.stderr}"
                assert finished.returncode == 0, said
                assert expected is None or looks_like(finished.stdout, expected), said


@pytest.mark.parametrize("page", pages_with(DATA))
def test_the_data_of_a_page_can_be_read(page: str, place: Place) -> None:
    for block in blocks(page, DATA):
        match block.language:
            case "toml":
                place.configure(block.text)
                finished = run(place, "config", "--strict-config", "--json")
                assert finished.status == 0, f"{block}: {finished.err}"
            case "json":
                read_json(block)
            case "yaml":
                list(yaml.safe_load_all(block.text))
            case _:
                compile(block.text, str(block), "exec")


class Shell:
    """Runs one command line after the other; the directory and exported variables carry over."""

    def __init__(self, place: Place, state: Path) -> None:
        self._place = place
        self._state = state
        state.write_text(f"cd {place.repo}\n")

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        script = f". {self._state}\ntrap '{{ export -p; echo cd \"$PWD\"; }} > {self._state}' EXIT\n{command}\n"
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            env=warm_path(self._place.env),
            cwd=self._place.repo,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def commands_of(block: Block) -> Iterator[tuple[str, str | None]]:
    """The command lines of a block, each with the output it shows; None where the block shows none."""
    if block.language == "sh":
        yield block.text, None
        return
    command, shown = "", ""
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            if command:
                yield command, shown or None
            command, shown = line[2:], ""
        elif command.rstrip("\n").endswith("\\") and not shown:
            command += line
        else:
            shown += line
    yield command, shown or None


def looks_like(output: str, expected: str) -> bool:
    """Whether the output is what a page shows; `…` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


def read_json(block: Block) -> None:
    """One document, or one on each line."""
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        for line in block.text.splitlines():
            json.loads(line)
