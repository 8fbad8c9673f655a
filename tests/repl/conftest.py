"""A model that plays a script, for a session in a terminal that asks no question about trust."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tests.support.fake_responses import FakeResponses
from tests.support.home import Place
from tests.support.script import Play, Repeat


@contextmanager
def ready_model(
    place: Place, *script: Play | Repeat, top: str = "", tables: str = "", **fake: Any
) -> Generator[FakeResponses]:
    """A fake model, and a place that points at it as `use_and_trust` writes it."""
    with FakeResponses(*script, **fake) as model:
        use_and_trust(place, model, top, tables)
        yield model


def use_and_trust(place: Place, model: FakeResponses, top: str = "", tables: str = "") -> None:
    """Point a place at a model and trust its repository; `top` and `tables` are TOML for the head of config.toml."""
    place.use_model(model.base_url, f'{top}\n[projects."{place.repo}"]\ntrust_level = "trusted"\n{tables}')
