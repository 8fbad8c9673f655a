"""Reads the roles of agents from TOML and from Markdown with frontmatter, in the user's directory and in the project's.

The Markdown files have the format of Claude Code, the TOML files that of Codex CLI, so that they can be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast, get_args

from codex_py.config.layers import NestedTooDeeply, read_toml, toml_fault
from codex_py.config.schema import Config
from codex_py.config.value_types import settings_of, wrong_word
from codex_py.errors import CodexError
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.policy import SandboxMode
from codex_py.subagents.roles import AGENT_TOOLS, BUILT_IN, AgentRole, SessionRoles, ToolChoice
from codex_py.text.files import FileRefused, read_inside, read_trusted
from codex_py.text.frontmatter import YamlRefused, YamlValue, parse_yaml, repair_yaml, split_frontmatter
from codex_py.text.nearest import nearest
from codex_py.text.sanitize import sanitize_line

MAX_BYTES: Final = 64 * 1024
_MAX_FILES: Final = 100
_MAX_NAME: Final = 64
_MAX_ABOUT: Final = 600
# Of all descriptions together, in bytes: they are in every request.
_MAX_SHOWN: Final = 16 * 1024
# What other programs call their models, and what they call "the same as before".
_CLAUDE_MODELS: Final = frozenset({"inherit", "sonnet", "opus", "haiku", "opusplan", "default", ""})
_NARROWING: Final = frozenset({"tools", "disallowedTools", "sandbox_mode", "permissionMode"})
_KEYS: Final = (
    *("name", "description", "developer_instructions", "model", "model_provider", "model_reasoning_effort", "effort"),
    *("skills", *sorted(_NARROWING)),
)
# Keys of other programs that look like a mistyped one of ours.
_OTHERS_KEYS: Final = frozenset({"mode", "may_ask"})
_TEXT_KEYS: Final = frozenset({"name", "description"})
# What other programs call the ways to permit; those that are not said to narrow are the session's own here.
_PERMISSION_MODES: Final = frozenset(
    {"", "default", "manual", "acceptedits", "auto", "dontask", "bypasspermissions", "delegate", "plan"}
)

_COMMANDS: Final = ("exec_command", "write_stdin", "shell", "shell_command")
_LOOK: Final = (*_COMMANDS, "view_image")
_WRITERS: Final = ("apply_patch", "edit_file", "write_file")
# By the other program's name: our tools that do the work of it.
_OWN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("read", "grep", "glob", "ls", "notebookread", "lsp"), _LOOK),
    **dict.fromkeys(("bash", "bashoutput", "killshell", "killbash"), _LOOK),
    **dict.fromkeys(("write", "edit", "multiedit", "notebookedit", "apply_patch"), (*_WRITERS, *_LOOK)),
    **dict.fromkeys(("webfetch", "websearch"), ("web_search",)),
    **dict.fromkeys(("task", "agent"), tuple(sorted(AGENT_TOOLS))),
    "todowrite": ("update_plan",),
    "askuserquestion": ("request_user_input",),
    "skill": ("skill",),
    "exec_command": _COMMANDS,
    "shell": _COMMANDS,
}
_WRITING: Final = frozenset(
    {"bash", "write", "edit", "multiedit", "notebookedit", *_WRITERS, *_COMMANDS},
)


class _Refused(CodexError):
    """A file that is no role; the message says why."""


def read_roles(
    directories: Iterable[tuple[Path, Path | None]], entries: Mapping[str, Mapping[str, Any]]
) -> SessionRoles:
    """The built-in roles, those in directories, those of the configuration's `entries`; of one name the last counts.

    A directory comes with the real path of the project that its files must be inside of, if any; its first hundred
    files by name are read. Warnings, not errors, are files that are no roles, and descriptions over 16 KiB together.
    """
    roles = {role.name: role for role in BUILT_IN}
    warnings: list[str] = []
    for directory, inside in directories:
        files = _files(directory)
        if len(files) > _MAX_FILES:
            where = sanitize_line(str(directory))
            warnings.append(f"only the first {_MAX_FILES} of {len(files)} agent roles in `{where}` are used")
        for path in files[:_MAX_FILES]:
            try:
                role = read_role(path, inside=inside)
            except CodexError as error:
                warnings.append(f"the agent role `{sanitize_line(str(path))}` is left out: {error}")
            else:
                roles[role.name] = role
    for name, entry in entries.items():
        try:
            roles[name] = _from_entry(name, entry)
        except CodexError as error:
            warnings.append(f"the agent role `{sanitize_line(name)}` is left out: {error}")
    warnings += [warning for _, role in sorted(roles.items()) for warning in role.warnings]
    shown = _fitted(dict(sorted(roles.items())))
    if cut := sum(role != roles[name] for name, role in shown.items()):
        warnings.append(
            f"{cut} descriptions of agent roles are cut for the model: all are over {_MAX_SHOWN // 1024} KiB"
        )
    return SessionRoles(shown, tuple(warnings))


def read_role(path: Path, *, inside: Path | None = None, name: str = "") -> AgentRole:
    """The role in a file, called `name` unless the file says otherwise. Raises `CodexError` for one that is none."""
    head = read_inside(inside, path, MAX_BYTES + 1) if inside else read_trusted(path, MAX_BYTES + 1)
    if head is None:
        raise FileRefused("no such file")
    if len(head.raw) > MAX_BYTES:
        raise _Refused(f"over {MAX_BYTES // 1024} KiB")
    try:
        text = head.raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Refused(f"not UTF-8 at byte {error.start}") from None
    fields = _toml(text) if path.suffix == ".toml" else _markdown(text)
    role = _role(fields, name or path.stem, path)
    return role.replace(warnings=tuple(_misspelt(fields, path)))


def _files(directory: Path) -> list[Path]:
    try:
        found = sorted(path for path in directory.iterdir() if path.suffix in (".toml", ".md"))
    except OSError:
        return []
    return [path for path in found if not path.name.startswith(".")]


def _fitted(roles: Mapping[str, AgentRole]) -> dict[str, AgentRole]:
    """The roles with descriptions that fit together: where they do not, none is longer than its part of the room."""
    sizes = [len(role.about.encode()) for role in roles.values()]
    if sum(sizes) <= _MAX_SHOWN:
        return dict(roles)
    budget, part = _MAX_SHOWN, 0
    for number, size in enumerate(sorted(sizes)):
        part = budget // (len(sizes) - number)
        if size > part:
            break
        budget -= size
    return {name: role.replace(about=_cut(role.about, part)) for name, role in roles.items()}


def _cut(text: str, most: int) -> str:
    raw = text.encode()
    return text if len(raw) <= most else f"{raw[: max(0, most - 3)].decode(errors='ignore')}…"


def _from_entry(name: str, entry: Mapping[str, Any]) -> AgentRole:
    file = entry.get("config_file")
    try:
        role = read_role(Path(file), name=name) if file is not None else AgentRole(name)
    except CodexError as error:
        raise _Refused(f"`{sanitize_line(str(file))}`: {error}") from None
    return role.replace(name=name, about=_about(entry.get("description")) or role.about)


def _toml(text: str) -> dict[str, Any]:
    try:
        fields = read_toml(text)
    except NestedTooDeeply:
        raise _Refused("nested too deeply") from None
    except ValueError as error:
        raise _Refused(toml_fault(error, text).lstrip(": ")) from None
    return {**fields, "may_ask": True}


def _markdown(text: str) -> dict[str, Any]:
    parted = split_frontmatter(text)
    if parted is None:
        raise _Refused("no frontmatter between two lines of `---`")
    # The line of the first fence counts too, so that a mistake is found where an editor shows it.
    fields = _yaml(f"\n{parted.yaml}")
    if not isinstance(fields, dict):
        raise _Refused("its frontmatter must be lines of `key: value`")
    named = cast("dict[str, Any]", fields)
    mode = _permission_mode(named.get("permissionMode"))
    if mode == "plan":
        named = {**named, "sandbox_mode": "read-only"}
    named["may_ask"] = mode != "dontask"
    return {**named, "model_reasoning_effort": named.get("effort"), "developer_instructions": text[parted.body_start :]}


def _permission_mode(value: object) -> str:
    """In small letters, "" where nothing is said. Raises `_Refused` for one that might have been meant to narrow."""
    mode = value.strip().lower() if isinstance(value, str) else value
    if mode is None:
        return ""
    if not isinstance(mode, str) or mode not in _PERMISSION_MODES:
        raise _Refused(f"`permissionMode` is `{sanitize_line(str(value)[:40])}`")
    return mode


def _yaml(source: str) -> YamlValue:
    """Frontmatter as other programs read it, whose descriptions hold colons without any quotes."""
    try:
        return parse_yaml(source)
    except YamlRefused as error:
        with suppress(YamlRefused):
            return parse_yaml(repair_yaml(source, texts=_TEXT_KEYS))
        raise _Refused(f"its frontmatter is not YAML: {error}") from None


def _role(fields: Mapping[str, Any], stem: str, path: Path) -> AgentRole:
    name = sanitize_line(" ".join((_text(fields, "name") or stem).split()))[:_MAX_NAME]
    tools = choose_tools(_limits(fields, "tools"), _limits(fields, "disallowedTools") or ())
    mode = fields.get("sandbox_mode") or ""
    if mode and mode not in get_args(SandboxMode):
        shown = sanitize_line(str(mode)[:40])
        raise _Refused(f"`sandbox_mode` is `{shown}`: {wrong_word(mode, get_args(SandboxMode))}")
    model = _text(fields, "model")
    return AgentRole(
        name=name,
        about=_about(fields.get("description")),
        instructions=_text(fields, "developer_instructions").strip(),
        model=None if model.lower().partition("[")[0] in _CLAUDE_MODELS else model,
        effort=_text(fields, "model_reasoning_effort") or None,
        sandbox=cast("SandboxMode", mode) if mode else None,
        tools=tools,
        skills=_names(fields.get("skills")) or (),
        provider=_text(fields, "model_provider") or None,
        may_ask=fields.get("may_ask") is not False,
        path=path,
    )


def _misspelt(fields: Mapping[str, Any], path: Path) -> Iterator[str]:
    """A line for each key that is nearly one of a role's; others are for other programs.

    Raises `_Refused` for one that would narrow the role.
    """
    for key in fields:
        if key in _KEYS or key in _OTHERS_KEYS or key in settings_of(Config):
            continue
        # The limits of a slash command or a skill elsewhere.
        near = "tools" if key.replace("-", "").lower() == "allowedtools" else nearest(key, _KEYS)
        if near in _NARROWING:
            raise _Refused(f"unknown key `{sanitize_line(key)}`; did you mean `{near}`?")
        if near:
            where = sanitize_line(str(path))
            yield f"unknown key `{sanitize_line(key)}` in the agent role `{where}` is ignored; did you mean `{near}`?"


def _limits(fields: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """The names that narrow a role. Raises `_Refused` for another shape: a limit that is not understood is none."""
    value: object = fields.get(key)
    listed = as_list(value) or [value or ""]
    if all(isinstance(pattern, str) for pattern in listed):
        return _names(value)
    raise _Refused(f"`{key}` is neither a list of names nor a text with commas between them")


def _names(value: object) -> tuple[str, ...] | None:
    """Names in a list, or in a text with commas between them; None where nothing is said."""
    if isinstance(value, str):
        value = value.split(",") if value.strip() else None
    listed = [name.strip() for name in as_list(value) if isinstance(name, str) and name.strip()]
    return tuple(listed) if value is not None and not as_object(value) else None


def _about(value: object) -> str:
    return sanitize_line(" ".join(value.split()))[:_MAX_ABOUT] if isinstance(value, str) else ""


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def choose_tools(names: Sequence[str] | None, denied: Sequence[str]) -> ToolChoice | None:
    """The tools that a role's lists allow; None when they do not restrict any. Unknown names allow nothing."""
    if (names is None or "*" in names) and not denied:
        return None
    plain = None if names is None or "*" in names else [_plain(name) for name in names]
    gone = {_plain(name).lower() for name in denied}
    if plain is not None:
        plain = [name for name in plain if name.lower() not in gone]
        # It says again what is not in the list; files are read with commands here, whoever may read them.
        gone -= {"bash"} if any("exec_command" in _own_names(name) for name in plain) else set()
    return ToolChoice(
        allowed=None if plain is None else frozenset(own_name for name in plain for own_name in _own_names(name)),
        denied=frozenset(
            own_name for name in map(_plain, denied) if name.lower() in gone for own_name in _denied(name)
        ),
        reads_only=plain is not None and not any(name.lower() in _WRITING for name in plain),
    )


def _own_names(name: str) -> tuple[str, ...]:
    return _OWN_NAMES.get(name.lower(), (name,))


def _denied(name: str) -> tuple[str, ...]:
    """What is taken away with a name: with `Write` the patches, and not the shell that reads files as well."""
    if name.lower() in ("bash", *_COMMANDS):
        return _COMMANDS
    return tuple(own_name for own_name in _own_names(name) if own_name == name or own_name not in _LOOK)


def _plain(name: str) -> str:
    """A name without the pattern of arguments behind it, as in `Bash(git:*)`."""
    return name.partition("(")[0].strip()
