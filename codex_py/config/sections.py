"""The tables of the configuration that have a fixed set of keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from codex_py.config.keys import KeyPath
from codex_py.config.value_types import (
    ConfigRecord,
    DirectoryText,
    FilePath,
    Flag,
    Integer,
    ListOf,
    MapOf,
    PathPattern,
    PathsOrAll,
    Reading,
    RecordSection,
    Seconds,
    Shape,
    Text,
    Url,
    ValueType,
    WordChoice,
    check_table,
    setting,
    settings_of,
)
from codex_py.protocol.policy import NetworkAccess
from codex_py.protocol.usage import CompactionWay, WireApi

REASONING_EFFORT = WordChoice("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra", "persistent")
REASONING_SUMMARY = WordChoice("auto", "concise", "detailed", "none")
VERBOSITY = WordChoice("low", "medium", "high")
_RETRIES = Integer(0, 100)

PROVIDER_AUTH = Shape(
    {
        "command": Text(),
        "args": ListOf(Text()),
        "cwd": FilePath(),
        "timeout_ms": Integer(1),
        "refresh_interval_ms": Integer(0),
    }
)

AGENT_ROLE = Shape({"description": Text(lines=True), "config_file": FilePath(), "nickname_candidates": ListOf(Text())})


class ProviderConfig(ConfigRecord):
    """`[model_providers.<id>]`: a Responses server."""

    name: str | None = setting(Text(), "the name shown to people", default=None, sample="Example")
    base_url: str | None = setting(
        Url(), "the address before `/responses`", default=None, sample="https://models.example.com/v1"
    )
    env_key: str | None = setting(
        Text(), "the environment variable with the API key", default=None, sample="EXAMPLE_API_KEY"
    )
    env_key_instructions: str | None = setting(
        Text(lines=True),
        "what to tell a user who has not set that variable",
        default=None,
        sample="ask the platform team",
    )
    experimental_bearer_token: str | None = setting(
        Text(secret=True), "the key itself; a variable is the safer place", default=None, sample="…"
    )
    auth: Mapping[str, Any] | None = setting(
        PROVIDER_AUTH,
        "a command that prints the bearer token",
        default=None,
        sample={
            "command": "print-token",
            "args": ["--fresh"],
            "cwd": "~",
            "timeout_ms": 5000,
            "refresh_interval_ms": 300000,
        },
    )
    aws: Mapping[str, Any] | None = setting(
        Shape({"profile": Text(), "region": Text()}),
        "the AWS profile to sign with",
        default=None,
        sample={"profile": "work", "region": "us-east-1"},
    )
    wire_api: WireApi | None = setting(
        WordChoice(*get_args(WireApi)), "the API the server speaks", default=None, sample="responses"
    )
    query_params: Mapping[str, str] = setting(
        MapOf(Text(), secret_by_name=True), "added to every address", default={}, sample={"api-version": "2026-01-01"}
    )
    http_headers: Mapping[str, str] = setting(
        MapOf(Text(secret=True)), "headers sent as they are", default={}, sample={"x-team": "core"}
    )
    env_http_headers: Mapping[str, str] = setting(
        MapOf(Text()),
        "headers whose value is in a variable; left out when it is empty",
        default={},
        sample={"x-org": "ORG_ID"},
    )
    request_max_retries: int | None = setting(
        _RETRIES, "retries of a request that got no answer", default=None, sample=4
    )
    stream_max_retries: int | None = setting(_RETRIES, "retries after an answer broke off", default=None, sample=5)
    stream_idle_timeout_ms: int | None = setting(
        Integer(1), "how long a server may say nothing, in milliseconds", default=None, sample=300000
    )
    connect_retry_seconds: float | None = setting(
        Seconds(), "how long a refused connection is tried again", default=None, sample=60.0
    )
    websocket_connect_timeout_ms: int | None = setting(
        Integer(1), "accepted for other programs; there is no WebSocket here", default=None, sample=15000
    )
    compaction: CompactionWay | None = setting(
        WordChoice("local", "remote", "in-band"),
        "how a long history is compacted: by a summary of the model, by the server's `/responses/compact`, or by an"
        " item the server answers with; the last for OpenAI and Azure, the first for others",
        default=None,
        sample="local",
    )
    requires_openai_auth: bool = setting(Flag(), "send the OpenAI login or key of this machine", default=False)
    supports_websockets: bool = setting(
        Flag(), "accepted for other programs; there is no WebSocket here", default=False
    )


class ModelEntry(ConfigRecord):
    """`[models.<name>]`: what is known about a model, for those that are not in the catalogue."""

    context_window: int | None = setting(Integer(1), "tokens the model can read", default=None, sample=128000)
    auto_compact_token_limit: int | None = setting(
        Integer(1), "compact above so many tokens", default=None, sample=100000
    )
    reasoning_effort: str | None = setting(
        REASONING_EFFORT, "the effort when none is chosen", default=None, sample="medium"
    )
    reasoning_summary: str | None = setting(
        REASONING_SUMMARY, "the summary when none is chosen", default=None, sample="auto"
    )
    verbosity: str | None = setting(VERBOSITY, "the verbosity when none is chosen", default=None, sample="low")
    apply_patch: Literal["freeform", "function"] | None = setting(
        WordChoice("freeform", "function"), "the form of the patch tool", default=None, sample="function"
    )
    parallel_tool_calls: bool | None = setting(
        Flag(), "whether it may call several tools at once", default=None, sample=True
    )
    images: bool | None = setting(Flag(), "whether it can see images", default=None, sample=True)
    tool_output_token_limit: int | None = setting(Integer(1), "tokens of one tool output", default=None, sample=10000)
    max_output_tokens: int | None = setting(
        Integer(1),
        "tokens of one answer, reasoning included; 32768 for models that are unknown; not sent to OpenAI or Azure",
        default=None,
        sample=32768,
    )


class SandboxWorkspaceWrite(ConfigRecord):
    """`[sandbox_workspace_write]`: what `workspace-write` adds to reading."""

    writable_roots: tuple[Path, ...] = setting(
        ListOf(FilePath()), "directories commands may write besides the workspace", default=()
    )
    network_access: NetworkAccess = setting(
        Flag("loopback"), "whether commands reach the network; `loopback` is this machine only", default=False
    )
    exclude_tmpdir_env_var: bool = setting(Flag(), "keep the directory named by TMPDIR read-only", default=False)
    exclude_slash_tmp: bool = setting(Flag(), "keep /tmp read-only", default=False)


PROTECTED: Final = (
    *(".vscode", ".idea", ".zed", ".devcontainer", ".husky", ".claude", ".cursor", ".gemini", ".windsurf", ".opencode"),
    *(".mcp.json", ".envrc", ".hg"),
    *("~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.profile", "~/.zshrc", "~/.zshenv", "~/.zprofile"),
    *("~/.gitconfig", "~/.config/git", "~/.config/fish", "~/.config/autostart", "~/.config/systemd"),
)


class SandboxRules(ConfigRecord):
    """`[sandbox]`: rules that hold in every sandbox mode but danger-full-access."""

    deny_read: tuple[str, ...] = setting(
        ListOf(PathPattern()),
        "paths and patterns commands must not read, beside those that are denied by default",
        default=(),
        sample=("**/.env", "~/notes"),
    )
    allow_read: tuple[str, ...] = setting(
        ListOf(PathPattern()),
        "paths denied by default that commands may read; `codex-py sandbox explain` lists them",
        default=(),
        sample=("~/.npmrc",),
    )
    protected: tuple[str, ...] = setting(
        ListOf(PathPattern()),
        "names that commands can neither change nor make in writable directories, because other programs run what is "
        "in them; paths below `~/` are protected in a writable home; shorten the list to let commands edit one",
        default=PROTECTED,
    )
    allow_unix_sockets: Literal[True] | tuple[Path, ...] = setting(
        PathsOrAll(),
        "Unix sockets that commands may connect to with `workspace-write`: `true` for all, or on macOS a list of paths",
        default=(),
        sample=("~/.ssh/agent.sock",),
    )
    allow_partial: bool = setting(
        Flag(),
        "run commands without a question where the sandbox cannot hold everything, as with Landlock alone",
        default=False,
    )


class ShellEnvironmentPolicy(ConfigRecord):
    """`[shell_environment_policy]`: which variables a command gets, in the order of these keys."""

    inherit: Literal["all", "core", "none"] = setting(
        WordChoice("all", "core", "none"), "what to start from", default="all"
    )
    ignore_default_excludes: bool = setting(
        Flag(), "pass on variables whose names or values look like secrets", default=False
    )
    allow: tuple[str, ...] = setting(
        ListOf(Text()), "patterns of names to pass on although they look like secrets", default=()
    )
    exclude: tuple[str, ...] = setting(ListOf(Text()), "patterns of names to leave out", default=())
    set: Mapping[str, str] = setting(
        MapOf(Text(lines=True, secret=True)), "variables to set", default={}, sample={"CI": "1"}
    )
    include_only: tuple[str, ...] = setting(ListOf(Text()), "patterns of names to keep; empty keeps all", default=())


class ProjectTrustConfig(ConfigRecord):
    """`[projects."<directory>"]`: whether the user trusts a directory."""

    trust_level: Literal["trusted", "untrusted"] | None = setting(
        WordChoice("trusted", "untrusted"), "whether its `.codex/config.toml` is read", default=None, sample="trusted"
    )
    trusted_mcp_servers: Mapping[str, str] = setting(
        MapOf(Text()),
        "your answers about the MCP servers it names: the hash of what they run; `codex-py mcp trust` writes them",
        default={},
        sample={"name": "hash"},
    )


_OnOff: TypeAlias = Literal["on", "off"]
_ON_OFF = WordChoice("on", "off")
_DIRECTORIES = ListOf(DirectoryText())


class BundledSkills(ConfigRecord):
    """`[skills.bundled]`."""

    enabled: bool = setting(Flag(), "offer the skills that come with the program", default=True)


class SkillRuleConfig(ConfigRecord):
    """One `[[skills.config]]`: switches a skill on or off, by its file or by its name."""

    enabled: bool = setting(Flag(), "whether it can be used", sample=False)
    path: Path | None = setting(FilePath(), "the skill's SKILL.md", default=None, sample="~/skills/lint/SKILL.md")
    name: str | None = setting(Text(), "or its name", default=None, sample="lint")


class Skills(ConfigRecord):
    """`[skills]`."""

    include_instructions: bool = setting(Flag(), "tell the model which skills there are", default=True)
    max_context_tokens: int | None = setting(Integer(1), "tokens that list may take", default=None, sample=4000)
    tool: bool = setting(
        Flag(), "offer the model a tool that loads a skill by its name; on where it has no shell", default=False
    )
    never_install_mcp: tuple[str, ...] = setting(
        ListOf(Text()), "skills whose missing MCP servers are not asked about", default=()
    )
    roots: tuple[str, ...] = setting(_DIRECTORIES, "directories with skills, besides the usual ones", default=())
    extra_user_roots: tuple[str, ...] = setting(_DIRECTORIES, "more directories of the user's own skills", default=())
    follow_links: bool = setting(
        Flag(), "follow links out of the directories with your own skills, wherever they lead", default=False
    )
    ranking: _OnOff = setting(_ON_OFF, "keep in a list that is too long what is used or fits here", default="on")
    suggestions: _OnOff = setting(_ON_OFF, "point the model to skills that a message calls for", default="on")
    bundled: BundledSkills = setting(
        RecordSection(BundledSkills), "the skills of the program itself", default=BundledSkills()
    )
    config: tuple[SkillRuleConfig, ...] = setting(
        ListOf(RecordSection(SkillRuleConfig)),
        "skills switched on or off; entries of all layers count, the last one wins",
        default=(),
    )


WEB_SEARCH_TOOL = Shape(
    {
        "context_size": WordChoice("low", "medium", "high"),
        "allowed_domains": ListOf(Text()),
        "location": Shape({"country": Text(), "region": Text(), "city": Text(), "timezone": Text()}),
    }
)


class WebSearchTool(ValueType):
    """How the provider searches; `true` and `false`, an older form, say nothing that `web_search` does not."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> dict[str, Any]:
        return {} if isinstance(value, bool) else WEB_SEARCH_TOOL.check(value, path, reading)


