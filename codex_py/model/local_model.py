"""Which model of a local server is asked: one that is there. Nothing is ever downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from codex_py.errors import ModelError, UserError
from codex_py.model.auth import Credentials
from codex_py.model.model_list import OfferedModel, list_models
from codex_py.model.providers import Provider
from codex_py.text.address import shown_url

_PROBE_SECONDS: Final = 5.0
_MAX_SHOWN: Final = 12
_START: Final = {
    "ollama": "start it with `ollama serve`, or see https://ollama.com",
    "lmstudio": "start its server with `lms server start`, or see https://lmstudio.ai",
}
_FETCH: Final = {"ollama": "ollama pull", "lmstudio": "lms get"}


class LocalChoice(NamedTuple):
    """The model to ask; `notice` tells a user who named none, `context_window` is what the server says."""

    model: str
    notice: str | None = None
    context_window: int | None = None


async def choose_local_model(provider: Provider, *, requested: str, default: str, insist: bool) -> LocalChoice:
    """The model that is `requested`; when the user does not `insist` on it, also the default one or another.

    Raises `UserError` when no server answers or it does not have the model. A server that does not list its models is
    taken at its word later.
    """
    try:
        offered = await list_models(provider, Credentials(), seconds=_PROBE_SECONDS)
    except ModelError as error:
        if error.unreachable:
            raise UserError(
                f"no {provider.name} server answers at `{shown_url(provider.base_url)}`",
                hint=f"{_START.get(provider.id, 'start it')}; `CODEX_OSS_BASE_URL` names another address",
            ) from error
        return LocalChoice(requested)
    if found := _find(offered, requested):
        return LocalChoice(requested, context_window=found.context_window)
    if not insist:
        other = _find(offered, default) or next((model for model in offered if "embed" not in model.id.lower()), None)
        if other is not None:
            notice = f"{provider.name} does not have `{requested}`: `{other.id}` is asked; choose another one with -m"
            return LocalChoice(other.id, notice, other.context_window)
    raise _missing(provider, requested, offered)


def _find(offered: Sequence[OfferedModel], name: str) -> OfferedModel | None:
    # Ollama calls the usual variant of a model `latest`, and lets one leave that out.
    spellings = {name, f"{name}:latest"}
    return next((model for model in offered if model.id in spellings), None)


def _missing(provider: Provider, name: str, offered: Sequence[OfferedModel]) -> UserError:
    fetch = f"`{_FETCH[provider.id]} {name}` fetches it" if provider.id in _FETCH else "choose one with -m"
    if not offered:
        return UserError(f"{provider.name} has no model at all", hint=fetch)
    shown = ", ".join(f"`{model.id}`" for model in offered[:_MAX_SHOWN])
    left = f" and {len(offered) - _MAX_SHOWN} more" if len(offered) > _MAX_SHOWN else ""
    return UserError(f"{provider.name} does not have the model `{name}`: it has {shown}{left}", hint=fetch)
