"""The lists of models that servers give, each in its own words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.model.json_request import JsonAnswer
from codex_py.model.model_list import OfferedModel, read_models


def read(body: Any) -> list[OfferedModel]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return list(read_models(JsonAnswer(200, {}, body if isinstance(body, dict) else {}, raw)))


@pytest.mark.parametrize(
    ("body", "models"),
    [
        ({"data": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}, [OfferedModel("a"), OfferedModel("b")]),
        ([{"id": "a", "context_length": 4096}], [OfferedModel("a", 4096)]),
        (
            {"models": [{"name": "n"}], "data": [{"id": "d", "meta": {"n_ctx_train": 9, "n_ctx": 8}}]},
            [OfferedModel("d", 8)],
        ),
        ({"data": [{"id": "a", "max_model_len": 32768}]}, [OfferedModel("a", 32768)]),
        ({"data": [{"id": "a", "context_length": "many"}]}, [OfferedModel("a")]),
        ({"data": [{"id": "a", "context_length": True}]}, [OfferedModel("a")]),
        ({"data": [{"id": "a\x1b[31m\u202eb\n"}]}, [OfferedModel("a [31m b")]),
        (
            {"models": [{"model": "q:8b", "size": 5e9, "details": {"parameter_size": "8B"}}]},
            [OfferedModel("q:8b", None, "8B")],
        ),
        (b"\xff\xfe", []),
        (b"[" * 100_000, []),
    ],
)
def test_models_are_found_wherever_a_server_puts_them(body: Any, models: list[OfferedModel]) -> None:
    assert read(body) == models


def test_an_endless_list_is_cut() -> None:
    assert len(read({"data": [{"id": f"m{number}"} for number in range(20_000)]})) == 10_000
