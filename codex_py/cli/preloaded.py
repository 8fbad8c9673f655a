"""Loads what tasks of a batch need, into the process that they are forked from; imported there and nowhere else."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import ssl
from contextlib import suppress
from importlib import import_module
from typing import Final

from codex_py.batch.local_engine import SOCKETS_VARIABLE
from codex_py.cli.exec_parser import exec_parser
from codex_py.context.environment import local_timezone
from codex_py.model.prices import TABLE, PriceQuery, PriceTable
from codex_py.model.wires import WIRES
from codex_py.protocol.readable import is_host_text, without_pictures, without_plan_tags
from codex_py.text.credentials import is_secret

_MODULES: Final = (
    *("codex_py.cli.worker", "codex_py.cli.exec", "codex_py.cli.exec_runs"),
    *("codex_py.checkpoints.session", "codex_py.core.resume", "codex_py.core.mentions", "codex_py.core.skill_finder"),
    *("codex_py.core.tool_runtime", "codex_py.skills.scan", "codex_py.shell.reading"),
    *(module for module, _ in WIRES.values()),
    *("codex_py.text.frontmatter", "codex_py.tools.patching"),
    *("concurrent.futures.thread", "importlib.resources", "resource", "termios"),
    *("tree_sitter_bash", "yaml"),
)

# This process ends when the batch does, however that ends; the forks of it leave without this.
if _sockets := os.environ.get(SOCKETS_VARIABLE):
    atexit.register(shutil.rmtree, _sockets, ignore_errors=True)
# Modules stay: to look at them again and again takes longer than to load some.
gc.disable()
# Ctrl-C is for the batch, which ends this process; the library ignores it here once everything is loaded.
_on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
for _name in _MODULES:
    # Each run reports for itself what it misses.
    with suppress(ImportError):
        import_module(_name)
# Every run would set up OpenSSL and compile these patterns for itself.
ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
exec_parser().read(("--artifacts=DIR", "--json", "-"))
local_timezone({"TZ": "UTC"})
is_secret("NAME", "an-example1")
PriceTable.read(TABLE).find(PriceQuery("a model of no provider"))
for _text_of in (is_host_text, without_plan_tags, without_pictures):
    _text_of("<image name=")
# What the collector does not look at stays shared with the forks. There is nothing to collect.
gc.freeze()
gc.enable()
signal.signal(signal.SIGINT, _on_interrupt)
