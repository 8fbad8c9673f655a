"""`codex-py models`: what a provider offers, and what is known about each model."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from codex_py.cli import typer_options as options
from codex_py.cli.typer_command import run_command
from codex_py.config.load import ConfigRequest, load_config
from codex_py.config.schema import Config
from codex_py.core.model_connection import login_rules, read_own_catalog
from codex_py.core.model_settings import choose_model
from codex_py.errors import ModelError, UsageError, UserError
from codex_py.model.auth import find_credentials
from codex_py.model.catalog import facts_for
from codex_py.model.model_list import OfferedModel, list_models
from codex_py.model.providers import Provider, resolve_provider
from codex_py.model.renewal import LoginPlace, find_renewal
from codex_py.paths import codex_home
from codex_py.text.sanitize import sanitize_line

_OFFLINE: Final = "offline"
_LOCAL: Final = ("ollama", "lmstudio")
_WIDEST_NAME: Final = 60


class Row(NamedTuple):
    """A model and what is known about it; `window` is in tokens."""

    id: str
    is_configured: bool
    is_known: bool
    window: int | None
    description: str


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py models` with these arguments; give back the exit status."""
    return run_command(models, arguments, name="models")


def models(
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="ID", help="Ask this provider, not the configured one.")
    ] = None,
    oss: Annotated[bool, typer.Option("--oss", help="Ask the server on this machine (Ollama, LM Studio).")] = False,
    local_provider: Annotated[
        str | None, typer.Option("--local-provider", metavar="NAME", help="Which one: ollama or lmstudio.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    overrides: options.Overrides = None,
    profile: options.Profile = None,
    cd: options.WorkingDirectory = None,
) -> int:
    """List the models that the provider offers, with the context window in tokens.

    `*` marks the one that is asked now. What the provider does not say comes from the built-in catalogue; `?` marks
    models that are in neither.
    """
    home = codex_home(os.environ)
    config = _load(home, (cd or Path.cwd()).absolute(), overrides, profile)
    name = provider or _local_name(config, oss, local_provider) or config.model_provider
    if name == _OFFLINE:
        _show([Row("offline-rules", True, True, None, "fixed rules, no AI")], name, as_json=as_json)
        return 0
    chosen = resolve_provider(
        name, configured=config.model_providers, env=os.environ, openai_base_url=config.openai_base_url
    )
    try:
        offered = asyncio.run(_ask(chosen, config, home))
    except ModelError as error:
        hint = None if error.unreachable else "a provider need not list its models; -m takes any name that it knows"
        raise UserError(f"cannot list the models of `{name}`: {error}", hint=hint) from error
    _show(_rows(config, chosen, offered), name, as_json=as_json)
    return 0


def _load(home: Path, cwd: Path, overrides: Sequence[str] | None, profile: str | None) -> Config:
    loaded = load_config(
        ConfigRequest(home=home, cwd=cwd, env=os.environ, overrides=tuple(overrides or ()), profile=profile)
    )
    for warning in loaded.warnings:
        print(sanitize_line(f"warning: {warning}"), file=sys.stderr)
    return loaded.config


def _local_name(config: Config, oss: bool, chosen: str | None) -> str | None:
    if chosen is not None and chosen not in _LOCAL:
        raise UsageError(f"no local provider `{chosen}`", hint="there are `ollama` and `lmstudio`")
    return chosen or ((config.oss_provider or "ollama") if oss else None)


async def _ask(provider: Provider, config: Config, home: Path) -> list[OfferedModel]:
    rules = login_rules(config)
    credentials = find_credentials(provider, env=os.environ, home=home, rules=rules)
    renewal = find_renewal(credentials, LoginPlace(provider, os.environ, home, rules))
    return await list_models(provider, credentials, renewal=renewal)


def _rows(config: Config, provider: Provider, offered: Sequence[OfferedModel]) -> list[Row]:
    configured = choose_model(config, provider)
    catalog = read_own_catalog(config)
    rows: list[Row] = []
    for model in offered:
        facts = facts_for(model.id, overrides=config.models, catalog=catalog)
        window = model.context_window or (facts.context_window if facts.known else None)
        is_configured = model.id in (configured, f"{configured}:latest")
        rows.append(Row(model.id, is_configured, facts.known, window, model.description))
    if rows and not any(row.is_configured for row in rows):
        line = f"note: `{configured}`, which would be asked now, is not among them"
        print(sanitize_line(line), file=sys.stderr)
    return rows


def _show(rows: Sequence[Row], provider: str, *, as_json: bool) -> None:
    if as_json:
        records = [
            {
                "id": row.id,
                "configured": row.is_configured,
                "known": row.is_known,
                "context_window": row.window,
                "description": row.description,
            }
            for row in rows
        ]
        print(json.dumps({"provider": provider, "models": records}, indent=2))
        return
    if not rows:
        print(f"the provider `{provider}` offers no models", file=sys.stderr)
    width = min(max((len(row.id) for row in rows), default=0), _WIDEST_NAME)
    for row in rows:
        mark = "*" if row.is_configured else " " if row.is_known else "?"
        window = f"{row.window:,}" if row.window else ""
        print(sanitize_line(f"{mark} {row.id:<{width}}  {window:>9}  {row.description}".rstrip()))
