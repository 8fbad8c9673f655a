"""The fields of the front matter of a `SKILL.md`: for the linter, and for the reference page."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from codex_py.skills.metadata import MAX_DEPENDENCY_CHARS, MAX_LONG_CHARS, MAX_SHORT_CHARS
from codex_py.skills.options import MAX_HOOKS_CHARS, MAX_ITEMS, MAX_LINE
from codex_py.skills.parse import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, MAX_TOOLS_CHARS
from codex_py.text.frontmatter import MAX_BYTES, MAX_DEPTH

# Who has the field: the Agent Skills format, Codex CLI (in `agents/openai.yaml`), Claude Code, or this program alone.
Origin = Literal["Agent Skills", "Codex CLI", "Claude Code", "codex-py"]

WHOLE_LIMIT: Final = f"{MAX_BYTES // 1024} KiB, {MAX_DEPTH} levels deep, and no aliases"


class FrontMatterField(NamedTuple):
    """A field by its path; `default` is what holds without it, and `limit` what is accepted, "" for everything."""

    path: str
    type: str
    default: str
    limit: str
    origin: Origin
    doc: str

    @property
    def key(self) -> str:
        """The key at the top of the front matter."""
        return self.path.partition(".")[0]


_CHARS: Final = "{} characters"
_LINE: Final = _CHARS.format(MAX_LINE)
_SHORT: Final = _CHARS.format(MAX_SHORT_CHARS)
_LONG: Final = _CHARS.format(MAX_LONG_CHARS)
_REQUIRED: Final = "required"
_TOOL: Final = "dependencies.tools[]."

FRONT_MATTER: Final[tuple[FrontMatterField, ...]] = (
    FrontMatterField(
        "name",
        "text",
        "the directory's name",
        f"{MAX_NAME_CHARS} characters that can be shown; a longer one is loaded with a warning",
        "Agent Skills",
        "The name of the skill in menus and behind `$`.",
    ),
    FrontMatterField(
        "description",
        "text",
        _REQUIRED,
        f"cut at {MAX_DESCRIPTION_CHARS} characters",
        "Agent Skills",
        "Says when to use the skill, and for which work. The model chooses by it.",
    ),
    FrontMatterField(
        "metadata.short-description",
        "text",
        "–",
        f"cut at {MAX_DESCRIPTION_CHARS} characters",
        "Codex CLI",
        "A short description for lists and menus.",
    ),
    FrontMatterField(
        "allowed-tools",
        "text or list",
        "–",
        _CHARS.format(MAX_TOOLS_CHARS),
        "Agent Skills",
        "Shown by `skills show` and before an installation. It approves no tool and refuses none.",
    ),
    FrontMatterField("license", "text", "–", "", "Agent Skills", "Information for people; not used."),
    FrontMatterField("compatibility", "text", "–", "", "Agent Skills", "Information for people; not used."),
    FrontMatterField("metadata", "mapping", "–", "", "Agent Skills", "Information for people; not used otherwise."),
    FrontMatterField("version", "text", "–", "", "Claude Code", "Information for people; not used."),
    FrontMatterField(
        "disable-model-invocation",
        "true or false",
        "false",
        "",
        "Claude Code",
        "Whether only people can call the skill. A value that cannot be read counts as true.",
    ),
    FrontMatterField(
        "user-invocable", "true or false", "true", "", "Claude Code", "Whether menus and `/name` offer the skill."
    ),
    FrontMatterField("argument-hint", "text or list", "–", _LINE, "Claude Code", "Shown by the menu behind the name."),
    FrontMatterField(
        "arguments", "text or list", "–", f"{MAX_ITEMS} names", "Claude Code", "Names for `${name}` in the text."
    ),
    FrontMatterField("model", "text", "the session's", _LINE, "Claude Code", "The model for the rest of the turn."),
    FrontMatterField(
        "effort", "text", "the session's", _LINE, "Claude Code", "The reasoning effort for the rest of the turn."
    ),
    FrontMatterField(
        "context", "`fork` or `inherit`", "`inherit`", "", "Claude Code", "`fork` runs the skill as a subagent."
    ),
    FrontMatterField("agent", "text", "the default role", _LINE, "Claude Code", "The role of that subagent."),
    FrontMatterField(
        "paths",
        "text or list",
        "every file",
        f"{MAX_ITEMS} patterns of {_LINE}",
        "Claude Code",
        "Suggests the skill only when the message or a changed file fits one of these patterns.",
    ),
    FrontMatterField(
        "hooks",
        "mapping",
        "–",
        f"{MAX_HOOKS_CHARS // 1024} KiB",
        "Claude Code",
        "Hooks for the rest of the turn, in the form of `hooks.json`. They run once you trust them.",
    ),
    FrontMatterField(
        "dynamic", "true or false", "false", "", "codex-py", "Runs the commands in the text, and sends their output."
    ),
    FrontMatterField("interface.display_name", "text", "the name", _SHORT, "Codex CLI", "The name that menus show."),
    FrontMatterField(
        "interface.short_description", "text", "–", _LONG, "Codex CLI", "The description that menus show."
    ),
    FrontMatterField(
        "interface.icon_small", "path", "–", "below `assets/`", "Codex CLI", "A small picture for editors."
    ),
    FrontMatterField(
        "interface.icon_large", "path", "–", "below `assets/`", "Codex CLI", "A large picture for editors."
    ),
    FrontMatterField("interface.brand_color", "text", "–", "`#rrggbb`", "Codex CLI", "A colour for editors."),
    FrontMatterField(
        "interface.default_prompt", "text", "–", _LONG, "Codex CLI", "Fills the input after the skill is picked."
    ),
    FrontMatterField(
        "policy.allow_implicit_invocation",
        "true or false",
        "true",
        "",
        "Codex CLI",
        "Whether the model may choose the skill. A value that cannot be read is false.",
    ),
    FrontMatterField(
        "policy.products",
        "list",
        "every product",
        "`codex`, `chatgpt`, `atlas`",
        "Codex CLI",
        "The programs the skill is for. Without `codex` it is not loaded.",
    ),
    FrontMatterField(
        "dependencies.tools",
        "list of mappings",
        "–",
        f"{MAX_DEPENDENCY_CHARS // 1024} KiB",
        "Codex CLI",
        "Servers and variables that the skill needs. You are asked for them when it is used.",
    ),
    FrontMatterField(
        f"{_TOOL}type", "text", _REQUIRED, _SHORT, "Codex CLI", "`env_var` or `mcp`; no other is asked for."
    ),
    FrontMatterField(
        f"{_TOOL}value", "text", _REQUIRED, _LONG, "Codex CLI", "The variable, server or command that is needed."
    ),
    FrontMatterField(f"{_TOOL}description", "text", "–", _LONG, "Codex CLI", "Its purpose."),
    FrontMatterField(
        f"{_TOOL}transport", "text", "`streamable_http`", _SHORT, "Codex CLI", "How to reach the MCP server."
    ),
    FrontMatterField(f"{_TOOL}command", "text", "–", _LONG, "Codex CLI", "The command that starts the server."),
    FrontMatterField(f"{_TOOL}url", "text", "–", _LONG, "Codex CLI", "The address of the server."),
)
# Every key that may stand at the top. Some skills have `short-description` there, which a linter need not report.
KEYS: Final = frozenset({"short-description", *(field.key for field in FRONT_MATTER)})
