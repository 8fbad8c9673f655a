"""Sources of skills for tests: directories, repositories and archives with skills in them."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.home import Place
from tests.support.process import Finished, run

TEXT: Final = "---\nname: {name}\ndescription: Check the spelling. Use when a text is published.\n{more}---\n{body}\n"


def skill_files(name: str = "spell", *, more: str = "", body: str = "Read it twice.") -> dict[str, str]:
    """The files of a good skill, by path."""
    return {
        "SKILL.md": TEXT.format(name=name, more=more, body=body),
        "scripts/check.sh": "#!/bin/sh\necho fine\n",
    }


def write_files(directory: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        if name.endswith(".sh"):
            path.chmod(0o755)
    return directory


def repository(place: Place, directory: Path, files: Mapping[str, str] | None = None) -> str:
    """A repository with the skill in `skills/spell`; gives its address."""
    write_files(directory / "skills/spell", skill_files() if files is None else files)
    git(place, directory, "init", "-q", "-b", "main", "--template=")
    save(place, directory)
    return directory.as_uri()


def save(place: Place, directory: Path, message: str = "a change") -> str:
    """Commit everything; gives the commit."""
    git(place, directory, "add", "-A", "-f")
    git(place, directory, "commit", "-q", "-m", message)
    return git(place, directory, "rev-parse", "HEAD")


def git(place: Place, directory: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Tester", "-c", "user.email=tester@example.invalid", "-c", "gc.auto=0"]
    ended = subprocess.run(["git", *who, *arguments], cwd=directory, env=place.env, check=True, capture_output=True)
    return ended.stdout.decode().strip()


def packed(directory: Path, archive: Path) -> Path:
    """An archive of a directory as `npm pack` makes it: everything below `package`."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(directory, "package")
    return archive


def skills(place: Place, *arguments: str | Path, cwd: Path | None = None) -> Finished:
    return run(place, "skills", *arguments, cwd=cwd)


def records_of(place: Place, root: Path) -> dict[str, Any]:
    """What was agreed to for the skills in a directory."""
    written = [json.loads(file.read_text()) for file in (place.codex_home / "skill-records").glob("*.json")]
    found: list[dict[str, Any]] = [entry["skills"] for entry in written if entry["root"] == str(root.resolve())]
    return found[0] if found else {}


def user_root(place: Place) -> Path:
    """Where skills of the user are installed."""
    return place.home / ".agents/skills"


def usable(place: Place) -> dict[str, str]:
    """The skills that a session would have, each with its text."""
    ended = skills(place, "list", "--json")
    assert ended.status == 0, ended.err
    return {entry["name"]: Path(entry["path"]).read_text() for entry in json.loads(ended.out)["skills"]}


def held(place: Place) -> list[str]:
    """Why skills are not loaded."""
    return [entry["reason"] for entry in json.loads(skills(place, "list", "--json").out)["not_loaded"]]
