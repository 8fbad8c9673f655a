"""The offline model as a server for this program's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from codex_py.offline.server import MODEL_NAME, OfflineModel
from tests.unit.test_offline_loop import EXEC, NOTICE, events_of, user


@asynccontextmanager
async def client() -> AsyncGenerator[httpx.AsyncClient, None]:
    # No certificates: those of the machine take longer to load than all requests of a test.
    async with (
        OfflineModel() as model,
        httpx.AsyncClient(base_url=model.base_url, trust_env=False, verify=False, timeout=30) as http,
    ):
        yield http


def body(prompt: str, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL_NAME, "stream": True, "input": [user(prompt)], "tools": [EXEC], **fields}


async def still_alive(http: httpx.AsyncClient) -> bool:
    answer = await http.post("/responses", json=body("hello"))
    return answer.status_code == 200 and NOTICE in answer.text


async def test_an_answer_streams_in_pieces_that_make_the_whole() -> None:
    async with client() as http:
        answer = await http.post("/responses", json=body("hello"))

    events = events_of(answer.text)
    kinds = list(dict.fromkeys(event["type"] for event in events))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    done = next(event["item"] for event in events if event["type"] == "response.output_item.done")
    assert len(deltas) > 5
    assert "".join(deltas) == done["content"][0]["text"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert all(f"event: {event['type']}\n" in answer.text for event in events)


async def test_a_call_streams_and_has_an_id_of_its_own_each_time() -> None:
    async with client() as http:
        first, second = [events_of((await http.post("/responses", json=body("run `ls`"))).text) for _ in range(2)]

    items = [event["item"] for event in first if event["type"] == "response.output_item.done"]
    other = [event["item"] for event in second if event["type"] == "response.output_item.done"]
    assert [(item["type"], item["name"], json.loads(item["arguments"])) for item in items] == [
        (
            "function_call",
            "exec_command",
            {"cmd": "ls", "login": False, "max_output_tokens": 50000, "yield_time_ms": 30000},
        )
    ]
    assert items[0]["call_id"] != other[0]["call_id"]


async def test_usage_counts_what_was_sent_and_what_was_sent_before() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "exec_command", "arguments": '{"cmd":"ls"}'}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
    async with client() as http:
        first = events_of((await http.post("/responses", json=body("hello"))).text)[-1]["response"]["usage"]
        longer = {**body("hello"), "input": [user("x" * 4000), call, output, user("hello")]}
        later = events_of((await http.post("/responses", json=longer)).text)[-1]["response"]["usage"]

    assert first["input_tokens_details"] == {"cached_tokens": 0}
    assert first["total_tokens"] == first["input_tokens"] + first["output_tokens"] > 50
    assert 1000 < later["input_tokens_details"]["cached_tokens"] < later["input_tokens"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"not json",
        b"\xff\xfe\x00",
        b"[]",
        b"1",
        b"null",
        b'{"input": 5}',
        b"{}",
        b'{"input": [1]}',
        b'{"input": [{"type": "message", "content": 5}]}',
        b'{"input": "hello", "tools": {}}',
        b'{"input": NaN}',
        b"[" * 100_000,
        b'{"input":' + b"[" * 100_000,
    ],
)
async def test_a_body_that_is_no_request_is_refused(raw: bytes) -> None:
    async with client() as http:
        answer = await http.post("/responses", content=raw)
        assert answer.status_code == 400
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert await still_alive(http)


async def test_a_big_body_within_the_limit_is_read() -> None:
    async with client() as http:
        big = body("hello")
        big["input"].insert(0, user("# AGENTS.md instructions\n" + "x" * 4_000_000))
        answer = await http.post("/responses", json=big)

    assert answer.status_code == 200


async def test_a_client_that_leaves_in_the_middle_harms_nobody() -> None:
    async with OfflineModel() as model:
        port = int(model.base_url.split(":")[2].split("/")[0])
        for raw in (b"", b"POST /v1/resp", b"POST /v1/responses HTTP/1.1\r\ncontent-length: 100\r\n\r\nhalf"):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(raw)
            writer.close()
        async with httpx.AsyncClient(base_url=model.base_url, trust_env=False, verify=False) as http:
            assert await still_alive(http)


async def test_leaving_ends_idle_connections() -> None:
    async with OfflineModel() as model:
        port = int(model.base_url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /v1/models HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")

    await asyncio.wait_for(reader.read(), 60)
    writer.close()
    with pytest.raises(RuntimeError):
        _ = model.base_url
