"""Every key that a user may set: its type, its default and what it is for.

The example file, the checks and `codex-py config` are made from this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from codex_py.config.keys import KeyPath
from codex_py.config.mcp_sections import APP, APP_SAMPLES, MCP_SAMPLES, MCP_SERVER
from codex_py.config.model_sections import (
    REASONING_EFFORT,
    REASONING_SUMMARY,
    VERBOSITY,
    BudgetConfig,
    ModelEntry,
    ProviderConfig,
)
from codex_py.config.sections import (
    AgentsConfig,
    AgentsSection,
    CheckpointsConfig,
    Features,
    HistoryConfig,
    ProjectTrustConfig,
    SandboxRules,
    SandboxWorkspaceWrite,
    SessionsConfig,
    ShellEnvironmentPolicy,
    Skills,
    Tools,
)
from codex_py.config.tui import TABLE_KEYS as TUI_KEYS
from codex_py.config.value_types import (
    AnyTable,
    ConfigRecord,
    FilePath,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Reading,
    RecordSection,
    Shape,
    TableKey,
    Text,
    TextOrTexts,
    Url,
    ValueType,
    WordChoice,
    WrongValue,
    check_names,
    check_table,
    setting,
    wrong_word,
)
from codex_py.protocol.policy import GRANULAR, ApprovalPolicy, ApprovalWord, GranularApproval, SandboxMode

_REQUIRED: Final = ("sandbox_approval", "rules", "mcp_elicitations")


class Approval(WordChoice):
    """One of the words, or `{ granular = { … } }`, whose first three flags must be there."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> Any:
        if not isinstance(value, dict):
            if value == GRANULAR:
                raise WrongValue(path, value, "it is a table: `{ granular = { sandbox_approval = true, … } }`")
            if not isinstance(value, str) or value not in self.words:
                raise WrongValue(
                    path, value, f"{wrong_word(value, self.words)}, or a table `{{ {GRANULAR} = {{ … }} }}`"
                )
            return value
        table = check_table(cast("object", value), path)
        if list(table) != [GRANULAR]:
            raise WrongValue(path, table, f"a table here has `{GRANULAR}` and nothing else")
        below = (*path, GRANULAR)
        value_types: dict[str, ValueType] = {name: Flag() for name in GranularApproval.__match_args__}
        flags = check_names(table[GRANULAR], below, reading, value_types)
        for name in _REQUIRED:
            if name not in flags:
                raise WrongValue(below, table[GRANULAR], f"`{name}` is missing")
        return GranularApproval(**flags)


def word_for(policy: ApprovalPolicy) -> ApprovalWord:
    """The word that stands for a policy: a granular one asks about nothing that `on-request` does not ask about."""
    return "on-request" if isinstance(policy, GranularApproval) else policy


def not_looser_approval(order: Sequence[str]) -> Any:
    """The rule for a project's own policy: it must be as strict as the user's, or stricter.

    If the user's is a table, only a table with no more questions is: the user wants the others refused.
    """

    def rule(before: ApprovalPolicy | None, value: ApprovalPolicy) -> ApprovalPolicy | None:
        if isinstance(before, GranularApproval):
            fewer = isinstance(value, GranularApproval) and all(
                had or not has for had, has in zip(vars(before).values(), vars(value).values(), strict=True)
            )
            return value if fewer else None
        limit = order.index(before) if before in order else 0
        return value if order.index(word_for(value)) <= limit else None

    return rule


# From strict to loose: a project's own file may only choose a stricter one.
APPROVAL_POLICIES: Final[tuple[ApprovalWord, ...]] = ("untrusted", "on-request", "on-failure", "never")
SANDBOX_MODES: Final[tuple[SandboxMode, ...]] = ("read-only", "workspace-write", "danger-full-access")
WEB_SEARCH: Final = ("disabled", "cached", "live")
ENVIRONMENT_STARTS: Final = ("none", "core", "all")

BUILT_IN_PROVIDERS: Final = ("openai", "ollama", "lmstudio", "offline")
# Hosted providers with built-in settings, which a table of the same name changes.
HOSTED_PROVIDERS: Final = (*("anthropic", "openrouter", "deepseek", "mistral", "groq", "gemini", "vllm", "llamacpp"),)

