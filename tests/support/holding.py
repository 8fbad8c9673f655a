"""What a command of the sandbox must not do, one row each, and the process that tries them all.

Started as a script inside a sandbox: `holding.py`, with rows as JSON on stdin; prints how each ended, in their order.
"""

from __future__ import annotations

import errno
import json
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

# A file or a link that an attempt makes for itself in the working directory.
_OWN: Final = Path("made-by-an-attempt")


class Row(NamedTuple):
    """One attempt: the promise it is about, what is tried, and where."""

    promise: str
    act: str
    path: str


def _write(path: str) -> None:
    with Path(path).open("ab") as file:
        file.write(b"\n# planted\n")


def _make(path: str) -> None:
    Path(path).mkdir()
    Path(path).rmdir()


def _move(path: str) -> None:
    Path(path).rename(f"{path}.moved").rename(path)


def _replace(path: str) -> None:
    """Rename a file of the command's own over one that is there."""
    _OWN.write_bytes(b"# planted\n")
    _OWN.rename(path)


def _write_through_link(path: str) -> None:
    _OWN.symlink_to(Path(path).absolute())
    _write(str(_OWN))


def _write_through_name(path: str) -> None:
    _OWN.hardlink_to(path)
    _write(str(_OWN))


def _read(path: str) -> None:
    if not Path(path).read_bytes():
        raise OSError(errno.ENODATA, "empty")


def _read_through_link(path: str) -> None:
    _OWN.symlink_to(Path(path).absolute())
    _read(str(_OWN))


def _read_through_name(path: str) -> None:
    _OWN.hardlink_to(path)
    _read(str(_OWN))


def _read_through_root(path: str) -> None:
    _read(f"/proc/self/root{Path(path).absolute()}")


def _read_after_moving(path: str) -> None:
    """Move the directory of a file, and read it there."""
    place = Path(path)
    moved = place.parent.rename(f"{place.parent}.moved")
    try:
        _read(str(moved / place.name))
    finally:
        moved.rename(place.parent)


def _connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path.replace("@", "\0"))


def _send(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", path.replace("@", "\0"))


def _listen(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
    Path(path).unlink()


def _reach(port: str) -> None:
    socket.create_connection(("127.0.0.1", int(port)), timeout=20).close()


ACTS: Final[dict[str, Callable[[str], None]]] = {
    "write": _write,
    "make": _make,
    "move": _move,
    "replace": _replace,
    "write through a link": _write_through_link,
    "write through another name": _write_through_name,
    "read": _read,
    "read through a link": _read_through_link,
    "read through another name": _read_through_name,
    "read through /proc": _read_through_root,
    "read after moving": _read_after_moving,
    "connect": _connect,
    "send": _send,
    "listen": _listen,
    "reach": _reach,
}


def attempt(rows: Sequence[Row]) -> list[str]:
    """How each of them ended: `done`, or the name of the error."""
    endings: list[str] = []
    for row in rows:
        try:
            ACTS[row.act](row.path)
        except OSError as error:
            endings.append(errno.errorcode.get(error.errno or 0, type(error).__name__))
        else:
            endings.append("done")
        _OWN.unlink(missing_ok=True)
    return endings


if __name__ == "__main__":
    print(json.dumps(attempt([Row(*row) for row in json.load(sys.stdin)])))
