"""The layers that belong to the user and to the machine: all but the project's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, Final, cast

from codex_py.config.keys import parse_key
from codex_py.config.layers import Checked, Layer, LayerSource, nested
from codex_py.config.overrides import parse_override
from codex_py.config.reader import LayerReader
from codex_py.config.request import ConfigRequest
from codex_py.errors import ConfigError
from codex_py.protocol.encoding import as_object
from codex_py.text.nearest import did_you_mean

_FLAGS = Layer("flags")
_MAX_FLAG_LENGTH = 80
_PROFILE: Final = ".config.toml"


def read_below_project(reader: LayerReader, request: ConfigRequest) -> list[Checked]:
    """System, user and profile, lowest first. Raises `UserError` for a profile that is not there."""
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
    """`-c`, real flags and the managed file, lowest first."""
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


def _read_profile(
    reader: LayerReader, home: Path, name: str, *, legacy: Mapping[str, Any]
) -> tuple[LayerSource, dict[str, Any]]:
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ConfigError(f"not the name of a profile: `{name}`", hint="a profile `x` is the file `x.config.toml`")
    if name != name.strip() or " " in name:
        # What other agents print an answer with.
        raise ConfigError(f"no profile `{name}`", hint=f'`-p` names a profile; for a task: `codex-py exec "{name}"`')
    path = home / f"{name}{_PROFILE}"
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
