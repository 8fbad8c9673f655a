"""The command of a provider that prints its token, for `exec`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.fake_responses import FakeResponses, fake_model, say
from tests.support.home import Place
from tests.support.hostile import PlantedPrograms
from tests.support.process import run


@pytest.mark.parametrize("is_added", [False, True], ids=["of the project", "of an added directory"])
def test_a_token_command_that_commands_may_write_is_named_and_not_started(place: Place, is_added: bool) -> None:
    with TemporaryDirectory(dir="/var/tmp") as added, FakeResponses() as model:
        directory = (Path(added) if is_added else place.repo / ".venv") / "bin"
        planted = PlantedPrograms(place, directory, ["get-token"])
        place.use_model(model.base_url, auth={"command": "get-token"})
        flags = ["-s", "workspace-write", "--add-dir", added] if is_added else []
        # From elsewhere: it is the session's directory that counts.
        ended = run(planted.place, "exec", "-C", place.repo, *flags, "hi", cwd=place.home)
    assert f"`get-token` of `model_providers.fake.auth` is not started: it is `{directory}/get-token`" in ended.err
    assert (ended.status, planted.ran(), model.requests) == (1, [], [])


def test_a_token_command_and_what_it_starts_are_looked_up_elsewhere(place: Place) -> None:
    planted = PlantedPrograms(place, place.repo / ".venv/bin", ["sh", "cat"])
    token = place.home / "token"
    token.write_text("a-token")
    with fake_model(place, [say("hello")], auth={"command": "sh", "args": ["-c", f"cat {token}"]}) as model:
        ended = run(planted.place, "exec", "hi")
    assert (ended.status, ended.out, planted.ran()) == (0, "hello\n", [])
    assert model.requests[0].headers["authorization"] == "Bearer a-token"
