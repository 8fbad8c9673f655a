"""`codex-py` where a process may open few files."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.fake_responses import FakeResponses
from tests.support.home import Place
from tests.support.process import COMMAND

SERVER = '[mcp_servers.files]\ncommand = "/bin/cat"\n'


def limited(place: Place, count: int) -> subprocess.CompletedProcess[str]:
    line = f'ulimit -n {count}; exec "$0" exec go'
    return subprocess.run(
        ["/bin/bash", "-c", line, COMMAND], env=place.env, cwd=place.repo, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize("more", ["", SERVER])
def test_a_start_with_too_few_descriptors_fails_in_one_line_instead_of_waiting(
    place: Place, is_live: bool, more: str
) -> None:
    with FakeResponses() as model:
        # A refused connection would be waited for, as for a network that is away.
        place.use_model(model.base_url if is_live else "http://127.0.0.1:9/v1", connect_retry_seconds=600)
        place.configure((place.codex_home / "config.toml").read_text() + more)
        ended = limited(place, 8)
    errors = [line for line in ended.stderr.splitlines() if "too many open files; raise `ulimit -n`" in line]
    assert (ended.returncode, len(errors)) == (1, 1), ended.stderr
    assert model.requests == []
