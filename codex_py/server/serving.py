"""A server's life at stdin and stdout: it listens until its client goes or a signal comes, and ends in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import Final, Protocol

from codex_py.server.pipes import LineSource, Outbox, complain

_STATUSES: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Service(Protocol):
    """What is served."""

    async def serve(self, source: LineSource) -> None:
        """Take what the client says, until its end."""
        ...

    async def close(self) -> None:
        """End what is under way, in order."""
        ...


async def serve_at_stdio(begin: Callable[[Outbox], Service]) -> int:
    """Serve the client that started this program; the exit status: 0 when it goes, else that of a signal."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[int] = loop.create_future()

    def end(status: int) -> None:
        if not over.done():
            over.set_result(status)

    def lose(reason: str) -> None:
        complain(f"warning: {reason}: ending")
        end(0)

    for number, status in _STATUSES.items():
        loop.add_signal_handler(number, end, status)
    outbox = Outbox(sys.stdout.fileno(), lose)
    service = begin(outbox)
    source = LineSource(sys.stdin.fileno())
    serving = asyncio.create_task(service.serve(source))
    await asyncio.wait([serving, over], return_when=asyncio.FIRST_COMPLETED)
    serving.cancel()
    await asyncio.wait([serving])
    await service.close()
    await outbox.close(source.ended)
    if not serving.cancelled() and (error := serving.exception()) is not None:
        raise error
    return over.result() if over.done() else 0
