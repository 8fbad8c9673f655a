"""Connectors: tools of a server that belong together under a name, and are shown once the user asks for that name.

A server declares them in the metadata of its tools (`connector_id`, `connector_name`), the user under `[apps]`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from codex_py.context.compaction import is_users_own
from codex_py.mcp.catalog import Catalog, McpTool
from codex_py.mcp.servers import ApprovalMode, McpServer
from codex_py.protocol.encoding import as_object
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.value import Value
from codex_py.skills.mentions import Mentions, find_mentions, lengths_of, longest_known
from codex_py.skills.model import SkillCatalog
from codex_py.text.sanitize import sanitize_line

# The entry of `[apps]` for all that have none of their own.
DEFAULT: Final = "_default"
_NAMELESS: Final = "app"
_ODD: Final = re.compile(r"[^a-z0-9]+")
_SCHEME: Final = "app://"
_MAX_NOTICES: Final = 4
_MAX_TEXT: Final = 300


class Connector(NamedTuple):
    """A connector that some server offers; mentioned as `app://id`, or by its `slug`."""

    id: str
    name: str

    @property
    def slug(self) -> str:
        """The name as it is mentioned: lower case, all but letters and digits a dash."""
        return _ODD.sub("-", self.name.lower()).strip("-") or _NAMELESS


class ConnectorRules(Value):
    """The `[apps.ID]` tables: `enabled`, `name`, `server` with `server_tools`, and how tools are approved."""

    tables: Mapping[str, Mapping[str, Any]]
    allowed: bool = True
    """False where no connector may be used."""

    def is_enabled(self, connector_id: str) -> bool:
        """Whether a connector may be used at all."""
        return self.allowed and self._setting(connector_id, "enabled") is not False

    def declared(self, server: str, tool: str) -> str | None:
        """The connector that the user has made of a server, or of some of its tools."""
        for connector_id, table in self.tables.items():
            if connector_id != DEFAULT and table.get("server") == server:
                tools = table.get("server_tools")
                if tools is None or tool in tools:
                    return connector_id
        return None

    def name_of(self, connector_id: str) -> str | None:
        """The user's name for a connector."""
        name = self.tables.get(connector_id, {}).get("name")
        return name if isinstance(name, str) else None

    def offers(self, connector_id: str, tool: McpTool) -> bool:
        """Whether a tool of a connector is shown when the connector is."""
        own = self._own(connector_id, tool.name).get("enabled")
        if isinstance(own, bool):
            return own
        if self._setting(connector_id, "destructive_enabled") is False and tool.destructive is True:
            return False
        if self._setting(connector_id, "open_world_enabled") is False and tool.open_world is True:
            return False
        return self._setting(connector_id, "default_tools_enabled") is not False

    def mode_of(self, connector_id: str, tool: str) -> ApprovalMode | None:
        """How calls of a tool are approved, where that is said of the connector."""
        own = self._own(connector_id, tool).get("approval_mode")
        return own or self._setting(connector_id, "default_tools_approval_mode")

    def _own(self, connector_id: str, tool: str) -> dict[str, Any]:
        return as_object(as_object(self.tables.get(connector_id, {}).get("tools")).get(tool))

    def _setting(self, connector_id: str, key: str) -> Any:
        own = self.tables.get(connector_id, {}).get(key)
        return self.tables.get(DEFAULT, {}).get(key) if own is None else own


def connector_of(server: McpServer, tool: McpTool, rules: ConnectorRules) -> Connector | None:
    """The connector a tool belongs to; what the user says counts before what the server says."""
    connector_id = rules.declared(server.name, tool.name) or tool.connector_id
    if not connector_id:
        return None
    return Connector(connector_id, rules.name_of(connector_id) or tool.connector_name or connector_id)


def connectors_of(known: Iterable[tuple[McpServer, Catalog]], rules: ConnectorRules) -> dict[str, Connector]:
    """Every enabled connector that these servers offer, by its id; the first to name one says what it is called."""
    found: dict[str, Connector] = {}
    for server, catalog in known:
        for tool in catalog.tools:
            connector = connector_of(server, tool, rules)
            if connector is not None and server.offers(tool.name) and rules.is_enabled(connector.id):
                found.setdefault(connector.id, connector)
    return found


class RequestedConnectors(NamedTuple):
    """The ids of the connectors that are asked for, and lines about mentions that ask for none."""

    ids: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def named_connectors(
    texts: Sequence[str], connectors: Mapping[str, Connector], skills: SkillCatalog
) -> RequestedConnectors:
    """Which connectors texts ask for: by link (`[$name](app://id)`), or by `$slug`.

    A slug must be that of exactly one connector and the name of no enabled skill, in any case of letters. A link may
    have the id of a connector that is not there yet.
    """
    by_slug: dict[str, list[Connector]] = {}
    for connector in connectors.values():
        by_slug.setdefault(connector.slug, []).append(connector)
    shared = {skill.name.lower() for skill in skills.enabled()} & by_slug.keys()
    ids: dict[str, None] = {}
    notices: dict[str, None] = {}
    for mentions in (find_mentions(text, by_slug) for text in texts):
        for link in mentions.links:
            if link.link_type == "app":
                connector_id = link.path.removeprefix(_SCHEME).strip("/")
                ids[connector_id] = None
                if connector_id not in connectors:
                    notices[f"no MCP server offers the connector `{_shown(connector_id)}` yet"] = None
        for slug in _slugs(mentions, by_slug):
            found = by_slug[slug]
            if len(found) == 1 and slug not in shared:
                ids[found[0].id] = None
            else:
                what = "a connector and a skill" if slug in shared else f"{len(found)} connectors"
                named = [skill for skill in skills.enabled() if skill.name.lower() == slug][:_MAX_NOTICES]
                to_skills = " or ".join(f"`[${_shown(skill.name)}]({_shown(str(skill.path))})`" for skill in named)
                links = " or ".join(
                    f"`[${slug}]({_SCHEME}{_shown(candidate.id)})`" for candidate in found[:_MAX_NOTICES]
                )
                end = f", for the skill {to_skills}" if named else ""
                notices[f"`${slug}` is the name of {what} and asks for none: for a connector write {links}{end}"] = None
    return RequestedConnectors(tuple(ids), tuple(notices)[:_MAX_NOTICES])


def has_link(text: str) -> bool:
    """Whether a text may link to a connector."""
    return _SCHEME in text


def texts_of_user(items: Iterable[ResponseItem]) -> list[str]:
    """The user's own messages in a history that may mention something."""
    views = [item.view() for item in items if is_users_own(item)]
    return [view.text for view in views if isinstance(view, Message) and "$" in view.text]


def _slugs(mentions: Mentions, known: Collection[str]) -> list[str]:
    """The slugs among the names of a text, which may be written in any case."""
    lengths = lengths_of(known)
    found = [*mentions.plain, *(longest_known(run.lower(), known, lengths) for run in mentions.unknown)]
    return list(dict.fromkeys(filter(None, found)))


def _shown(text: str) -> str:
    return sanitize_line(text[:_MAX_TEXT]).replace("`", "'")
