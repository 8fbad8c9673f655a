"""What a test run came to: counts, and each failure with its place."""

from __future__ import annotations

from typing import NamedTuple

from codex_py.offline.text import clip, count, ticked

_SHOWN = 30


class Failure(NamedTuple):
    """`line` is 0 where only the file is known, `file` '' where not even that is; `also` is a deeper place."""

    name: str
    file: str = ""
    line: int = 0
    message: str = ""
    also: str = ""


class Verdict(NamedTuple):
    """Counts are None where the runner does not tell them."""

    passed: int | None = None
    failed: int | None = None
    errors: int | None = None
    skipped: int | None = None
    failures: tuple[Failure, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.failures) or any(number is not None for number in self[:4])


def counts_text(verdict: Verdict) -> str:
    """`2 failed, 1 error, 3 passed`; '' when nothing is known."""
    parts = [
        f"{verdict.failed} failed" if verdict.failed is not None else "",
        count(verdict.errors, "error") if verdict.errors else "",
        f"{verdict.passed} passed" if verdict.passed is not None else "",
        f"{verdict.skipped} skipped" if verdict.skipped else "",
    ]
    return ", ".join(part for part in parts if part)


def verdict_lines(verdict: Verdict) -> list[str]:
    """The counts and the failures as Markdown paragraphs."""
    if not verdict.known:
        return []
    lines = [f"Tests: {counts_text(verdict)}."] if counts_text(verdict) else []
    return [*lines, failure_list(verdict)] if verdict.failures else lines


def failure_list(verdict: Verdict) -> str:
    """One numbered line a failure, the place first."""
    lines = [f"{number}. {_failure(failure)}" for number, failure in enumerate(verdict.failures[:_SHOWN], 1)]
    left = len(verdict.failures) - _SHOWN
    return "\n".join([*lines, f"… and {count(left, 'more failure')}"] if left > 0 else lines)


def _failure(failure: Failure) -> str:
    place = f"{failure.file}:{failure.line}" if failure.file and failure.line else failure.file
    parts = [ticked(place)] if place else []
    parts.append(f"{ticked(failure.name)}" + (f": {clip(failure.message, 240)}" if failure.message else ""))
    if failure.also:
        parts.append(f"raised at {ticked(failure.also)}")
    return " — ".join(parts)
