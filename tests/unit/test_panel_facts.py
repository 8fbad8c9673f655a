"""What `/mcp` tells of servers: where they are and which variables they get, and no secret."""

from __future__ import annotations

from codex_py.config.load import ConfigRequest, load_config
from codex_py.protocol.status import FactSection
from codex_py.services.session_status import mcp_sections
from tests.support.home import Place

SERVERS = """
[mcp_servers.docs]
url = "https://user:hunter2@docs.example/mcp?key=hunter2"

[mcp_servers.files]
command = "npx"
args = ["-y", "files server", "--api-key=hunter2"]
env = { TOKEN = "hunter2" }
enabled = false
"""


def sections(place: Place, config: str) -> tuple[FactSection, ...]:
    place.configure(config)
    return mcp_sections(load_config(ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env)))


def test_servers_are_reported_without_their_secrets(place: Place) -> None:
    assert sections(place, SERVERS) == (
        FactSection(
            "MCP servers",
            (
                ("docs", "https://docs.example/mcp?…"),
                ("files", "npx -y 'files server' '--api-key=*****' · switched off · gets TOKEN"),
            ),
        ),
    )


def test_without_a_server_it_is_said_how_to_add_one(place: Place) -> None:
    assert sections(place, "") == (
        FactSection("MCP servers", (("", "none; add one under `[mcp_servers.<name>]` in config.toml"),)),
    )
