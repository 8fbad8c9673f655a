"""The fixture of the attempts: paths that a command may and may not touch, and what listens outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Fixture(NamedTuple):
    """Paths and addresses as an attempt gets them; all plain, so that they travel as JSON.

    `work` is writable and holds a repository, `outside` is not; `secret` and `env_file` must not be read. Nor must
    the login in `home`, replaced once the command runs, and the one in `new_home`, which comes then. `own` is a
    home of ours in `work`, two directories deep, which must not change. `victim` is a process outside; `datagrams`
    is a socket file as `unix_socket` is; `abstract` is the name of a socket without the leading NUL; `shared` is a
    file in the host's shared memory; `terminal` is somebody else's; `mark` is what a process that is left behind is
    known by. Where the machine has no such thing, `tcp6_port` is 0, and `shared` and `terminal` are empty.
    """

    work: str
    outside: str
    secret: str
    env_file: str
    home: str
    new_home: str
    own: str
    victim: int
    tcp_port: int
    tcp6_port: int
    udp_port: int
    unix_socket: str
    datagrams: str
    abstract: str
    shared: str
    terminal: str
    mark: str


Attempt: TypeAlias = Callable[[Fixture], object]


class Refused(Exception):
    """The attempt came to nothing in another way than by an error of the system."""
