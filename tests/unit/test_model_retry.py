"""How often a request is sent again, and after how long."""

from __future__ import annotations

import pytest

from codex_py.errors import ModelError
from codex_py.model.retry import Retry, RetryBudget


def before(delay: float | None = None) -> ModelError:
    return ModelError("500", retryable=True, retry_after=delay)


def within(delay: float | None = None) -> ModelError:
    return ModelError("cut", retryable=True, retry_after=delay, streaming=True)


UNREACHABLE = ModelError("refused", retryable=True, unreachable=True)


def budget(request: int = 5, stream: int = 5, connect: float | None = 60.0) -> RetryBudget:
    return RetryBudget(request_retries=request, stream_retries=stream, connect_seconds=connect)


def play(plan: RetryBudget, *errors: ModelError) -> list[Retry | None]:
    return [plan.next_delay(error, now=0.0) for error in errors]


@pytest.mark.parametrize("error", [before(), within()])
def test_six_requests_with_doubling_delays_and_no_more(error: ModelError) -> None:
    expected = [Retry(delay, n, 5) for n, delay in enumerate([0.2, 0.4, 0.8, 1.6, 3.2], start=1)]
    assert play(budget(), *[error] * 7) == [*expected, None, None]


def test_failures_of_both_kinds_share_the_six_requests() -> None:
    errors = [before(), within(), within(), before(), within(), before(), within()]
    retries = play(budget(), *errors)
    assert [retry and (retry.attempt, retry.limit) for retry in retries] == [
        (1, 5),
        (2, 5),
        (3, 5),
        (4, 5),
        (5, 5),
        None,
        None,
    ]


def test_each_kind_has_its_own_limit() -> None:
    assert play(budget(request=1, stream=3), before(), before()) == [Retry(0.2, 1, 1), None]
    assert play(budget(request=1, stream=3), within(), before(), within(), within()) == [
        Retry(0.2, 1, 3),
        Retry(0.4, 2, 2),
        Retry(0.8, 3, 3),
        None,
    ]


def test_no_retries_when_there_are_to_be_none() -> None:
    assert play(budget(request=0, stream=0), before(), within()) == [None, None]
    assert play(budget(request=-3, stream=-3), before(), within()) == [None, None]


def test_more_than_a_hundred_count_as_a_hundred() -> None:
    plan = budget(request=10_000)
    retries = play(plan, *[before()] * 101)
    assert retries[-1] is None
    assert all(retry is not None and retry.delay <= 60.0 for retry in retries[:-1])


def test_what_is_final_is_final() -> None:
    assert play(budget(), ModelError("401", retryable=False), ModelError("x", retryable=False, unreachable=True)) == [
        None,
        None,
    ]


def test_jitter_scales_the_back_off_and_not_the_servers_own_delay() -> None:
    plan = budget()
    assert plan.next_delay(before(), now=0.0, jitter=1.1) == Retry(0.2 * 1.1, 1, 5)
    assert plan.next_delay(before(3.0), now=0.0, jitter=0.9) == Retry(3.0, 2, 5)
    assert plan.next_delay(before(0.0), now=0.0, jitter=0.9) == Retry(0.0, 3, 5)


def test_an_unreachable_server_costs_time_and_no_attempts() -> None:
    plan = budget(connect=12.0)
    clock, delays = 100.0, list[float]()
    while (retry := plan.next_delay(UNREACHABLE, now=clock)) is not None:
        assert (retry.attempt, retry.limit) == (len(delays) + 1, None)
        delays.append(retry.delay)
        clock += retry.delay
    assert delays == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 0.8])
    assert play(plan, before()) == [Retry(0.2, 1, 5)]


def test_the_last_attempt_is_made_at_the_end_of_the_time() -> None:
    plan = budget(connect=0.5)
    assert plan.next_delay(UNREACHABLE, now=7.0) == Retry(0.2, 1, None)
    assert plan.next_delay(UNREACHABLE, now=7.25) == Retry(0.25, 2, None)
    assert plan.next_delay(UNREACHABLE, now=7.4999999) is None
    assert budget(connect=0.0).next_delay(UNREACHABLE, now=7.0) is None


def test_slow_attempts_use_up_the_time_as_well() -> None:
    plan = budget(connect=60.0)
    assert plan.next_delay(UNREACHABLE, now=0.0) == Retry(0.2, 1, None)
    assert plan.next_delay(UNREACHABLE, now=61.0) is None


def test_without_a_bound_it_is_tried_for_ever_every_five_seconds() -> None:
    plan = budget(connect=None)
    retries = [plan.next_delay(UNREACHABLE, now=1000.0 * n) for n in range(1000)]
    assert {retry.delay for retry in retries[5:] if retry} == {5.0}
    assert retries[-1] == Retry(5.0, 1000, None)


def test_the_time_starts_again_once_the_server_was_reached() -> None:
    plan = budget(connect=10.0)
    assert plan.next_delay(UNREACHABLE, now=0.0) == Retry(0.2, 1, None)
    assert plan.next_delay(within(), now=9.0) == Retry(0.2, 1, 5)
    assert plan.next_delay(UNREACHABLE, now=18.0) == Retry(0.2, 1, None)
