"""The offline model as a server: what it speaks, and what it does with those who do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from codex_py.offline.server import BODY_LIMIT, OfflineModel
from codex_py.offline.stream import MODEL_NAME
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


async def test_it_lists_its_one_model() -> None:
    async with client() as http:
        answer = await http.get("/models")

    assert [model["id"] for model in answer.json()["data"]] == ["offline-rules"]


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


async def test_without_stream_the_response_comes_whole() -> None:
    async with client() as http:
        answer = (await http.post("/responses", json=body("hello", stream=False))).json()

    assert (answer["object"], answer["status"], len(answer["output"])) == ("response", "completed", 1)


async def test_input_may_be_a_plain_string() -> None:
    async with client() as http:
        answer = await http.post("/responses", json={"input": "hello", "stream": False})

    assert "Hello." in answer.json()["output"][0]["content"][0]["text"]


async def test_one_connection_serves_many_requests() -> None:
    async with OfflineModel() as model:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(model.base_url.split(":")[2].split("/")[0]))
        for _ in range(3):
            writer.write(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            assert json.loads(await reader.readexactly(length))["object"] == "list"
        writer.close()


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


ODD_FIELDS: list[dict[str, Any]] = [
    {"input": []},
    {"input": [{"type": "message", "role": "user", "content": []}]},
    {"input": [{"type": "message", "role": "user", "content": [1, None, {"type": "input_image"}]}]},
    {"input": [{"type": 7, "role": ["user"]}]},
    {
        "input": [
            {"type": "function_call_output", "call_id": {"a": 1}, "output": 5},
            {"role": "user", "content": "hello"},
        ]
    },
    {"tools": [1, None, {"name": 5}]},
    {"text": 5},
    {"text": {"format": {"type": "json_schema", "schema": 5}}},
    {"model": None, "instructions": 5, "stream": True},
]


@pytest.mark.parametrize("fields", ODD_FIELDS)
async def test_odd_fields_are_lived_with(fields: dict[str, Any]) -> None:
    async with client() as http:
        answer = await http.post("/responses", json=body("hello", **fields))

    assert answer.status_code == 200
    assert events_of(answer.text)[-1]["type"] == "response.completed"


async def test_sixty_four_megabytes_are_too_much() -> None:
    async with client() as http:
        answer = await http.post("/responses", content=b"x" * (64 * 1024 * 1024))
        assert answer.status_code == 413
        assert await still_alive(http)


async def test_a_big_body_within_the_limit_is_read() -> None:
    async with client() as http:
        big = body("hello")
        big["input"].insert(0, user("# AGENTS.md instructions\n" + "x" * (BODY_LIMIT // 8)))
        answer = await http.post("/responses", json=big)

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/responses", 405),
        ("POST", "/v1/models", 405),
        ("DELETE", "/v1/models", 405),
        ("GET", "/", 404),
        ("POST", "/v1/chat/completions", 404),
        ("POST", "/responses", 404),
        ("GET", "/v1/models?client_version=1", 200),
    ],
)
async def test_paths_and_methods_are_told_apart(method: str, path: str, status: int) -> None:
    async with client() as http:
        answer = await http.request(method, str(http.base_url).removesuffix("/v1/") + path, content=b"")

    assert answer.status_code == status
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"\x16\x03\x01\x00\xa5\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /v1/models HTTP/2.0\r\n\r\n", 505),
        (b"GET /v1/models HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /v1/models HTTP/1.1\r\nbad : x\r\n\r\n", 400),
        (b"POST /v1/responses HTTP/1.1\r\n\r\n", 411),
        (b"POST /v1/responses HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"POST /v1/responses HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST /v1/responses HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"POST /v1/responses HTTP/1.1\r\ncontent-length: 99999999999\r\nexpect: 100-continue\r\n\r\n", 413),
        (b"GET /v1/models HTTP/1.1\r\nx: " + b"y" * 200_000 + b"\r\n\r\n", 431),
        (b"GET /v1/models HTTP/1.0\r\n\r\n", 200),
    ],
)
async def test_junk_gets_a_status_and_the_door(raw: bytes, status: int) -> None:
    async with OfflineModel() as model:
        port = int(model.base_url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw)
        answer = await reader.read()
        writer.close()
        async with httpx.AsyncClient(base_url=model.base_url, trust_env=False, verify=False) as http:
            assert await still_alive(http)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"connection: close" in answer


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
