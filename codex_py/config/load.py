"""Loads the configuration: reads all layers, merges them into one `Config`, and notes where each value came from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Final, cast

from codex_py.config.keys import KeyPath, dotted, parse_key, split_assignment, toml_value
from codex_py.config.layers import Checked, Layer, LayerSource, NestedTooDeeply, merge, nested, origins_of, read_toml
from codex_py.config.mcp_sections import mcp_server_problem
from codex_py.config.model_names import with_named_provider
from codex_py.config.project import ProjectContext, read_project
from codex_py.config.reader import SCHEMA, LayerReader, translated
from codex_py.config.requirements import Requirements, read_requirements, required_layer
from codex_py.config.schema import BUILT_IN_PROVIDERS, HOSTED_PROVIDERS, Config
from codex_py.config.trust import Trust, TrustList, find_root, real_path
from codex_py.config.tui import KEYS as TUI_KEYS
from codex_py.config.tui import TuiProblem, keymap_problems, tui_problems
from codex_py.config.value_types import ConfigRecord, RecordSection, settings_of
from codex_py.errors import ConfigError, UsageError
from codex_py.paths import PLUGIN_CACHE, is_directory
from codex_py.protocol.encoding import as_object
from codex_py.text.nearest import did_you_mean


def parse_override(text: str) -> tuple[tuple[str, ...], Any]:
    """The key and the value of one `-c`; raise `UsageError` when it is not a `key=value`."""
    assignment = split_assignment(text)
    if assignment is None or not assignment[0]:
        raise UsageError(f"not a setting: `-c {text}`", hint="write `-c key=value`, for example `-c model=gpt-5.5`")
    key, raw = assignment
    return parse_key(key), parse_value(raw)


def parse_value(raw: str) -> Any:
    """A value on the command line: TOML, or else text. Raise `UsageError` for one that is nested too deeply."""
    try:
        tree = read_toml(f"value = {raw}")
    except NestedTooDeeply as error:
        raise UsageError(f"the value is nested too deeply: `{raw[:60]}…`") from error
    except ValueError:
        tree = {}
    # More than one key means that a line break in the value began another statement.
    return tree["value"] if set(tree) == {"value"} else raw.strip().strip("\"'")


class ConfigRequest(ConfigRecord):
    """What to load.

    `overrides` are the texts of `-c` in order; `flags` are the values of other flags by dotted key, which win over
    them. Messages quote `flag_texts`, or for flags without a text say `flags_from`. `system` is the directory of the
    machine's own files. `home` need not exist. With `names_provider` the model among the flags may be `PROVIDER/MODEL`,
    unless a flag sets the provider.
    """

    home: Path
    cwd: Path
    env: Mapping[str, str]
    overrides: tuple[str, ...] = ()
    flags: Mapping[str, Any] = MappingProxyType({})
    profile: str | None = None
    strict: bool = False
    ignore_user: bool = False
    system: Path = Path("/etc/codex")
    flags_from: str = "the command line"
    flag_texts: Mapping[str, str] = MappingProxyType({})
    names_provider: bool = False


class LoadedConfig(ConfigRecord):
    """The effective configuration. `origins` names the layer of every key, the defaults included.

    `layers` are those that were read, highest first. `project_mcp_servers` are what a trusted project asks to
    run: they may only start after the user has agreed to exactly that. `hooks` are those of every layer but a
    project's, highest first; all of them run. `skill_layers` are the tables `[skills]` of all layers that have rules
    for skills, lowest first. `system` is the directory of the machine's own files.
    """

    config: Config
    origins: Mapping[str, Layer]
    layers: tuple[Layer, ...]
    warnings: tuple[str, ...]
    trust: Trust
    project_root: Path | None
    requirements: Requirements
    project_mcp_servers: Mapping[str, Any]
    hooks: tuple[tuple[Layer, Mapping[str, Any]], ...]
    skill_layers: tuple[tuple[Layer, Mapping[str, Any]], ...]
    system: Path


_FLAGS = Layer("flags")
_MAX_FLAG_LENGTH = 80
_PROFILE: Final = ".config.toml"
HOOKS_FILE: Final = "hooks.json"
_RULES: Final = frozenset({"config", "only"})


def read_below_project(reader: LayerReader, request: ConfigRequest) -> list[Checked]:
    """The layers of system, user and profile, lowest first. Raises `UserError` for a missing profile."""
    layers: list[Checked] = []
    system = reader.read_file("system", request.system / "config.toml")
    user = None if request.ignore_user else reader.read_file("user", request.home / "config.toml")
    profile = None
    if request.profile is not None:
        legacy = as_object(user[1].get("profiles")) if user else {}
        profile = _read_profile(reader, request.home, request.profile, legacy=legacy)
    for found in (system, user, profile):
        if found is not None:
            source, tree = found
            layers.append(reader.check(source, tree, cast("Path", source.layer.path).parent))
    return layers


def read_above_project(reader: LayerReader, request: ConfigRequest) -> list[Checked]:
    """The layers of `-c`, other flags and the managed file, lowest first."""
    layers: list[Checked] = []
    for text in request.overrides:
        path, value = parse_override(text)
        shown = text if len(text) <= _MAX_FLAG_LENGTH else text[:_MAX_FLAG_LENGTH] + "…"
        layers.append(reader.check(LayerSource(_FLAGS, flag=f"`-c {shown}`"), nested(path, value), request.cwd))
    for key, value in request.flags.items():
        tree = nested(parse_key(key), _plain(value))
        words = request.flag_texts.get(key)
        flag = f"`{words}`" if words else request.flags_from
        layers.append(reader.check(LayerSource(_FLAGS, flag=flag), tree, request.cwd))
    managed = reader.read_file("managed", request.system / "managed_config.toml")
    if managed is not None:
        layers.append(reader.check(managed[0], managed[1], request.system))
    return layers


def profile_file(home: Path, name: str) -> Path:
    """The file of a profile, there or not. Raise `ConfigError` for what names none."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ConfigError(f"not the name of a profile: `{name}`", hint="a profile `x` is the file `x.config.toml`")
    if name != name.strip() or " " in name:
        # In other agents, `-p` takes a prompt.
        raise ConfigError(f"no profile `{name}`", hint=f'`-p` names a profile; for a task: `codex-py exec "{name}"`')
    return home / f"{name}{_PROFILE}"


