"""The probes of `codex-py doctor`, without a sandbox and in each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Final

import pytest

from codex_py.sandbox.linux import BACKENDS, BackendName
from codex_py.sandbox.probes import KNOWN_LIMITS, PROBES, open_target, probe_argv, run_probes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the probes are for Linux")

# What not every user may do, and not every kernel allows.
NOT_EVERYWHERE: Final = {"mount a file system", "make a user namespace", "trace a process outside"}


def test_every_probe_succeeds_where_no_sandbox_is() -> None:
    # Otherwise a refusal would prove nothing.
    with open_target() as target:
        ran = subprocess.run(probe_argv(target), cwd=target.work, stdout=subprocess.PIPE, check=True)
    refusals = json.loads(ran.stdout)
    assert {name for name, refusal in refusals.items() if refusal is not None} <= NOT_EVERYWHERE
    assert set(refusals) == set(PROBES)


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_probe_is_denied_but_for_the_known_limits(backend: BackendName) -> None:
    outcomes = run_probes(os.environ, backend)
    assert [outcome.name for outcome in outcomes] == list(PROBES)
    allowed = {outcome.name: outcome.limit for outcome in outcomes if outcome.refusal is None}
    assert allowed == KNOWN_LIMITS.get(backend, {})
