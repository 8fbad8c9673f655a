"""The configuration of one MCP server."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast
from urllib.parse import parse_qsl, urlsplit

from codex_py.config.keys import dotted
from codex_py.protocol.encoding import as_object, encode_json
from codex_py.protocol.value import Value
from codex_py.text.address import is_plain_http
from codex_py.text.credentials import is_secret, setting_secrets, url_secrets, word_secrets
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

# `auto` goes by the tool's own annotations, `prompt` asks about every call, `approve` about none, `writes` about those
# of tools that do not say they only read.
ApprovalMode: TypeAlias = Literal["auto", "prompt", "writes", "approve"]

# Where a server runs: in the sandbox of the session, there but with network access, or outside.
ServerSandbox: TypeAlias = Literal["session", "network", "outside"]

START_SECONDS: Final = 10.0
CALL_SECONDS: Final = 60.0
# All a server gets of the user's environment beside what its entry names.
INHERITED: Final = ("HOME", "LANG", "PATH", "TERM", "TRACEPARENT")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
# The fields that have another name in the table of a server.
_FIELDS: Final = {
    "startup_timeout_sec": "start_seconds",
    "tool_timeout_sec": "call_seconds",
    "supports_parallel_tool_calls": "parallel",
    "default_tools_approval_mode": "approval",
}


class McpServer(Value):
    """A server to start (`command`) or to connect to (`url`). `env_vars` are passed on from the user's environment.

    `oauth_client_id` is what this program is registered as where logins come from, if the user has registered it there.
    `start_seconds` bounds starting and listing the tools, `call_seconds` one call. A session does not begin without a
    `required` one. `parallel` says that all its calls may overlap, not only those that read. `approved_tools` are the
    hashes of tools the user has permanently approved. `trust_annotations` is whether what the server says of its tools
    saves questions, `allow_insecure_http` whether credentials are sent to it without encryption. `pin` identifies what
    the user has agreed to start, "" where nobody is asked. `plugin` is the id of the plugin that brings it. `key` is
    the key of its table in the user's configuration: None for the one of its name, empty where it has none.
    """

    secret_fields: ClassVar[frozenset[str]] = frozenset({"env", "http_headers"})

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = _NOTHING
    env_vars: tuple[str, ...] = ()
    cwd: Path | None = None
    url: str | None = None
    bearer_token_env_var: str | None = None
    http_headers: Mapping[str, str] = _NOTHING
    env_http_headers: Mapping[str, str] = _NOTHING
    start_seconds: float = START_SECONDS
    call_seconds: float = CALL_SECONDS
    required: bool = False
    enabled_tools: tuple[str, ...] | None = None
    disabled_tools: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    oauth_client_id: str | None = None
    oauth_client_secret_env_var: str | None = None
    sampling: bool = False
    parallel: bool = False
    approval: ApprovalMode = "auto"
    tool_approvals: Mapping[str, ApprovalMode] = MappingProxyType({})
    approved_tools: Mapping[str, str] = MappingProxyType({})
    trust_annotations: bool = True
    allow_insecure_http: bool = False
    pin: str = ""
    plugin: str = ""
    sandbox: ServerSandbox = "outside"
    key: tuple[str, ...] | None = None

    @property
    def transport(self) -> Literal["stdio", "streamable_http"]:
        return "stdio" if self.url is None else "streamable_http"

    @property
    def argv(self) -> tuple[str, ...]:
        """The words it is started with; none where it is only connected to."""
        return () if self.command is None else (self.command, *self.args)

    @property
    def target(self) -> str:
        """The address, or the command line as words."""
        return self.url or " ".join(self.argv)

    @property
    def authorizes(self) -> bool:
        """Whether the configuration says what requests are authorized with, so that there is no login."""
        headers = {name.lower() for name in (*self.http_headers, *self.env_http_headers)}
        return self.bearer_token_env_var is not None or "authorization" in headers

    @property
    def fingerprint(self) -> str:
        """Tells two servers apart by all that decides what they offer; which of that is used is not part of it."""
        identity = {
            "command": self.command,
            "args": self.args,
            "env": dict(self.env),
            "env_vars": self.env_vars,
            "cwd": None if self.cwd is None else str(self.cwd),
            "url": self.url,
            "bearer": self.bearer_token_env_var,
            "headers": [dict(self.http_headers), dict(self.env_http_headers)],
            "scopes": self.scopes,
            "client": [self.oauth_client_id, self.oauth_client_secret_env_var],
        }
        return hashlib.sha256(encode_json(identity)).hexdigest()

    @property
    def table_key(self) -> tuple[str, ...]:
        """Where the user's configuration says more about it; empty where nothing can be stored."""
        return ("mcp_servers", self.name) if self.key is None else self.key

    @property
    def allow_with(self) -> str:
        """How the user allows all its tools permanently, "" where they cannot."""
        if self.table_key:
            return f'{dotted((*self.table_key, "default_tools_approval_mode"))} = "approve"'
        return f"codex-py mcp trust {sanitize_line(self.name)} --approve" if self.pin else ""

    def offers(self, tool: str) -> bool:
        """Whether the configuration lets a tool of this name be used."""
        return (self.enabled_tools is None or tool in self.enabled_tools) and tool not in self.disabled_tools

    def mode_of(self, tool: str) -> ApprovalMode:
        """How calls of a tool are approved."""
        return self.tool_approvals.get(tool, self.approval)

    def secrets(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The values nobody else may read: what is sent to the server and what it is started with."""
        named = [self.bearer_token_env_var, self.oauth_client_secret_env_var, *self.env_http_headers.values()]
        named += self.env_vars
        exposed = [*setting_secrets(self.http_headers), *setting_secrets(self.env), *word_secrets(self.args)]
        exposed += url_secrets(self.url or "")
        return tuple(filter(None, [*exposed, *(value for name in named if name and (value := _secret_of(name, env)))]))


def read_server(name: str, entry: Mapping[str, Any]) -> McpServer:
    """A server from its checked `[mcp_servers.NAME]` table."""
    renamed = {_FIELDS.get(key, key): value for key, value in entry.items()}
    fields: dict[str, Any] = {
        key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
        for key, value in renamed.items()
        if key in McpServer.__match_args__
    }
    if "startup_timeout_ms" in entry:
        fields.setdefault("start_seconds", entry["startup_timeout_ms"] / 1000)
    tools = as_object(entry.get("tools"))
    return McpServer(
        name=name,
        tool_approvals={tool: table["approval_mode"] for tool, table in tools.items() if "approval_mode" in table},
        approved_tools={tool: table["approved_hash"] for tool, table in tools.items() if "approved_hash" in table},
        **fields,
    )


def describe_unknown_tools(server: McpServer, known: Sequence[str]) -> Iterator[str]:
    """A line for each tool that the settings of a server name and that is not among those it has."""
    named: dict[str, Collection[str]] = {
        "enabled_tools": server.enabled_tools or (),
        "disabled_tools": server.disabled_tools,
        "tools": {*server.tool_approvals, *server.approved_tools},
    }
    for key, names in named.items():
        for name in sorted({*names} - {*known}):
            setting = f"`{dotted((*server.table_key, key))}`"
            hint = did_you_mean(name, known) or f"`codex-py mcp test {server.name}` lists its tools"
            yield sanitize_line(
                f"{setting} names `{name}`, and the MCP server `{server.name}` has no such tool; {hint}"
            )


def server_environment(server: McpServer, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a started server."""
    # A plugin is compared with what was installed: nothing is written into it by the way.
    extra = {"PYTHONDONTWRITEBYTECODE": "1"} if "PLUGIN_ROOT" in server.env else {}
    return extra | {name: env[name] for name in (*INHERITED, *server.env_vars) if name in env} | dict(server.env)


def find_missing_env(server: McpServer, env: Mapping[str, str]) -> list[str]:
    """The variables the server cannot be reached without and the environment does not have."""
    needed: Collection[str | None] = [
        server.bearer_token_env_var,
        server.oauth_client_secret_env_var,
        *server.env_http_headers.values(),
    ]
    return [name for name in needed if name and not env.get(name)]


def exposed_credential(server: McpServer) -> str | None:
    """The configured credential that would be sent to the server unencrypted; None if there is none."""
    if server.url is None or server.allow_insecure_http or not is_plain_http(server.url):
        return None
    if server.bearer_token_env_var:
        return f"the token in `{server.bearer_token_env_var}`"
    for header in (*server.env_http_headers, *server.http_headers):
        # What comes from the environment was put there because nobody else is to read it.
        if header in server.env_http_headers or _is_credential(header, server.http_headers[header]):
            return f"the header `{header}`"
    pieces = urlsplit(server.url)
    if "@" in pieces.netloc:
        return "the user name in its address"
    named = next((name for name, value in parse_qsl(pieces.query) if is_secret(name, value)), None)
    return None if named is None else f"`{named}` in its address"


def _is_credential(header: str, value: str) -> bool:
    return "cookie" in header.lower() or is_secret(header, value)


def insecure_http_refusal(server: McpServer, credential: str) -> str:
    """Why a credential is not sent to a server at a plain http address."""
    host = urlsplit(server.url or "").hostname or server.url
    return (
        f"{credential} would be sent to `{host}` without encryption: use `https://`, or set"
        " `allow_insecure_http = true` for this server"
    )


def _secret_of(name: str, env: Mapping[str, str]) -> str:
    """The value of a variable that a server gets, "" when it is no secret."""
    value = env.get(name, "")
    return value if is_secret(name, value) else ""
