"""Python files of the current directory, which nobody has trusted, are not imported at start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.home import Place

# What an installed script does, without the modules that some installers import in it.
START = "import sys; from codex_py.cli.entry import main; sys.argv[0] = 'codex-py'; sys.exit(main())"
NAMES = ("signal", "enum", "types", "re", "argparse", "json", "asyncio", "httpx", "typing", "dataclasses")


@pytest.mark.parametrize("path", [":/x", "/x:", ".", "sub/..", "./:/x", "::"])
@pytest.mark.parametrize("arguments", [["--version"], ["features", "list"], ["exec", "--help"]], ids=" ".join)
def test_nothing_of_the_current_directory_is_imported(place: Place, path: str, arguments: list[str]) -> None:
    (place.repo / "sub").mkdir()
    for name in NAMES:
        place.write(f"{name}.py", f"open('imported-{name}', 'w')\nraise SystemExit('imported {name}')\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", START, *arguments],
        cwd=place.repo,
        env={**place.env, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert "imported" not in done.stderr
    assert list(place.repo.glob("imported*")) == []
