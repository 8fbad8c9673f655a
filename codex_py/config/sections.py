"""The tables of the configuration that have a fixed set of keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

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
    ProjectDirectory,
    Reading,
    RecordSection,
    Shape,
    Text,
    ValueType,
    WordChoice,
    WrongValue,
    check_table,
    setting,
    settings_of,
)
from codex_py.protocol.policy import NetworkAccess

AGENT_ROLE = Shape({"description": Text(lines=True), "config_file": FilePath(), "nickname_candidates": ListOf(Text())})


class SandboxWorkspaceWrite(ConfigRecord):
    """`[sandbox_workspace_write]`: access that `workspace-write` gives beyond reading."""

    writable_roots: tuple[Path, ...] = setting(
        ListOf(FilePath()), "directories commands may write besides the workspace", default=()
    )
    network_access: NetworkAccess = setting(
        Flag("loopback"), "whether commands reach the network; `loopback` is this machine only", default=False
    )
    exclude_tmpdir_env_var: bool = setting(Flag(), "keep the directory named by TMPDIR read-only", default=False)
    exclude_slash_tmp: bool = setting(Flag(), "keep /tmp read-only", default=False)
    git: bool = setting(
        Flag(),
        "let commands commit: they can write `.git`, but not its settings, hooks and what else makes git run programs",
        default=False,
    )


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
        "names that commands cannot change in writable directories, because other programs run what is in them; new "
        "ones are named at the end of the turn; paths below `~/` are protected in a writable home; shorten the list to "
        "let commands edit one",
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


class Percent(ValueType):
    """A share such as `"5%"`: a whole number from 1 to 100 with the sign."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"(?:[1-9]\d?|100)%", value, re.ASCII):
            raise WrongValue(path, value, 'it must be a percentage from "1%" to "100%"')
        return value


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
    budget: str | None = setting(
        Percent(),
        "share of the model's context window that list may take, in place of `max_context_tokens`; 2% where neither is "
        "set",
        default=None,
        sample="5%",
    )
    tool: bool = setting(
        Flag(), "offer the model a tool that loads a skill by its name; on where it has no shell", default=False
    )
    install_mcp_dependencies: Literal["ask", "never", "always"] = setting(
        WordChoice("ask", "never", "always"),
        "whether MCP servers that a named skill needs are added to your configuration: after a question, never, or at "
        "once; `--install-dependencies` is `always` for one run",
        default="ask",
    )
    never_install_mcp: tuple[str, ...] = setting(
        ListOf(Text()), "skills whose missing MCP servers are not asked about", default=()
    )
    roots: tuple[str, ...] = setting(
        ListOf(ProjectDirectory()),
        "directories with skills, besides the usual ones; a relative one is looked for in every project and in "
        "CODEX_HOME",
        default=(),
    )
    extra_user_roots: tuple[str, ...] = setting(_DIRECTORIES, "more directories of the user's own skills", default=())
    ranking: _OnOff = setting(_ON_OFF, "keep in a list that is too long what was used before", default="on")
    suggestions: _OnOff = setting(
        _ON_OFF, "point the model to skills that the list cuts and a message shares words with", default="on"
    )
    ledger: bool = setting(
        Flag(), "record which skills are used and how it ended, in a file of this machine", default=True
    )
    natural_names: Literal["off", "suggest", "on"] = setting(
        WordChoice("off", "suggest", "on"),
        "what a skill that a message names in words does, as in `use the release notes skill`: nothing, the model is "
        "pointed to it, or it is used as if `$release-notes` had been written",
        default="suggest",
    )
    claude: bool = setting(
        Flag(),
        "look for skills in `.claude/skills` of the project and of your home too, after all others",
        default=True,
    )
    bundled: BundledSkills = setting(
        RecordSection(BundledSkills), "the skills of the program itself", default=BundledSkills()
    )
    only: tuple[str, ...] | None = setting(
        ListOf(Text()),
        "the skills to offer, by name or pattern; all others are off. A trusted project may set it; your own value and "
        "your own `skills.config` win",
        default=None,
        sample=["lint", "team-*"],
    )
    config: tuple[SkillRuleConfig, ...] = setting(
        ListOf(RecordSection(SkillRuleConfig)),
        "skills switched on or off; entries of all layers count, the last one wins. A trusted project may switch "
        "skills off; your own entries win",
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
    model: str | None = setting(
        Text(), "the model of agents that are given none, or `PROVIDER/MODEL`", default=None, sample="gpt-5-mini"
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
    apps: bool = setting(Flag(), "let messages and skills ask for connectors", default=True)
    skill_mcp_dependency_install: bool = setting(
        Flag(), "add MCP servers that a named skill needs; false: never, whatever other settings say", default=True
    )
    skill_env_var_dependency_prompt: bool = setting(
        Flag(), "ask for variables that a named skill needs; false: a warning names them", default=True
    )
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
    wait_ms: int = setting(
        Integer(0), "ms that a command waits until all files of a large working tree were looked at", default=500
    )
    session_mib: int = setting(Integer(1), "MiB on the disk for one session; the oldest go first", default=500)
    total_mib: int = setting(Integer(1), "MiB on the disk for all sessions together", default=5120)


class SessionsConfig(ConfigRecord):
    """`[sessions]`: what stored sessions are called, and how long they are kept."""

    titles: Literal["first-words", "model"] = setting(
        WordChoice("first-words", "model"),
        "with `model`, one short request after the first turn names the session; else lists show its first words",
        default="first-words",
    )
    keep_days: int | None = setting(
        Integer(1),
        "sessions whose file was not written for so many days are removed by the next `exec` or `sessions list`",
        default=None,
        sample=90,
    )


class HistoryConfig(ConfigRecord):
    """`[history]`: the list of past prompts."""

    persistence: Literal["save-all", "none"] = setting(
        WordChoice("save-all", "none"), "whether prompts are kept in `history.jsonl`", default="save-all"
    )
    max_bytes: int | None = setting(Integer(1), "its largest size", default=None, sample=1048576)
