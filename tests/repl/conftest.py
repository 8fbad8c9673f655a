"""A place that is trusted, and a model that plays a script, for a session in a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.fake_responses import FakeResponses
from tests.support.home import Place

Ready = Callable[..., None]


@pytest.fixture
def ready(place: Place) -> Ready:
    """Point the place at a model; what else is given is TOML for the head of config.toml."""

    def point(model: FakeResponses, top: str = "", tables: str = "") -> None:
        trusted = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
        place.use_model(model.base_url, f"{top}\n{trusted}{tables}")

    return point
