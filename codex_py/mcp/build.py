"""Makes the MCP servers of a session from the configuration, and answers their sampling requests."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Callable, Mapping
from contextlib import aclosing
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Final

from codex_py import __version__
from codex_py.auth.find_credentials import StoreType
from codex_py.auth.login_store import MCP_FILE, LoginStore, open_store
from codex_py.config.edit import set_value
from codex_py.config.load import LoadedConfig
from codex_py.core.ports import SessionAccess
from codex_py.core.session_request import SessionRequest
from codex_py.core.session_settings import choose_policy
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import ToolError
from codex_py.mcp.connectors import ConnectorRules
from codex_py.mcp.consent import InstallRules
from codex_py.mcp.host import CommandLimits, McpContext, McpFailed
from codex_py.mcp.servers import McpServer
from codex_py.mcp.session import McpSettings, SessionServers
from codex_py.mcp.table import change_of, server_sandbox, session_servers
from codex_py.model.client import ItemDone, ModelClient, Prompt, TurnState
from codex_py.model.providers import Provider
from codex_py.programs import ProbeResults
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.encoding import as_list, as_object, encode_json, uuid7
from codex_py.protocol.items import Message
from codex_py.tools.view_image import fitted_url

# The providers that know tools in namespaces.
_NAMESPACES: Final = ("openai",)


class McpSetup:
    """The MCP servers that a session begins with, in a `table`, and how they are connected."""

    def __init__(self, request: SessionRequest, known: ProbeResults) -> None:
        """`known` is shared by the sandboxes of the session."""
        self.table: Final = session_servers(request)
        self._request = request
        self._known = known

    def connect(
        self, access: SessionAccess, *, provider: Provider, client: ModelClient, pictures: bool
    ) -> SessionServers:
        """The servers as clients; `pictures` says that the model of the session takes them."""
        request, table = self._request, self.table
        config = request.loaded.config
        installs = config.features.skill_mcp_dependency_install
        settings = McpSettings(
            context=make_mcp_context(
                request.loaded, home=request.home, cwd=request.cwd, env=request.env, known=self._known
            ),
            servers=table.servers,
            namespaces=provider.id in _NAMESPACES,
            pictures=pictures,
            can_ask=request.can_ask,
            keep=lambda server, tool, pin: set_value(
                request.home / "config.toml", (*server.table_key, "tools", tool, "approved_hash"), pin
            ),
            sample=partial(sample, client),
            install=InstallRules(
                file=request.home / "config.toml",
                project=request.loaded.project_root or request.cwd,
                waiting=table.waiting,
                names=table.names | config.mcp_servers.keys(),
                always=installs
                and (request.install_dependencies or config.skills.install_mcp_dependencies == "always"),
                never_ask=config.skills.install_mcp_dependencies == "never" or not installs,
                never=frozenset(config.skills.never_install_mcp),
            ),
            login_port=config.mcp_oauth_callback_port,
            connectors=ConnectorRules(config.apps, allowed=config.features.apps),
        )
        return SessionServers(settings, access)


def make_mcp_context(
    loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str], known: ProbeResults | None = None
) -> McpContext:
    """Where servers are started, and where their logins are stored; `known` as in `McpSetup`."""

    @lru_cache(1)
    def sandbox() -> Callable[[McpServer, PreparedCommand, CommandLimits], PreparedCommand]:
        return server_sandbox(loaded, home=home, cwd=cwd, env=env, known=known or ProbeResults())

    def confine(server: McpServer, start: PreparedCommand, limits: CommandLimits) -> PreparedCommand:
        start = sandbox()(server, start, limits)
        # Last of all and at every start: a command may have changed a file of it meanwhile.
        if (change := change_of(server, loaded, home=home, cwd=cwd)) is not None:
            start.discard()
            raise McpFailed(change)
        return start

    return McpContext(
        home=home,
        cwd=cwd,
        env=env,
        version=__version__,
        tokens=_Tokens(loaded, home),
        mark={},
        confine=confine,
        limits=lambda: CommandLimits(choose_policy(loaded), cwd),
    )


class _Tokens:
    """The store of logins, opened when the first one is looked for: a keyring is slow."""

    def __init__(self, loaded: LoadedConfig, home: Path) -> None:
        self._store_type: StoreType = loaded.config.mcp_oauth_credentials_store
        self._home = home

    def load(self) -> Mapping[str, Any]:
        return self._store.load()

    def save(self, login: Mapping[str, Any]) -> None:
        self._store.save(login)

    @cached_property
    def _store(self) -> LoginStore:
        return open_store(self._store_type, self._home, MCP_FILE)


async def sample(model: ModelClient, request: Mapping[str, Any], settings: TurnSettings) -> Mapping[str, Any]:
    """Answer a `sampling/createMessage`. Raises `ModelError`."""
    chosen = settings.model
    prompt = Prompt(
        model=chosen.model,
        instructions=str(request.get("systemPrompt") or ""),
        input=await asyncio.to_thread(_items, request.get("messages")),
        tools=b"[]",
        thread_id=uuid7(),
        turn_id=uuid7(),
        effort=chosen.effort,
        max_output_tokens=chosen.max_output_tokens,
        provider=chosen.provider,
    )
    texts: list[str] = []
    async with aclosing(model.stream(prompt, turn_state=TurnState())) as stream:
        async for event in stream:
            if isinstance(event, ItemDone) and isinstance(view := event.item.view(), Message):
                texts.append(view.text)
    content = {"type": "text", "text": "\n".join(texts)}
    return {"role": "assistant", "content": content, "model": chosen.model, "stopReason": "endTurn"}


def _items(messages: object) -> list[bytes]:
    return [encode_json(_item(as_object(message))) for message in as_list(messages)]


def _item(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a protocol message to a Responses item; a list of contents becomes one message with several parts."""
    content = message.get("content")
    contents = [as_object(part) for part in as_list(content) or [content]]
    role = "assistant" if message.get("role") == "assistant" else "user"
    text_type = "output_text" if role == "assistant" else "input_text"
    text_parts = [{"type": text_type, "text": str(part["text"])} for part in contents if "text" in part]
    text_parts += [_picture(part) for part in contents if part.get("type") == "image" and role == "user"]
    return {"type": "message", "role": role, "content": text_parts}


def _picture(part: Mapping[str, Any]) -> dict[str, Any]:
    try:
        url = fitted_url(binascii.a2b_base64(str(part.get("data", ""))))
    except (ToolError, ValueError) as error:
        return {"type": "input_text", "text": f"[picture, {part.get('mimeType', '')}: not shown: {error}]"}
    return {"type": "input_image", "image_url": url}