class Tools(ConfigRecord):
    """`[tools]`."""

    web_search: Mapping[str, Any] = setting(
        WebSearchTool(),
        "how the provider searches the web; whether it does is said by `web_search` at the top",
        default={},
        sample={
            "context_size": "medium",
            "allowed_domains": ["docs.python.org"],
            "location": {"country": "GB", "region": "England", "city": "London", "timezone": "Europe/London"},
        },
    )
    view_image: bool = setting(Flag(), "the older form of `features.view_image`; false in either counts", default=True)


class AgentsConfig(ConfigRecord):
    """`[agents]`: the sessions a session may start for its model. Every other table in it is a role."""

    max_threads: int = setting(Integer(1, 64), "how many agents may be at work at a time", default=6)
    max_depth: int = setting(
        Integer(0, 8), "how many of them may stand one above the other; 0 lets the model start none", default=1
    )
    interrupt_message: bool = setting(Flag(), "tell the model of a turn that was interrupted", default=True)
    job_max_runtime_seconds: int | None = setting(
        Integer(1), "accepted for other programs; there are no jobs over tables here", default=None, sample=1800
    )
    roles: Mapping[str, Mapping[str, Any]] = setting(
        MapOf(AGENT_ROLE),
        "roles by name, also written `[agents.NAME]`; those in `agents/` need no entry",
        default={},
        sample={"reviewer": {"description": "reads changes for mistakes", "config_file": "agents/reviewer.toml"}},
    )


