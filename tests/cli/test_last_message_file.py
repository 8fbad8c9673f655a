"""Where the last message is written: the file that was named at the start, wherever links lead later."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.support.fake_responses import FakeResponses, call, fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, Finished, run


def answer_after(place: Place, cmd: str, target: str) -> Finished:
    """A run with `-o` in which the model's command comes before the last message."""
    with fake_model(place, [call("c", "exec_command", {"cmd": cmd, "login": False})], [say("the answer")]):
        return run(place, "exec", "-s", "workspace-write", "-o", target, "go")


@pytest.mark.parametrize(
    ("part", "aim", "exists"),
    [
        ("file", "home/.profile", True),
        ("file", "repo/.git/hooks/post-checkout", False),
        ("directory", "repo/.git/config", True),
        ("directory", "home/.profile", False),
    ],
)
def test_a_link_that_a_command_makes_does_not_lead_the_last_message_elsewhere(
    place: Place, part: str, aim: str, exists: bool
) -> None:
    victim = place.home.parent / aim
    if exists:
        victim.parent.mkdir(exist_ok=True)
        victim.write_text("theirs\n")
    (place.repo / "out").mkdir()
    if part == "file":
        target, cmd = "out/answer", f"ln -s {victim} out/answer"
    else:
        target, cmd = f"out/{victim.name}", f"rmdir out && ln -s {victim.parent} out"
    before = victim.read_text() if victim.exists() else None

    ended = answer_after(place, cmd, target)

    assert (victim.read_text() if victim.exists() else None) == before
    assert (place.repo / "out" / "answer").is_symlink() or (place.repo / "out").is_symlink()
    assert ended.out == "the answer\n"
    assert ended.status == 1
    assert "its path has become a link" in ended.err


def test_a_link_that_was_there_before_is_followed(place: Place) -> None:
    kept = place.home / "kept"
    kept.mkdir()
    (place.repo / "out").symlink_to(kept)
    (place.repo / "answer").symlink_to(kept / "by-name")
    assert answer_after(place, "true", "out/answer").status == 0
    assert answer_after(place, "rm answer", "answer").status == 0
    assert {path.name: path.read_text() for path in kept.iterdir()} == {"answer": "the answer", "by-name": "the answer"}


@pytest.mark.parametrize("target", ["/dev/stderr", "/dev/fd/2", "link"])
def test_a_stream_can_be_named(place: Place, target: str) -> None:
    (place.repo / "link").symlink_to("/dev/stderr")
    assert "the answer" in answer_after(place, "rm link; ln -s README.md link", target).err.splitlines()[-1]
    assert "the answer" not in (place.repo / "README.md").read_text()


def test_a_pipe_can_be_named(place: Place) -> None:
    os.mkfifo(place.repo / "pipe")
    with (
        FakeResponses([say("the answer")]) as model,
        subprocess.Popen(["/bin/cat", place.repo / "pipe"], stdout=subprocess.PIPE) as reader,
    ):
        place.use_model(model.base_url)
        ended = subprocess.run([COMMAND, "exec", "-o", "pipe", "go"], cwd=place.repo, env=place.env, check=False)
        assert reader.stdout is not None
        assert (ended.returncode, reader.stdout.read()) == (0, b"the answer")
