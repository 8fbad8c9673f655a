"""Which tools a session offers its model, by the settings and by what the model can do."""

from __future__ import annotations

from typing import Any

from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.core.turn_context import ModelSettings
from codex_py.model.catalog import ModelFacts
from codex_py.model.providers import Provider
from codex_py.protocol.policy import ApprovalPolicy, asks_about
from codex_py.protocol.value import Value
from codex_py.tools.apply_patch import ApplyPatch
from codex_py.tools.lazy import (
    make_agent_tools,
    make_command_tools,
    make_hidden_tools,
    make_shown_tools,
    make_skill_tool,
)
from codex_py.tools.registry import ToolRegistry


class ToolSetContext(Value):
    """Where tools are offered. `can_ask` says that the front end answers the session's questions; `roles` are those of
    agents, with what each is for.
    """

    provider: Provider
    approval: ApprovalPolicy
    can_ask: bool
    roles: tuple[tuple[str, str], ...] = ()


def build_tools(config: Config, facts: ModelFacts, settings: ModelSettings, context: ToolSetContext) -> ToolRegistry:
    """The tools in the order they are shown."""
    login, shell = config.allow_login_shell, config.features.shell_tool and facts.shell
    commands = make_command_tools(allow_login_shell=login, max_poll_ms=config.background_terminal_max_timeout)
    tools = [
        *(commands if shell else ()),
        ApplyPatch(freeform=facts.apply_patch == "freeform"),
        *make_shown_tools(
            pictures=facts.images and config.features.view_image and config.tools.view_image,
            questions=context.can_ask,
            permissions=context.can_ask and asks_about(context.approval, "request_permissions"),
        ),
        # Whoever cannot read a file has no other way to a skill.
        *([make_skill_tool()] if config.skills.tool or not shell else ()),
        *(make_agent_tools(context.roles) if config.features.multi_agent and config.agents.max_depth else ()),
    ]
    return ToolRegistry(
        tools,
        hidden=make_hidden_tools(allow_login_shell=login, commands=shell),
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
    """What the provider runs itself. Another server refuses a request with a tool it does not know."""
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
