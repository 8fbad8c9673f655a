"""Opening a session, whoever answers in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from codex_py.core.build import OFFLINE_PROVIDER, SessionRequest, open_session
from codex_py.core.session import Session


@asynccontextmanager
async def opened(request: SessionRequest) -> AsyncGenerator[Session, None]:
    """A session, with the built-in model where that is the provider; closed at the end. Raises `UserError`."""
    if request.loaded.config.model_provider != OFFLINE_PROVIDER:
        async with open_session(request) as session:
            yield session
        return
    from codex_py.offline.server import OfflineModel  # the seam: only for the rules

    async with OfflineModel() as model, open_session(request, offline_url=model.base_url) as session:
        yield session
