"""Reading the output of any test runner: whichever reader recognises its own layout tells."""

from __future__ import annotations

from typing import Final

from codex_py.offline.failures_compiled import read_cargo, read_go
from codex_py.offline.failures_node import read_jest, read_mocha, read_node, read_tap, read_vitest
from codex_py.offline.failures_python import read_pytest, read_unittest
from codex_py.offline.pattern import Pattern
from codex_py.offline.verdict import Verdict

_READERS: Final = (
    read_pytest,
    read_unittest,
    read_cargo,
    read_go,
    read_vitest,
    read_jest,
    read_mocha,
    read_tap,
    read_node,
)
_TEST_COMMAND: Final = Pattern(
    r"\b(?:py\.?test|unittest|(?:npm|yarn|pnpm|bun|deno|cargo|go|make|mvn|gradlew?|mix|dotnet|"
    r"swift) (?:run )?(?:test|check)|"
    r"jest|vitest|mocha|rspec|phpunit|ctest|node --test|tox|nox)\b|(?:^|/)(?:run_?)?tests?(?:\.sh|\.py)?\b"
)
_COLOUR: Final = Pattern(r"\x1b\[[0-9;]{0,20}m")


def looks_like_test_run(command: str) -> bool:
    """Whether a command's output is worth reading as test results."""
    return _TEST_COMMAND.search(command) is not None


def read_verdict(output: str, cwd: str | None) -> Verdict:
    """The counts and failures an output tells; places below `cwd` are given from there. Linear in the output."""
    text = _COLOUR.sub("", output).replace("\r\n", "\n").replace("file://", "")
    if cwd:
        text = text.replace(f"{cwd.rstrip('/')}/", "")
    best = Verdict()
    for read in _READERS:
        verdict = read(text)
        if verdict.failures or (verdict.known and not best.known):
            best = verdict
        if verdict.failures:
            break
    return best
