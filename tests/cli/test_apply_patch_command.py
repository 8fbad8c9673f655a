"""`codex-py apply-patch`, as a script sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.home import Place
from tests.unit.patch_cases import patch, update

DONE = "Success. Updated the following files:\n"
SEE = "; see `codex-py apply-patch --help`\n"


def apply_patch(place: Place, *arguments: str | bytes, stdin: bytes = b"") -> tuple[int, str, str]:
    ended = subprocess.run(
        [sys.executable, "-m", "codex_py.cli.main", "apply-patch", *arguments],
        cwd=place.repo,
        env={**place.env, "PYTHONPATH": str(Path(__file__).parents[2])},
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


def test_a_patch_is_an_argument_or_comes_on_stdin(place: Place) -> None:
    place.write("a", "x\n")
    assert apply_patch(place, update("a", "-x", "+y")) == (0, f"{DONE}M a\n", "")
    text = patch("*** Add File: ../b c", "+1", "*** Delete File: a") + "\n"
    assert apply_patch(place, "-", stdin=text.encode()) == (0, f"{DONE}A ../b c\nD a\n", "")
    assert (place.repo.parent / "b c").read_text() == "1\n"
    assert not (place.repo / "a").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "Invalid patch: The first line of the patch must be '*** Begin Patch'\n"),
        (patch(), "No files were modified.\n"),
        (patch("*** Add File: n", "+1", "*** Delete File: none"), "Failed to delete file {repo}/none: no such file\n"),
    ],
)
def test_a_patch_that_does_not_fit_is_status_1(text: str, message: str, place: Place) -> None:
    assert apply_patch(place, text) == (1, "", message.format(repo=place.repo))
    assert not (place.repo / "n").exists()


def test_a_patch_may_begin_with_a_byte_order_mark(place: Place) -> None:
    text = "\ufeff" + patch("*** Add File: a", "+1").replace("\n", "\r\n")
    assert apply_patch(place, stdin=text.encode()) == (0, f"{DONE}A a\n", "")
    assert (place.repo / "a").read_bytes() == b"1\n"


def test_a_wrong_command_line_is_status_2(place: Place) -> None:
    assert apply_patch(place, "a", "b") == (2, "", f"error: one patch at a time, got 2 arguments{SEE}")
    assert apply_patch(place, "--check") == (2, "", f"error: unknown option `--check`{SEE}")
    assert apply_patch(place, stdin=b" \n") == (2, "", f"error: no patch on stdin{SEE}")


def test_what_is_not_text_is_refused(place: Place) -> None:
    said = "Invalid patch: not UTF-8 (byte 16)\n"
    assert apply_patch(place, stdin=b"*** Begin Patch\n\xff") == (1, "", said)
    assert apply_patch(place, b"*** Begin Patch\n\xff") == (1, "", said)


def test_control_characters_do_not_reach_the_terminal(place: Place) -> None:
    place.write("a", "\x1b]0;title\x07\n")
    status, _, error = apply_patch(place, update("a", "-\x1b]0;titel\x07"))
    assert status == 1
    assert "\x1b" not in error
    assert "␛]0;titel" in error


def test_help_is_on_stdout(place: Place) -> None:
    status, output, error = apply_patch(place, "--help")
    assert (status, error) == (0, "")
    assert output.startswith("usage: codex-py apply-patch PATCH\n")