class AgentsSection(RecordSection):
    """The table that becomes `Agents`."""

    def __init__(self) -> None:
        super().__init__(AgentsConfig)

    def check(self, value: object, path: KeyPath, reading: Reading) -> dict[str, Any]:
        table = check_table(value, path)
        known = settings_of(AgentsConfig)
        roles: dict[str, Any] = {n: entry for n, entry in table.items() if n not in known and isinstance(entry, dict)}
        checked = super().check({name: entry for name, entry in table.items() if name not in roles}, path, reading)
        if roles:
            checked["roles"] = {**checked.get("roles", {}), **MapOf(AGENT_ROLE).check(roles, path, reading)}
        return checked


class Features(ConfigRecord):
    """`[features]`."""

    shell_tool: bool = setting(Flag(), "offer the model the tools that run commands", default=True)
    view_image: bool = setting(Flag(), "offer the model the tool that looks at pictures", default=True)
    multi_agent: bool = setting(Flag(), "let the model start agents", default=True)
    hooks: bool = setting(Flag(), "run hooks; those of an administrator run anyway", default=True)
    web_search_request: bool | None = setting(
        Flag(),
        'the older form of `web_search = "live"`; counts where nobody says `web_search`',
        default=None,
        sample=True,
    )
    web_search_cached: bool | None = setting(Flag(), 'the same for `web_search = "cached"`', default=None, sample=True)


class CheckpointsConfig(ConfigRecord):
    """`[checkpoints]`: the states of the workspace that `/undo` and `/rewind` go back to."""

    enabled: bool = setting(Flag(), "put the files on record before a turn changes them", default=True)
    max_files: int = setting(
        Integer(1), "files that are stored outside of git, and untracked ones in git", default=20000
    )
    max_mib: int = setting(Integer(1), "MiB of all these files together", default=500)
    max_file_mib: int = setting(Integer(1), "MiB of one of them", default=20)
    session_mib: int = setting(Integer(1), "MiB on the disk for one session; the oldest go first", default=500)
    total_mib: int = setting(Integer(1), "MiB on the disk for all sessions together", default=5120)


class HistoryConfig(ConfigRecord):
    """`[history]`: the list of past prompts."""

    persistence: Literal["save-all", "none"] = setting(
        WordChoice("save-all", "none"), "whether prompts are kept in `history.jsonl`", default="save-all"
    )
    max_bytes: int | None = setting(Integer(1), "its largest size", default=None, sample=1048576)