def _read_profile(
    reader: LayerReader, home: Path, name: str, *, legacy: Mapping[str, Any]
) -> tuple[LayerSource, dict[str, Any]]:
    path = profile_file(home, name)
    if name in legacy:
        raise ConfigError(
            f"cannot use the profile `{name}`: it is the table `[profiles.{name}]` in `{home / 'config.toml'}`",
            hint=f"move its keys to `{path}`, without the table's header",
        )
    found = reader.read_file("profile", path)
    if found is None:
        names = [file.name.removesuffix(_PROFILE) for file in home.glob(f"*{_PROFILE}")]
        guess = did_you_mean(name, names) or (
            f"there are {', '.join(f'`{profile}`' for profile in sorted(names))}" if names else None
        )
        raise ConfigError(f"no profile `{name}`: `{path}` does not exist", hint=guess or "create this file")
    return found


def _plain(value: Any) -> Any:
    """A flag's value in the types that TOML has."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value


__all__ = ["ConfigRequest", "LoadedConfig", "load_config", "parse_value", "profile_file"]


def load_config(request: ConfigRequest) -> LoadedConfig:
    """Read all layers and lay them over each other.

    Raises `UserError` for a wrong value, broken TOML or a file that cannot be read, and `UsageError` for a `-c`
    that is no `key=value`.
    """
    user_home = request.env.get("HOME", "")
    reader = LayerReader(user_home, strict=request.strict, in_sandbox=bool(request.env.get("CODEX_SANDBOX")))
    defaults = Checked(LayerSource(Layer("defaults")), default_tree(Config))
    # A wrong command line is reported before errors in files.
    above = read_above_project(reader, request)
    below = read_below_project(reader, request)
    own_layers = translated([*below, *above])
    below, above = [defaults, *own_layers[: len(below)]], own_layers[len(below) :]

    # The project's own files say nothing about where it begins and whether it is trusted.
    own = merge([*below, *above])
    trusts = TrustList(own["projects"], user_home)
    cwd = real_path(request.cwd)
    project_context = ProjectContext(cwd, find_root(cwd, own["project_root_markers"]), request.home)
    project = read_project(reader, project_context, trusts, below=below)

    trust = trusts.of(cwd, project_context.root)
    looking = _only_looking(trust, [*below, *project.layers], project_context)
    layers = [*below, *project.layers, *([looking] if looking else []), *above]
    name = request.flags.get("model")
    if request.names_provider and isinstance(name, str) and "/" in name and "model_provider" not in request.flags:
        layers = with_named_provider(layers, name, request.env)
    requirements = read_requirements(request.system / "requirements.toml")
    required, overruled = required_layer(requirements, merge(layers[1:]))
    if required is not None:
        layers.append(required)
    tree = merge(layers)
    _check_provider(tree, layers)
    _check_mcp_servers(tree, layers, reader)
    return LoadedConfig(
        config=cast("Config", SCHEMA.build(tree)),
        origins=origins_of(tree, layers),
        layers=tuple(dict.fromkeys(layer.source.layer for layer in reversed(layers))),
        warnings=tuple(
            [
                *reader.warnings,
                *_without_effect(tree, layers),
                *_ignored_in_tui(tree, layers),
                *_absent(tree, layers, request.home),
                *_unused_providers(tree, layers),
                *overruled,
                *_overruled_by(looking, tree),
            ]
        ),
        trust=trust,
        project_root=project_context.root,
        requirements=requirements,
        project_mcp_servers=project.mcp_servers,
        hooks=_hook_layers(layers[1:]),
        skill_layers=_skill_layers(layers[1:]),
        system=request.system,
    )


def _hook_layers(layers: Sequence[Checked]) -> tuple[tuple[Layer, Mapping[str, Any]], ...]:
    return tuple((layer.source.layer, layer.tree["hooks"]) for layer in reversed(layers) if layer.tree.get("hooks"))


def _skill_layers(layers: Sequence[Checked]) -> tuple[tuple[Layer, Mapping[str, Any]], ...]:
    tables = ((layer.source.layer, layer.tree.get("skills", {})) for layer in layers)
    return tuple((layer, table) for layer, table in tables if not _RULES.isdisjoint(table))


def default_tree(record: type[ConfigRecord]) -> dict[str, Any]:
    """The defaults of a record as nested tables, the keys that are not set among them as None."""
    return {
        name: default_tree(setting.value_type.record)
        if isinstance(setting.value_type, RecordSection)
        else setting.default
        for name, setting in settings_of(record).items()
    }


def _only_looking(trust: Trust, layers: Sequence[Checked], project: ProjectContext) -> Checked | None:
    """A layer that makes the sandbox read-only in an untrusted project; None where it already is.

    It is above the user's files and below the command line.
    """
    mode = merge(layers).get("sandbox_mode")
    if trust != "untrusted" or mode in (None, "read-only"):
        return None
    return Checked(LayerSource(Layer("user", project.home / "config.toml")), {"sandbox_mode": "read-only"})


def _overruled_by(looking: Checked | None, tree: Mapping[str, Any]) -> list[str]:
    """The warning about that layer, unless a flag has set another mode."""
    if looking is None or tree["sandbox_mode"] != "read-only":
        return []
    return [
        "commands only read here, whatever `sandbox_mode` says in your settings: you marked the project as untrusted "
        "(`-s workspace-write` lets one session write)"
    ]


def _without_effect(tree: Mapping[str, Any], layers: Sequence[Checked]) -> list[str]:
    """A warning for an approvals reviewer other than the user, which is not supported here."""
    if tree["approvals_reviewer"] == "user":
        return []
    return [f"`approvals_reviewer` {_where(('approvals_reviewer',), layers)} has no effect: questions go to the user"]


def _ignored_in_tui(tree: Mapping[str, Any], layers: Sequence[Checked]) -> list[str]:
    if not tree["tui"]:
        return []
    elsewhere = "it is a key of the top level: move it above the first `[table]`"
    misplaced = [
        TuiProblem(key, elsewhere) for key in tree["tui"] if key not in TUI_KEYS and key in settings_of(Config)
    ]
    lines: list[str] = []
    for key, reason, part in [*tui_problems(tree["tui"]), *misplaced]:
        found = f"`{part}` in `tui.{key}`" if part else f"`tui.{key} = {toml_value(tree['tui'][key])}`"
        lines.append(f"{found} {_where(('tui', key), layers)} is ignored: {reason}")
    return [*lines, *keymap_problems(tree["tui"], lambda path: _where(path, layers))]


# Settings with lists of directories, and the effect of a missing one.
_DIRECTORIES: Final[tuple[tuple[KeyPath, str], ...]] = (
    (("sandbox_workspace_write", "writable_roots"), "nothing can be written there"),
    (("skills", "roots"), "no skills come from there"),
    (("skills", "extra_user_roots"), "no skills come from there"),
)


def _absent(tree: Mapping[str, Any], layers: Sequence[Checked], home: Path) -> Iterator[str]:
    """A warning for each directory and plugin that a setting names and that does not exist."""
    for path, effect in _DIRECTORIES:
        for directory in tree[path[0]][path[1]]:
            # A relative one is about each project, and not every project has it.
            if Path(directory).is_absolute() and not is_directory(Path(directory)):
                reason = "is not a directory" if os.path.lexists(directory) else "does not exist"
                where = f"`{dotted(path)}` {_where(path, layers)}"
                yield f"`{directory}` in {where} {reason}: {effect}; create it, or remove the entry"
    for plugin_id, entry in tree["plugins"].items():
        name, _, marketplace = plugin_id.partition("@")
        if entry.get("enabled") and not is_directory(home / PLUGIN_CACHE / marketplace / name):
            installed = [f"{path.name}@{path.parent.name}" for path in (home / PLUGIN_CACHE).glob("*/*")]
            hint = did_you_mean(plugin_id, installed) or "`codex-py plugin add` installs one"
            yield f"the plugin `{plugin_id}` {_where(('plugins', plugin_id), layers)} is not installed; {hint}"


def _check_provider(tree: Mapping[str, Any], layers: Sequence[Checked]) -> None:
    known = _known_providers(tree)
    chosen = str(tree["model_provider"])
    if chosen in known:
        return
    guess = did_you_mean(chosen, known)
    raise ConfigError(
        f"unknown provider `{chosen}` {_where(('model_provider',), layers)}: "
        f"{guess}{' ' if guess else ''}known are {', '.join(f'`{name}`' for name in known)}",
        hint=None if guess else f"define it in `[{dotted(('model_providers', chosen))}]`",
    )


def _unused_providers(tree: Mapping[str, Any], layers: Sequence[Checked]) -> Iterator[str]:
    """A warning for each unknown provider that another layer hides, such as that of `--offline`."""
    known = _known_providers(tree)
    for layer in layers:
        if (name := str(layer.tree.get("model_provider", tree["model_provider"]))) not in known:
            guess = did_you_mean(name, known)
            where = layer.source.where(("model_provider",))
            yield f"unknown provider `{name}` {where}, which this run does not use{f'; {guess}' if guess else ''}"


def _known_providers(tree: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*BUILT_IN_PROVIDERS, *HOSTED_PROVIDERS, *tree["model_providers"])))


def _check_mcp_servers(tree: Mapping[str, Any], layers: Sequence[Checked], reader: LayerReader) -> None:
    for name, server in tree["mcp_servers"].items():
        if (reason := mcp_server_problem(server)) is not None:
            # The likeliest reason is a mistyped `command`.
            reader.raise_unknown(("mcp_servers", name))
            where = _where(("mcp_servers", name), layers)
            raise ConfigError(f"cannot use `{dotted(('mcp_servers', name))}` {where}: {reason}")


def _where(path: KeyPath, layers: Sequence[Checked]) -> str:
    """The file and line, or the flag, of a key or table in the highest layer that has it."""
    parent, name = path[:-1], path[-1]
    for layer in reversed(layers):
        table: Any = layer.tree
        for key in parent:
            table = table.get(key, {})
        if name in table:
            return layer.source.where(path)
    return ""
