"""How this program was installed, and whether the index it came from has a newer version.

The index is what pip or uv would ask: a variable, a settings file, or PyPI. It is asked only when the user asks.
"""

from __future__ import annotations

import configparser
import os
import platform
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from codex_py import __version__
from codex_py.errors import UserError
from codex_py.model.json_request import JsonRequest, fetch_json
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.value import Value
from codex_py.text.address import shown_url

PACKAGE: Final = "codex-py"
PYPI: Final = "https://pypi.org/simple"

# The simple repository API in its JSON form (PEP 691, with the versions of PEP 700).
_SIMPLE_JSON: Final = "application/vnd.pypi.simple.v1+json"
_INDEX_VARIABLES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_SECONDS: Final = 15.0


class Installation(Value):
    """`source` is the directory or repository that it was installed from; None when it came from an index.

    `upgrade` is the command that installs a newer version.
    """

    installer: str
    directory: Path
    source: str | None
    upgrade: str


def find_installation() -> Installation:
    """Read it from the metadata of the installed package, or from where this module is when there is none."""
    directory = Path(__file__).resolve().parents[1]
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        return Installation(installer="", directory=directory, source=str(directory.parent), upgrade="git pull")
    installer = (package.read_text("INSTALLER") or "").strip()
    source = _source(package)
    return Installation(
        installer=installer, directory=directory, source=source, upgrade=_upgrade_command(installer, source)
    )


def describe_installation(env: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
    """What a bug report needs: versions and paths, as pairs of a label and a text."""
    installation = find_installation()
    yield "codex-py", __version__
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "installed in", str(installation.directory)
    if installation.installer:
        yield "installed by", installation.installer
    yield "installed from", installation.source or shown_url(find_index(env))
    yield "CODEX_HOME", str(home)


def find_index(env: Mapping[str, str]) -> str:
    """The address of the package index that pip or uv would use here."""
    for name in _INDEX_VARIABLES:
        if env.get(name):
            return env[name].rstrip("/")
    return (_uv_tool_index() or _pip_index(env) or PYPI).rstrip("/")


async def newest_version(index: str) -> str | None:
    """The newest final version that the index has; None when it does not know the package.

    Raises `UserError` when the index does not answer, or in no form that is understood.
    """
    request = JsonRequest(url=f"{index}/{PACKAGE}/", headers={"accept": _SIMPLE_JSON}, seconds=_SECONDS)
    answer = await fetch_json(request)
    if answer.status == 404:
        return None
    versions = [text for text in as_list(answer.body.get("versions")) if isinstance(text, str)]
    final = [text for text in versions if _numbers(text)]
    if not answer.is_success or not final:
        what = f"status {answer.status}" if not answer.is_success else "no list of versions"
        raise UserError(f"cannot ask `{shown_url(index)}` for versions: {what}", status=1)
    return max(final, key=_numbers)


def is_newer(version: str, than: str) -> bool:
    """Whether a final version comes after another one, which may be a development version such as `1.2.0.dev0`."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", than)
    release = found[0] if found else ""
    return (_numbers(version), 1) > (_numbers(release), int(release == than))


def _source(package: Distribution) -> str | None:
    """The address in `direct_url.json` (PEP 610); files without their scheme."""
    text = package.read_text("direct_url.json")
    if text is None:
        return None
    url = as_object(decode_json(text)).get("url")
    return shown_url(url).removeprefix("file://") if isinstance(url, str) else None


def _upgrade_command(installer: str, source: str | None) -> str:
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool upgrade {PACKAGE}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx upgrade {PACKAGE}"
    pip = f"uv pip install --python {sys.executable}" if installer == "uv" else f"{sys.executable} -m pip install"
    return f"{pip} --upgrade {source or PACKAGE}"


def _uv_tool_index() -> str | None:
    """The package index that `uv tool install` recorded."""
    with suppress(OSError, tomllib.TOMLDecodeError):
        receipt: dict[str, Any] = tomllib.loads((Path(sys.prefix) / "uv-receipt.toml").read_text())
        for entry in as_list(as_object(as_object(receipt.get("tool")).get("options")).get("index")):
            url = as_object(entry).get("url")
            if isinstance(url, str):
                return url
    return None


def _pip_index(env: Mapping[str, str]) -> str | None:
    """`index-url` of pip's own files, in the order in which pip reads them: the last one wins."""
    home = Path(env.get("HOME") or "/")
    config_home = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/pip.conf"), home / ".pip/pip.conf", config_home / "pip/pip.conf", Path(sys.prefix) / "pip.conf"]
    if named := env.get("PIP_CONFIG_FILE"):
        files = [] if named == os.devnull else [*files, Path(named)]
    parser = configparser.RawConfigParser()
    for file in files:
        with suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read_string(file.read_text())
    return parser.get("install", "index-url", fallback=None) or parser.get("global", "index-url", fallback=None)


def _numbers(version: str) -> tuple[int, ...]:
    """A final version as numbers, without zeros at the end; empty for any other, such as `1.0rc1`."""
    parts = version.split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        return ()
    numbers = [int(part) for part in parts]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
