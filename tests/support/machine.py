"""What tests need of the machine itself, and nothing can install: asked for here, and not passed over in silence."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def need(command: Sequence[str], what: str) -> None:
    """Skip the test where a command fails; with `CI` set fail it, so that a machine of ours never tests less."""
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        said = "there is no such program"
    except subprocess.CalledProcessError as failure:
        said = str(failure.stderr).strip() or f"status {failure.returncode}"
    else:
        return
    sentence = f"this machine has no {what}: `{Path(command[0]).name}`: {said}"
    if os.environ.get("CI"):
        pytest.fail(sentence)
    pytest.skip(sentence)
