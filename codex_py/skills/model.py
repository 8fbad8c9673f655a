"""What a skill is: the values every other module of this room takes and gives.

Named tuples, because thousands are made before the first request of a session.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from codex_py.paths import real_path
from codex_py.protocol.ops import SkillScope
from codex_py.protocol.value import Value

# In the order in which roots are searched.
RootType: TypeAlias = Literal[
    "project-config", "home", "user-agents", "system", "admin", "plugin", "extra", "agents", "claude"
]

_CATALOGUE_ORDER: Final[tuple[SkillScope, ...]] = get_args(SkillScope)
_PROMPT_ORDER: Final[tuple[SkillScope, ...]] = ("system", "admin", "repo", "user")
McpTransport: TypeAlias = Literal["streamable_http", "stdio"]
ROOT_ORDER: Final[tuple[RootType, ...]] = get_args(RootType)


class SkillRoot(Value):
    """A directory that is searched for skills; `path` is its real path.

    `namespace`, `plugin_id` and `plugin_root` are set for the skills of a plugin. `inside` is the real path of the
    project that a repo skill must not lead out of.
    """

    path: Path
    scope: SkillScope
    root_type: RootType
    namespace: str | None = None
    plugin_id: str | None = None
    plugin_root: Path | None = None
    inside: Path | None = None

    @property
    def follows_links(self) -> bool:
        """Whether directories that are links are searched too."""
        return self.scope != "system"


class Interface(Value):
    """How a front end may show a skill; the icons are absolute paths and need not exist."""

    display_name: str | None = None
    short_description: str | None = None
    icon_small: Path | None = None
    icon_large: Path | None = None
    brand_color: str | None = None
    default_prompt: str | None = None


class ToolDependency(NamedTuple):
    """Something a skill needs: `type` is `mcp`, `env_var` or any other word; `value` names the thing."""

    type: str
    value: str
    description: str | None = None
    transport: str | None = None
    command: str | None = None
    url: str | None = None


class McpNeed(Value):
    """An MCP server that is not configured; `name` is what the first of the skills calls it.

    `url` is set for `streamable_http`, `command` for `stdio`. `key` tells servers apart whatever they are called.
    `files` are the `SKILL.md` of the skills.
    """

    key: str
    name: str
    transport: McpTransport
    url: str | None
    command: str | None
    skills: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The URL, or the command."""
        return self.url or self.command or ""


class SkillOptions(NamedTuple):
    """How a skill wants to be used, as its front matter says; "" and () where it does not say.

    `arguments` are the names of its arguments by position. With `fork` it runs as a subagent, in the role `agent`.
    `paths` are patterns of the files it is for. `hooks` is JSON in the format of `hooks.json`. With `dynamic` the
    commands in its text are run.
    """

    argument_hint: str = ""
    arguments: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    fork: bool = False
    agent: str = ""
    paths: tuple[str, ...] = ()
    hooks: str = ""
    dynamic: bool = False


NO_OPTIONS: Final = SkillOptions()


class Skill(NamedTuple):
    """One skill that can be loaded.

    `name` is the whole name, `namespace:base` for a skill of a plugin. `path` is the `SKILL.md` as reached from its
    root, `canonical_path` the same file with all links resolved. `allow_implicit` is false for a skill that is not
    listed for the model but may be mentioned; `user_invocable` is false for one a front end should not offer.
    `has_references` says that it has a directory `references`, or that its text links to another Markdown file.
    """

    name: str
    description: str
    short_description: str | None
    path: Path
    canonical_path: Path
    root: SkillRoot
    namespace: str | None = None
    interface: Interface | None = None
    dependencies: tuple[ToolDependency, ...] = ()
    allow_implicit: bool = True
    user_invocable: bool = True
    allowed_tools: tuple[str, ...] = ()
    options: SkillOptions = NO_OPTIONS
    has_references: bool = False

    @property
    def short(self) -> str | None:
        """The short description for menus: that of `agents/openai.yaml`, else that of the front matter."""
        return (self.interface and self.interface.short_description) or self.short_description

    @property
    def scope(self) -> SkillScope:
        return self.root.scope

    @property
    def plugin_id(self) -> str | None:
        return self.root.plugin_id

    @property
    def directory(self) -> Path:
        """The real directory that the skill's relative paths start from.

        Behind a link to a file of another name are other files: there it is the directory of the link.
        """
        is_skill = self.canonical_path.name == "SKILL.md"
        return self.canonical_path.parent if is_skill else Path(real_path(self.path.parent))


class SkillProblem(Value):
    """The fault of one file; `message` is the reason without the path."""

    path: Path
    message: str
    scope: SkillScope = "user"


class _Catalogued(NamedTuple):
    skills: tuple[Skill, ...] = ()
    disabled: frozenset[Path] = frozenset()
    problems: tuple[SkillProblem, ...] = ()
    remarks: tuple[SkillProblem, ...] = ()
    notes: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    edited: tuple[SkillProblem, ...] = ()


class SkillCatalog(_Catalogued):
    """Every skill found, enabled or not, in catalogue order: repo, user, system, admin; then by name; then by path.

    `disabled` holds canonical paths. `problems` are the skills that could not be loaded, `remarks` the files that were
    ignored while their skill was loaded, `notes` one line for each limit the search ran into, `replaced` the names of
    bundled skills that are left out because another skill has the name, `edited` the installed skills that differ from
    their record and are used nevertheless.
    """

    def is_enabled(self, skill: Skill) -> bool:
        return not self.disabled or skill.canonical_path not in self.disabled

    def enabled(self) -> tuple[Skill, ...]:
        """The skills that count, in catalogue order."""
        return self._enabled

    def listed(self) -> tuple[Skill, ...]:
        """The skills listed for the model, in the order of the list: system, admin, repo, user; name; path."""
        listed = [skill for skill in self._enabled if skill.allow_implicit]
        # Sorting is stable, and inside a scope both orders are the same.
        return tuple(sorted(listed, key=lambda skill: _PROMPT_ORDER.index(skill.root.scope)))

    def find(self, name: str) -> tuple[Skill, ...]:
        """All enabled skills of exactly this whole name, in catalogue order."""
        return self._by_name.get(name, ())

    def by_path(self, path: Path) -> Skill | None:
        """The enabled skill whose `SKILL.md` has this absolute path, as reached or canonical."""
        return self._by_path.get(path)

    @cached_property
    def _enabled(self) -> tuple[Skill, ...]:
        return tuple(filter(self.is_enabled, self.skills)) if self.disabled else self.skills

    @cached_property
    def _by_name(self) -> dict[str, tuple[Skill, ...]]:
        found: dict[str, tuple[Skill, ...]] = {}
        for skill in self._enabled:
            found[skill.name] = (*found.get(skill.name, ()), skill)
        return found

    @cached_property
    def _by_path(self) -> dict[Path, Skill]:
        found = {skill.path: skill for skill in self._enabled}
        found.update((skill.canonical_path, skill) for skill in self._enabled)
        return found


def catalogue_key(skill: Skill) -> tuple[int, str, str]:
    """Sorts skills into catalogue order; names and paths by code point."""
    return _CATALOGUE_ORDER.index(skill.root.scope), skill.name, str(skill.path)