# Keys of other programs that share the file; they have no effect here.
FOREIGN_KEYS: Final = frozenset(
    {
        *("audio", "auto_review", "desktop", "disable_paste_burst", "feedback", "ghost_snapshot"),
        *("instructions", "marketplaces", "mcp_oauth_callback_url", "memories", "plan_mode_reasoning_effort"),
        *("suppress_unstable_features_warning", "tool_suggest", "windows", "zsh_path"),
    }
)


class Config(ConfigRecord):
    """The effective settings of one run."""

    model: str | None = setting(
        Text(), "the model to ask; each provider has its own default", default=None, sample="gpt-5.5"
    )
    fallback_models: tuple[str, ...] = setting(
        ListOf(Text()),
        "models that go on with a turn when the one before is overloaded, over quota or gone, as `PROVIDER/MODEL`",
        default=(),
    )
    compaction_model: str | None = setting(
        Text(), "the model for summaries of a long history, or `PROVIDER/MODEL`", default=None, sample="gpt-5-mini"
    )
    review_model: str | None = setting(Text(), "the model for reviews", default=None, sample="gpt-5.5")
    model_provider: str = setting(Text(), "the provider: a built-in one or one of `model_providers`", default="openai")
    model_context_window: int | None = setting(Integer(1), "tokens the model can read", default=None, sample=272000)
    model_auto_compact_token_limit: int | None = setting(
        Integer(1),
        "compact the history above this many tokens, at most 90 % of the window",
        default=None,
        sample=240000,
    )
    model_auto_compact_token_limit_scope: Literal["total", "body_after_prefix"] = setting(
        WordChoice("total", "body_after_prefix"), "what that limit counts", default="total"
    )
    model_reasoning_effort: str | None = setting(
        REASONING_EFFORT, "how long the model thinks", default=None, sample="medium"
    )
    model_reasoning_summary: str | None = setting(
        REASONING_SUMMARY, "how much of its thinking is summed up", default=None, sample="auto"
    )
    model_verbosity: str | None = setting(VERBOSITY, "how long its answers are", default=None, sample="low")
    model_supports_reasoning_summaries: bool | None = setting(
        Flag(), "send a reasoning summary setting to a model that is not in the catalogue", default=None, sample=True
    )
    service_tier: str | None = setting(Text(), "the provider's service tier", default=None, sample="flex")
    personality: Literal["none", "friendly", "pragmatic"] | None = setting(
        WordChoice("none", "friendly", "pragmatic"),
        "the tone of the answers; `none` is the model's own",
        default=None,
        sample="pragmatic",
    )
    oss_provider: Literal["ollama", "lmstudio"] | None = setting(
        WordChoice("ollama", "lmstudio"), "the local server that `--oss` asks", default=None, sample="ollama"
    )
    openai_base_url: str | None = setting(
        Url(), "another address for the provider `openai`", default=None, sample="https://api.openai.com/v1"
    )
    chatgpt_base_url: str | None = setting(
        Url(), "another address for a ChatGPT login", default=None, sample="https://chatgpt.com/backend-api"
    )
    model_instructions_file: Path | None = setting(
        FilePath(), "a file with base instructions instead of the built-in ones", default=None, sample="instructions.md"
    )
    model_catalog_json: Path | None = setting(
        FilePath(), "a file with facts about models", default=None, sample="models.json"
    )
    developer_instructions: str | None = setting(
        Text(lines=True),
        "told to the model at the start of a session",
        default=None,
        sample="Answer in British English.",
    )
    compact_prompt: str | None = setting(
        Text(lines=True), "asks the model for the summary when the history is compacted", default=None, sample="Sum up."
    )
    experimental_compact_prompt_file: Path | None = setting(
        FilePath(), "the same, read from a file", default=None, sample="compact.md"
    )
    include_permissions_instructions: bool = setting(Flag(), "tell the model what the sandbox lets it do", default=True)
    include_environment_context: bool = setting(
        Flag(), "tell the model the directory, the shell and the date", default=True
    )
    include_apps_instructions: bool = setting(
        Flag(), "accepted for other programs; connectors are told by their tools alone", default=True
    )
    project_doc_max_bytes: int = setting(
        Integer(0), "bytes of all AGENTS.md of a project together; 0 reads none", default=32768
    )
    project_doc_fallback_filenames: tuple[str, ...] = setting(
        ListOf(Text()), "file names read where there is no AGENTS.md", default=()
    )
    project_root_markers: tuple[str, ...] = setting(
        ListOf(Text()),
        "names that make a directory the root of a project; empty makes it the current one",
        default=(".git",),
    )

    approval_policy: ApprovalPolicy = setting(
        Approval(*APPROVAL_POLICIES),
        "when a command needs approval, a word or `{ granular = … }`; `exec` never asks",
        default="on-request",
    )
    approvals_reviewer: Literal["user", "auto_review", "guardian_subagent"] = setting(
        WordChoice("user", "auto_review", "guardian_subagent"),
        "accepted for other programs; it is the user who says that yes",
        default="user",
    )
    sandbox_mode: SandboxMode | None = setting(
        WordChoice(*SANDBOX_MODES), "what commands may touch", default=None, sample="workspace-write"
    )
    default_permissions: str | None = setting(
        Text(),
        "a sandbox mode by its other name; it comes before `sandbox_mode` of the same file"
        " (:read-only | :workspace | :danger-full-access)",
        default=None,
        sample=":workspace",
    )
    allow_login_shell: bool = setting(Flag(), "let the model start commands in a login shell", default=True)
    web_search: Literal["disabled", "cached", "live"] = setting(
        WordChoice(*WEB_SEARCH),
        "whether the provider may search the web, and how fresh the pages are",
        default="cached",
    )
    tool_output_token_limit: int | None = setting(Integer(1), "tokens of one tool output", default=None, sample=10000)
    background_terminal_max_timeout: int = setting(
        Integer(5000), "the longest wait for output of a running command, in milliseconds", default=300000
    )
    notify: tuple[str, ...] = setting(
        ListOf(Text(lines=True)), "a command started at the end of a turn, with a JSON argument added", default=()
    )
    hide_agent_reasoning: bool = setting(Flag(), "do not show what the model thinks", default=False)
    show_raw_agent_reasoning: bool = setting(Flag(), "show its raw thinking when the server sends it", default=False)
    file_opener: Literal["vscode", "vscode-insiders", "windsurf", "cursor", "none"] = setting(
        WordChoice("vscode", "vscode-insiders", "windsurf", "cursor", "none"),
        "the editor that links to files open; `none` leaves it to the system",
        default="none",
    )
    log_dir: Path | None = setting(
        FilePath(), "where logs are written; `log` below CODEX_HOME", default=None, sample="log"
    )
    sqlite_home: Path | None = setting(
        FilePath(), "where the session index is kept; CODEX_HOME", default=None, sample="."
    )
    check_for_update_on_startup: bool = setting(
        Flag(), "accepted for other programs; codex-py never looks for a newer version", default=True
    )
    cli_auth_credentials_store: Literal["file", "keyring", "auto", "ephemeral"] = setting(
        WordChoice("file", "keyring", "auto", "ephemeral"), "where a login is kept", default="file"
    )
    forced_login_method: Literal["chatgpt", "api"] | None = setting(
        WordChoice("chatgpt", "api"), "the only way to log in", default=None, sample="api"
    )
    forced_chatgpt_workspace_id: tuple[str, ...] = setting(
        TextOrTexts(), "the only workspaces a ChatGPT login may belong to", default=()
    )

    checkpoints: CheckpointsConfig = setting(
        RecordSection(CheckpointsConfig), "which changes can be undone", default=CheckpointsConfig()
    )
    sessions: SessionsConfig = setting(
        RecordSection(SessionsConfig), "names of stored sessions", default=SessionsConfig()
    )
    history: HistoryConfig = setting(RecordSection(HistoryConfig), "the list of past prompts", default=HistoryConfig())
    sandbox_workspace_write: SandboxWorkspaceWrite = setting(
        RecordSection(SandboxWorkspaceWrite),
        "access that `workspace-write` gives beyond reading",
        default=SandboxWorkspaceWrite(),
    )
    sandbox: SandboxRules = setting(
        RecordSection(SandboxRules),
        "rules that hold in every sandbox mode but danger-full-access",
        default=SandboxRules(),
    )
    shell_environment_policy: ShellEnvironmentPolicy = setting(
        RecordSection(ShellEnvironmentPolicy),
        "which environment variables commands get",
        default=ShellEnvironmentPolicy(),
    )
    skills: Skills = setting(
        RecordSection(Skills), "skills: directories that teach the model a kind of work", default=Skills()
    )
    model_providers: Mapping[str, ProviderConfig] = setting(
        MapOf(RecordSection(ProviderConfig)), "servers that speak the Responses protocol", default={}, sample="example"
    )
    models: Mapping[str, ModelEntry] = setting(
        MapOf(RecordSection(ModelEntry)),
        "facts about models that are not in the catalogue, and prices of your own",
        default={},
        sample="my-model",
    )
    budget: BudgetConfig = setting(
        RecordSection(BudgetConfig),
        "limits on spending, after which a turn ends; flags limit one run",
        default=BudgetConfig(),
    )
    projects: Mapping[str, ProjectTrustConfig] = setting(
        MapOf(RecordSection(ProjectTrustConfig)),
        "directories the user trusts, by real path",
        default={},
        sample="/path/to/project",
    )
    mcp_servers: Mapping[str, Mapping[str, Any]] = setting(
        MapOf(MCP_SERVER), "MCP servers, whose tools the model can use", default={}, sample=MCP_SAMPLES
    )
    apps: Mapping[str, Mapping[str, Any]] = setting(
        MapOf(APP), "connectors, whose tools the model is shown when you ask for them", default={}, sample=APP_SAMPLES
    )
    mcp_oauth_credentials_store: Literal["file", "keyring", "auto"] = setting(
        WordChoice("file", "keyring", "auto"), "where the logins at MCP servers are kept", default="file"
    )
    mcp_oauth_callback_port: int | None = setting(
        Integer(1, 65535), "the port a browser comes back to after such a login", default=None, sample=8765
    )
    permissions: Mapping[str, Any] = setting(
        AnyTable(), "accepted for other programs; sets of your own cannot be chosen here", default={}
    )
    tools: Tools = setting(RecordSection(Tools), "settings of single tools", default=Tools())
    hooks: Mapping[str, Any] = setting(
        AnyTable(
            TableKey("matcher", "Bash", "the tools it is for, a regular expression; empty for all"),
            TableKey("command", "~/hooks/no-push.py", "what is run; its input is JSON on stdin"),
            TableKey("args", [], "with arguments the command is started without a shell"),
            TableKey("if", "Bash(git push*)", "narrows it to calls whose command or file is like that"),
            TableKey("timeout", 600, "seconds it may take"),
            TableKey("async", sample=False, purpose="run it without waiting for it"),
            TableKey("fail_closed", sample=True, purpose="a failure of it denies what it guards"),
            entries="PreToolUse",
        ),
        "commands started at points of a session, by event: PreToolUse, PostToolUse, UserPromptSubmit, SessionStart,"
        " Stop and more, which docs/guides/hooks.md explains",
        default={},
    )
    plugins: Mapping[str, Any] = setting(
        # Settings of a plugin's servers are checked when the plugin is read.
        MapOf(Shape({"enabled": Flag(), "mcp_servers": AnyTable()})),
        "installed plugins",
        default={},
        sample={"lint@git": {"enabled": False}},
    )
    agents: AgentsConfig = setting(AgentsSection(), "agents the model may start", default=AgentsConfig())
    features: Features = setting(
        RecordSection(Features), "switches, also for `--enable` and `--disable`", default=Features()
    )
    tui: Mapping[str, Any] = setting(AnyTable(*TUI_KEYS), "the terminal session", default={})
    notice: Mapping[str, Any] = setting(
        AnyTable(TableKey("hide_full_access_warning", sample=False, purpose="go without a sandbox unasked")),
        "questions that are not asked again",
        default={},
    )
    analytics: Mapping[str, Any] = setting(AnyTable(), "accepted for other programs; nothing is reported", default={})
    otel: Mapping[str, Any] = setting(AnyTable(), "traces for a collector: see docs/guides/ci.md", default={})
