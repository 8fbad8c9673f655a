"""Which tools a session offers its model, by the settings and by what the model can do."""

from __future__ import annotations

from typing import Any, Final

from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.core.model_setup import has_edit_tools
from codex_py.core.turn_context import ModelSettings
from codex_py.model.catalog import ModelFacts
from codex_py.model.providers import Provider
from codex_py.protocol.policy import ApprovalPolicy, asks_about
from codex_py.protocol.value import Value
from codex_py.tools.apply_patch import ApplyPatch, EditFile, WriteFile
from codex_py.tools.ask_user import RequestPermissions, RequestUserInput
from codex_py.tools.exec_command import ExecCommand, Shell, ShellCommandTool, WriteStdin
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.session_tools import LoadSkill, SkillSearchTool, UpdatePlan
from codex_py.tools.spec import Tool
from codex_py.tools.view_image import ViewImage

BUILT_IN: Final[tuple[type[Tool], ...]] = (
    *(ExecCommand, WriteStdin, ApplyPatch, UpdatePlan, ViewImage, RequestUserInput, RequestPermissions, LoadSkill),
    *(EditFile, WriteFile),
    *(Shell, ShellCommandTool),
)


class ToolSetContext(Value):
    """Where tools are offered. `can_ask` says that the front end answers questions, `agent_tools` are for agents."""

    provider: Provider
    approval: ApprovalPolicy
    can_ask: bool
    agent_tools: tuple[Tool, ...] = ()


def build_tools(config: Config, facts: ModelFacts, settings: ModelSettings, context: ToolSetContext) -> ToolRegistry:
    """The tools in the order they are shown. Hidden are older names, and what would be refused anyway."""
    login, shell = config.allow_login_shell, config.features.shell_tool and facts.shell
    older: list[Tool] = [Shell(allow_login_shell=login), ShellCommandTool(allow_login_shell=login)] if shell else []
    # Only the Responses API takes a grammar.
    patches = ApplyPatch(freeform=facts.apply_patch == "freeform" and context.provider.wire_api == "responses")
    edits = has_edit_tools(config, settings.model, context.provider.id)
    is_shown = {
        ExecCommand(allow_login_shell=login): shell,
        WriteStdin(max_poll_ms=config.background_terminal_max_timeout): shell,
        patches: not edits,
        **dict.fromkeys((EditFile(), WriteFile()), edits),
        UpdatePlan(): True,
        ViewImage(): facts.images and config.features.view_image and config.tools.view_image,
        RequestUserInput(): context.can_ask,
        RequestPermissions(): context.can_ask and asks_about(context.approval, "request_permissions"),
        # Whoever cannot read a file has no other way to a skill.
        LoadSkill(): config.skills.tool or not shell,
    }
    return ToolRegistry(
        [*(tool for tool, shown in is_shown.items() if shown), *context.agent_tools],
        hidden=[*older, *([patches] if edits else ()), RequestUserInput(), RequestPermissions(), SkillSearchTool()],
        hosted=_hosted_tools(config, context.provider, settings),
    )


def web_search_notice(loaded: LoadedConfig, provider: Provider, settings: ModelSettings) -> str | None:
    """A line for a user who has asked for web search where there is none."""
    names = ("web_search", "tools.web_search")
    is_requested = any(
        layer.layer_type in ("flags", "profile", "user") and (key in names or key.startswith("tools.web_search."))
        for key, layer in loaded.origins.items()
    )
    missing = _missing_search(provider, settings)
    if not is_requested or missing is None or loaded.config.web_search == "disabled":
        return None
    return f"`web_search` has no effect: {missing}"


def _missing_search(provider: Provider, settings: ModelSettings) -> str | None:
    """Why the provider searches nothing, if it does not."""
    if provider.id != "openai":
        return f"the provider `{provider.id}` has no web search"
    if settings.effort == "minimal":
        return "OpenAI does not search with the effort `minimal`"
    return None


def _hosted_tools(config: Config, provider: Provider, settings: ModelSettings) -> list[dict[str, Any]]:
    """The tools that the provider runs itself. Other servers refuse a request with a tool they do not know."""
    if config.web_search == "disabled" or _missing_search(provider, settings) is not None:
        return []
    tool: dict[str, Any] = {"type": "web_search", "external_web_access": config.web_search == "live"}
    mode = config.tools.web_search
    if domains := mode.get("allowed_domains"):
        tool["filters"] = {"allowed_domains": list(domains)}
    if location := mode.get("location"):
        tool["user_location"] = {"type": "approximate", **location}
    if size := mode.get("context_size"):
        tool["search_context_size"] = size
    return [tool]
