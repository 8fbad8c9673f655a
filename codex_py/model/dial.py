"""Connecting: to an address, to whichever address of a name answers first, and through the TLS handshake."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final

from codex_py.model.byte_stream import ByteStream, TlsStream

_NEXT_ADDRESS_SECONDS: Final = 0.25
# Family, kind, protocol, canonical name and address, as `getaddrinfo` gives them.
_Found = tuple[int, int, int, str, tuple[Any, ...]]


async def open_stream(host: str, port: int, tls: ssl.SSLContext | None) -> ByteStream | TlsStream:
    """Connect; with `tls`, as far as a checked certificate.

    Raises `OSError`. Nothing stays open when it fails or is cancelled.
    """
    try:
        stream = await (_to_address(host, port) if _is_address(host) else _to_name(host, port))
    except (UnicodeError, OverflowError) as error:
        # A label or a port that is too large for any address.
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from error
    if tls is None:
        return stream
    try:
        secured = TlsStream(stream, tls, host)
        await secured.run_handshake()
    except BaseException:
        stream.close()
        raise
    return secured


async def _to_address(host: str, port: int) -> ByteStream:
    loop = asyncio.get_running_loop()
    stream = ByteStream(loop)
    try:
        await loop.create_connection(lambda: stream, host, port)
    except BaseException:
        stream.close()
        raise
    return stream


async def _to_name(host: str, port: int) -> ByteStream:
    """Try the addresses in turn, the next one when the one before fails or takes long; the first to answer wins.

    asyncio can do this too, but a cancelled race of its own may lose the socket that had just won.
    """
    addresses = await _addresses(host, port)
    running: set[asyncio.Task[ByteStream | OSError]] = set()
    try:
        while True:
            if addresses:
                running.add(asyncio.create_task(_attempt(addresses.pop(0), port)))
            patience = _NEXT_ADDRESS_SECONDS if addresses else None
            done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                running.remove(task)
                outcome = task.result()
                if isinstance(outcome, ByteStream):
                    return outcome
                if not running and not addresses:
                    raise outcome
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_close_unused_winner)


async def _attempt(address: str, port: int) -> ByteStream | OSError:
    try:
        return await _to_address(address, port)
    except OSError as error:
        return error


def _close_unused_winner(task: asyncio.Task[ByteStream | OSError]) -> None:
    if not task.cancelled() and isinstance(outcome := task.result(), ByteStream):
        outcome.close()


async def _addresses(host: str, port: int) -> list[str]:
    """The addresses of a name, the kinds alternating: one kind may lead nowhere from here."""
    families: dict[int, list[str]] = {}
    for family, _, _, _, address in await _look_up(host, port):
        families.setdefault(family, []).append(str(address[0]))
    return [address for row in zip_longest(*families.values()) for address in row if address is not None]


async def _look_up(host: str, port: int) -> Sequence[_Found]:
    """`getaddrinfo` in a thread that nobody waits for once it is not wanted any more.

    asyncio's own threads are waited for when the loop closes, and a resolver without an answer takes minutes.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[_Found]] = loop.create_future()

    def settle(found: Sequence[_Found], error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def look_up() -> None:
        found: Sequence[_Found] = ()
        failure: Exception | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, OverflowError) as error:
            failure = error
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=look_up, daemon=True).start()
    return await answer


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
