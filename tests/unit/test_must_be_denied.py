"""The table of what must be denied, attempted inside every real backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from typing import Final, get_args

import pytest

from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import BackendName
from tests.support.escapes.run import ATTEMPTS
from tests.support.escapes.trial import (
    EXCUSED,
    HOME,
    SECRETS,
    UNREADABLE,
    Outcome,
    change_logins,
    open_fixture,
    run_escape_tests,
    stage_argv,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")


# Without a sandbox these would change the machine the tests run on.
HARMFUL: Final = frozenset(
    (
        "write to the home directory",
        "write to /etc",
        "write to /tmp where it is not writable",
        "write to /var/tmp",
        "write to /sys",
        "mount something",
        "unmount something",
        "move a mount",
        "leave a process behind",
    )
)
# What only root can do, what not every machine has, and what not every kernel lets a user do.
NOT_EVERYWHERE: Final = frozenset(
    (
        "write outside by way of /proc/1/root",
        "read a secret by way of /proc/1/root",
        "read a replaced login by way of /proc/1/root",
        "read a secret by its handle",
        "read shared memory of outside",
        "set an attribute outside",
        "make a device",
        "read a disk",
        "open the kernel's memory",
        "open the kernel's log",
        "open a virtual machine's device",
        "set where core dumps go",
        "set the kernel's module loader",
        "press a system request key",
        "write into the first process",
        "make a user namespace",
        "make a mount namespace",
        "make a network namespace",
        "start a process in a user namespace",
        "start a process in a mount namespace",
        "start a process by clone3",
        "join another namespace",
        "turn the root around",
        "change the root",
        "open a mount tree",
        "make a file system",
        "change a mount",
        "trace another process",
        "take a descriptor from a process",
        "see a process outside",
        "set up an io_uring",
        "load a kernel program",
        "watch performance counters",
        "catch page faults",
        "use the key ring",
        "add a key",
        "push characters into a terminal",
        "push characters into the console",
        "regain capabilities",
        "become another user",
        "set the machine's name",
        "run ahead of others",
        "allow core dumps again",
        "connect to a port over IPv6",
        "make a packet socket",
        "make a raw socket",
        "make a socket to the hypervisor",
        "make a kernel crypto socket",
        "make a Bluetooth socket",
        "make a socket by the x32 convention",
        "make a socket by the 32-bit convention",
    )
)


def unheld(names: Collection[str]) -> dict[str, str | None]:
    """How these attempts end without any sandbox, all in one arena."""
    with open_fixture() as (arena, _), open(f"{arena.outside}/kept", "r+b") as kept:  # noqa: PTH123
        change_logins(arena)
        argv = stage_argv(arena, *names)
        ran = subprocess.run(
            argv, cwd=arena.work, input=b"\n", stdout=subprocess.PIPE, pass_fds=(kept.fileno(),), check=True
        )
    found: dict[str, str | None] = json.loads(ran.stdout.splitlines()[1])
    return found


def trial(backend: BackendName, network: NetworkAccess = False) -> list[Outcome]:
    return run_escape_tests(
        Sandbox(os.environ, deny_read=UNREADABLE, secrets=SECRETS, home=HOME, backends=(backend,)), network
    )


@pytest.mark.parametrize("network", [False, "loopback"])
@pytest.mark.parametrize("backend", get_args(BackendName))
def test_nothing_succeeds_but_what_is_listed_with_a_reason(backend: BackendName, network: NetworkAccess) -> None:
    outcomes = trial(backend, network)
    assert len(outcomes) > 100
    assert [outcome.name for outcome in outcomes if outcome.is_fault] == []


@pytest.mark.parametrize("backend", get_args(BackendName))
def test_an_open_network_opens_no_unix_socket(backend: BackendName) -> None:
    outcomes = {outcome.name: outcome.refusal for outcome in trial(backend, network=True)}
    for name in ("a socket file", "an abstract socket"):
        assert outcomes[f"connect to {name}"] == "EPERM", name
    assert outcomes["send to a socket file from one of a pair"] == "EPERM"
    assert outcomes["connect to a port of the machine"] is None


def test_a_backend_with_namespaces_holds_everything() -> None:
    assert EXCUSED["namespaces"] == {}
    assert [outcome.name for outcome in trial("namespaces") if outcome.refusal is None] == []


def test_the_table_has_no_name_twice_and_every_excuse_is_for_an_attempt() -> None:
    names = [name for name, _ in ATTEMPTS]
    assert len(set(names)) == len(names) > 100
    excused = {name for reasons in EXCUSED.values() for name in reasons}
    assert excused <= {*names, "nothing outside has changed"}
    assert all(reason for reasons in EXCUSED.values() for reason in reasons.values())


def test_every_attempt_succeeds_where_nothing_holds_it() -> None:
    # Else its refusal would prove nothing. Some take away what others need, so those that fail get another arena.
    left = {name for name, _ in ATTEMPTS} - HARMFUL
    while True:
        failed = {name: refusal for name, refusal in unheld(left).items() if refusal is not None}
        if failed.keys() == left:
            break
        left = set(failed)
    assert {name: refusal for name, refusal in failed.items() if name not in NOT_EVERYWHERE} == {}


def test_some_attempts_are_seen_to_succeed_where_they_can() -> None:
    # Landlock cannot hold these, and there they succeed: elsewhere it is the sandbox that refuses them, no mistake.
    outcomes = {outcome.name: outcome.refusal for outcome in trial("landlock")}
    for name in ("plant a git hook", "move the repository away", "swap a nested repository", "see a process outside"):
        assert outcomes[name] is None, name
