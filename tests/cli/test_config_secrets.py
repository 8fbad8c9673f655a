"""No secret of a configuration is printed: by what shows settings, and by the messages about faults in them."""

from __future__ import annotations

import pytest

from tests.support.home import Place
from tests.support.process import run

SECRETS = """
model_provider = "own"
notify = ["notify-send", "--token", "S3cretA-hunter2"]

[model_providers.own]
name = "own"
base_url = "https://user:S3cretB-hunter2@example.com/v1"
experimental_bearer_token = "S3cretC-hunter2"
http_headers = { Authorization = "Bearer S3cretD-hunter2", X-Team = "S3cretE-h4nter2x" }
query_params = { api_key = "S3cretF-hunter2" }

[shell_environment_policy]
set = { DB_PASSWORD = "S3cretG-hunter2", URL = "postgres://u:S3cretH-hunter2@h/db" }

[mcp_servers.files]
command = "no-such-program"
args = ["--api-key", "S3cretI-hunter2", "--url=https://u:S3cretJ-hunter2@127.0.0.1:1/"]
env = { TOKEN = "S3cretK-hunter2" }

[mcp_servers.web]
url = "http://u:S3cretL-hunter2@127.0.0.1:1/mcp?key=S3cretM-hunter2"
http_headers = { Authorization = "Bearer S3cretN-hunter2" }
"""
COMMANDS = [
    "config",
    "config --json",
    "config --changed",
    "doctor",
    "doctor --json",
    "mcp list",
    "mcp list --json",
    "mcp get files",
    "mcp get files --json",
    "mcp get web",
    "mcp get web --json",
    "models",
    "skills doctor",
    "sandbox explain",
]
FAULTS = [
    '[model_providers.own]\nbase_url = "example.com/?key=S3cret"',
    '[model_providers.own]\nhttp_headers = "Authorization: S3cret"',
    '[model_providers.own]\nhttp_headers = { Authorization = ["S3cret"] }',
    '[model_providers.own]\nquery_params = ["S3cret"]',
    '[model_providers.own]\nexperimental_bearer_token = ["S3cret"]',
    '[model_providers]\nown = "S3cret"',
    '[mcp_servers]\nfiles = ["S3cret"]',
    '[mcp_servers.files]\ncommand = ["npx", "--token", "S3cret"]',
    '[mcp_servers.files]\nargs = "--token S3cret"',
    '[mcp_servers.files]\ncommand = "npx"\nargs = ["--token", ["S3cret"]]',
    '[mcp_servers.files]\nenv = ["TOKEN=S3cret"]',
    '[mcp_servers.files]\nenv = { TOKEN = { value = "S3cret" } }',
    '[mcp_servers.files]\nurl = "u:S3cret@example.com"',
    '[mcp_servers.files]\nhttp_headers = "S3cret"',
    "[mcp_servers.files]\nenv = { TOKEN = S3cret }",
    '[mcp_servers.files]\nenv = { TOKEN = "S3cret }',
    '[shell_environment_policy]\nset = ["TOKEN=S3cret"]',
    "notify = \"curl -H 'Authorization: Bearer S3cret'\"",
    'hooks = "S3cret"',
    'chatgpt_base_url = "u:S3cret@example.com"',
    'sandbox_mode = "ghp_S3cret0123456789abcdefghijABCDEF"',
    'model = "a"\nmodel = "S3cret"',
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_shows_settings_shows_no_secret(place: Place, command: str) -> None:
    place.configure(SECRETS)
    ended = run(place, *command.split())
    assert "S3cret" not in ended.out + ended.err
    assert ended.out + ended.err
    assert not ended.has_traceback


@pytest.mark.parametrize("fault", FAULTS)
def test_the_message_about_a_fault_shows_no_secret(place: Place, fault: str) -> None:
    place.configure(f"{fault}\n")
    for command in (["config"], ["exec", "--skip-git-repo-check", "go"]):
        ended = run(place, *command)
        assert ended.status != 0
        assert "config.toml" in ended.err
        assert "S3cret" not in ended.out + ended.err


def test_a_fault_in_a_flag_shows_no_secret(place: Place) -> None:
    for value in ('mcp_servers.files.env=["S3cret"]', 'mcp_servers.files.args="--token S3cret"'):
        ended = run(place, "config", "-c", value)
        assert ended.status != 0
        assert "S3cret" not in ended.err
    assert "S3cret" not in run(place, "mcp", "add", "x", "--env", "S3cret", "--", "npx").err
