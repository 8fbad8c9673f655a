"""The table of what must be denied, attempted inside every real backend."""

from __future__ import annotations

import os
import sys
from typing import get_args

import pytest

from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.attempts.run import ATTEMPTS
from codex_py.sandbox.backends import BackendName
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.trial import EXCUSED, HOME, SECRETS, UNREADABLE, Outcome, run_trial

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")


def trial(backend: BackendName, network: NetworkAccess = False) -> list[Outcome]:
    return run_trial(
        Sandbox(os.environ, deny_read=UNREADABLE, secrets=SECRETS, home=HOME, backends=(backend,)), network
    )


@pytest.mark.parametrize("network", [False, "loopback"])
@pytest.mark.parametrize("backend", get_args(BackendName))
def test_nothing_succeeds_but_what_is_listed_with_a_reason(backend: BackendName, network: NetworkAccess) -> None:
    outcomes = trial(backend, network)
    assert len(outcomes) > 100
    assert [outcome.name for outcome in outcomes if outcome.is_fault] == []


def test_a_backend_with_namespaces_holds_everything() -> None:
    assert EXCUSED["namespaces"] == {}
    assert [outcome.name for outcome in trial("namespaces") if outcome.refusal is None] == []


def test_the_table_has_no_name_twice_and_every_excuse_is_for_an_attempt() -> None:
    names = [name for name, _ in ATTEMPTS]
    assert len(set(names)) == len(names) > 100
    excused = {name for reasons in EXCUSED.values() for name in reasons}
    assert excused <= {*names, "nothing outside has changed"}
    assert all(reason for reasons in EXCUSED.values() for reason in reasons.values())


def test_some_attempts_are_seen_to_succeed_where_they_can() -> None:
    # Landlock cannot hold these, and there they succeed: elsewhere it is the sandbox that refuses them, no mistake.
    outcomes = {outcome.name: outcome.refusal for outcome in trial("landlock")}
    for name in ("plant a git hook", "move the repository away", "swap a nested repository", "see a process outside"):
        assert outcomes[name] is None, name
