"""Waiting for something that may take a while: a note after a moment, and Escape to cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from codex_py.ui.repl.panels.forms import FormAsker, ListForm

T = TypeVar("T")

_AT_ONCE_SECONDS: Final = 0.3


async def waited_for(asker: FormAsker, title: str, work: Awaitable[T], *, about: str) -> T | None:
    """What the work gives, None when the user would not wait for it; raises what it raises.

    Where nothing can be drawn it is waited for in silence.
    """
    working = asyncio.ensure_future(work)
    shown: asyncio.Future[None] | None = None
    try:
        if asker.show is not None and not (await asyncio.wait([working], timeout=_AT_ONCE_SECONDS))[0]:
            notice = ListForm[None](title, (), empty=about, searchable=False)
            shown = asyncio.ensure_future(asker.pick(notice))
            await asyncio.wait([working, shown], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                return None
        return await working
    finally:
        working.cancel()
        if shown is not None:
            shown.cancel()
