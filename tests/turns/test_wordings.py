"""Refusals, ends and arguments in the words of many servers: what each means for the turn. Sources beside the rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_chat import FakeChat, chunk, done
from tests.support.fake_chat import answer as chat_answer
from tests.support.fake_messages import FakeMessages, says, thinks
from tests.support.fake_messages import answer as messages_answer
from tests.support.fake_responses import FakeResponses, api_error, fake_model, reasoning, say
from tests.support.home import Place
from tests.support.process import run
from tests.support.script import Answer, status
from tests.support.session import scripted_session, watched_session
from tests.support.wire_dialects import CHAT, DIALECTS, MESSAGES, RESPONSES, Dialect, shell

OTHER = ("model=some-model",)
every_wire = pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)


def error(message: str, **fields: Any) -> Any:
    return {"error": {"message": message, **fields}}


def with_summary(wire: Dialect, *before: Any) -> FakeResponses:
    """A server that says one thing, then these, then a summary, after which the history is another, and `done`."""
    excuse = set[str]() if wire is CHAT else {"messages", "replay", "prefix"}

    def summary(_: Any) -> Any:
        if isinstance(model, FakeChat | FakeMessages):
            model.forget_prefix()
        return wire.say("the summary")

    model = wire.server(wire.say("one"), *before, summary, wire.say("done"), excuse=excuse)
    return model


TOO_LONG = [
    # ai.google.dev, and google-gemini/gemini-cli#11916: in an array of one.
    (400, json.dumps([error("The input token count (218152) exceeds the maximum number of tokens allowed (65536).")])),
    # Google's limit on bytes.
    (400, error("Request payload size exceeds the limit: 20971520 bytes.", status="INVALID_ARGUMENT")),
    # lmstudio-ai/lmstudio-bug-tracker#237
    (
        400,
        {
            "error": "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded "
            "with context length of only 4096 tokens, which is not enough."
        },
    ),
    (400, {"error": "The number of tokens to keep from the initial prompt is greater than the context length."}),
    # ollama/ollama, and its cloud
    (400, {"error": "prompt too long; exceeded max context length by 200 tokens"}),
    (400, error("the input length exceeds the context length")),
    # vllm-project/vllm#12165, #33418 and its `serving_engine`
    (400, error("The prompt (total length 25938) is too long to fit into the model (context length 4096).")),
    (400, {"object": "error", "message": "The decoder prompt (length 8357) is longer than the maximum model length."}),
    (400, error("You passed 8193 input tokens. However, the model's context length is only 8192 tokens.")),
    # docs.x.ai
    (
        400,
        {
            "code": "invalid-argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        },
    ),
    # platform.moonshot.ai
    (400, error("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)")),
    # docs.z.ai, error 1261
    (400, error("Prompt exceeds max length", code="1261")),
    # sgl-project/sglang, and getkimchi/kimchi#794
    (400, error("The input (1492905 tokens) is longer than the model's context length (1048576 tokens).")),
    (400, error("Input length (265330 tokens) exceeds the maximum allowed length (262138 tokens).")),
    # docs.aws.amazon.com/bedrock
    (400, {"message": "Input is too long for requested model."}),
    (400, {"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length."}),
    # openrouter.ai/docs/errors: what the server behind it says is in the metadata.
    (400, error("Provider returned error", metadata={"raw": '{"message":"prompt is too long: 210000 tokens"}'})),
    (400, error("This endpoint's maximum context length is 128000 tokens. However, you requested about 140000.")),
    # docs.together.ai, of text-generation-inference
    (422, error("Input validation error: `inputs` must have less than 32768 tokens. Given: 40000")),
    # console.groq.com and inference-docs.cerebras.ai
    (400, error("Please reduce the length of the messages or completion.")),
    # QwenLM/qwen-code#98
    (400, error("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]")),
    # platform.minimaxi.com
    (400, error("invalid params, context window exceeds limit (2013)")),
    # docs.mistral.ai
    (400, {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}),
    # docs.github.com/copilot, and the models of GitHub
    (400, error("prompt token count of 200000 exceeds the limit of 128000")),
    (413, error("Request body too large for gpt-4o model. Max size: 8000 tokens.", code="tokens_limit_reached")),
    # ggml-org/llama.cpp, which answers 400 or 500
    (500, error("the request exceeds the available context size, try increasing it")),
    # A proxy such as nginx.
    (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    (413, ""),
]


@pytest.mark.parametrize(("code", "body"), TOO_LONG, ids=range(len(TOO_LONG)))
async def test_a_request_that_is_too_long_is_compacted(place: Place, code: int, body: Any) -> None:
    with with_summary(CHAT, status(code, body)) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="chat") as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert (ended.last_message, len(watched.of(events.CompactionStarted))) == ("done", 1)


@every_wire
async def test_every_wire_compacts(place: Place, wire: Dialect) -> None:
    with with_summary(wire, status(413, "Payload Too Large")) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api=wire.wire) as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert len(watched.of(events.CompactionStarted)) == 1


OTHER_LIMITS = [
    # platform.openai.com/docs/guides/rate-limits
    (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 5000.", "rate_limit"),
    (400, "tokens per minute exceeded", "internal"),
    # docs.anthropic.com/en/api/rate-limits
    (429, "This request would exceed your organization's rate limit of 30,000 input tokens per minute", "rate_limit"),
    # docs.aws.amazon.com/bedrock: throttling
    (400, "Too many tokens, please wait before trying again.", "internal"),
    # ai.google.dev/gemini-api/docs/rate-limits
    (400, "Quota exceeded for metric: free_tier_input_token_count, limit: 250000", "internal"),
    (400, "Your daily token limit was exceeded by this prompt", "internal"),
    # platform.openai.com: one part of a request
    (400, "Invalid 'tools[0].function.description': string too long. Expected a maximum length of 1024", "internal"),
    (400, "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64", "internal"),
    (400, "Invalid 'tools': array too long. Expected an array with maximum length 128", "internal"),
    (400, "temperature: Input should be less than or equal to 1", "internal"),
    # golang: a deadline is no window
    (400, "context deadline exceeded", "internal"),
    # docs.anthropic.com: accounts
    (400, "The long context beta is not yet available for this subscription.", "internal"),
    (403, "The prompt is too long for your plan", "auth"),
]


@pytest.mark.parametrize(("code", "words", "failure"), OTHER_LIMITS)
async def test_another_limit_is_no_reason_to_compact(place: Place, code: int, words: str, failure: str) -> None:
    refusal = api_error(code, words, headers={"retry-after": "86400"})
    async with scripted_session(place, [say("one")], refusal, overrides=OTHER) as (_, watched):
        await watched.say("first")
        ended = await watched.say("second")
    assert isinstance(ended, events.TurnFailed)
    assert (ended.failure, watched.of(events.CompactionStarted)) == (failure, [])


ANSWER_LIMITS = [
    # platform.openai.com, and diffbot/code-gpt-docs#284
    "max_tokens is too large: 32768. This model supports at most 4096 completion tokens, whereas you provided 32768.",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    # api-docs.deepseek.com
    "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    # dashscope
    "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
    # console.groq.com
    "`max_completion_tokens` must be less than or equal to `8192`, the maximum value for this model",
    # vllm-project/vllm#33418
    "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 8192 tokens "
    "and your request has 1210 input tokens.",
    # text-generation-inference
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 120 `inputs` tokens and 32768",
    # Google
    "Unable to submit request because it has a maxOutputTokens value of 32768 but the supported range is from 1",
    # docs.x.ai, Cohere and Bedrock
    "The maximum output tokens you requested exceeds the model limit of 4096",
    "max tokens must be less than 4096",
    "The number of completion tokens requested is above the limit",
]


@pytest.mark.parametrize("words", ANSWER_LIMITS)
async def test_a_refused_output_limit_is_not_sent_again(place: Place, words: str) -> None:
    script: list[Any] = [api_error(400, words), CHAT.say("done")]
    with FakeChat(*script) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="chat") as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert ["max_tokens" in body for body in model.bodies] == [True, False]


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        # docs.anthropic.com
        ("max_tokens: 32768 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku", 4096),
        ("max_tokens: 32,768 > 16,000, which is the maximum allowed number of output tokens", 16_000),
        # api-docs.deepseek.com/guides/anthropic_api
        ("the valid range of max_tokens is [1, 8192]", 8192),
        # Without a number the usual limit is sent.
        ("max_tokens is too large", 8192),
    ],
)
async def test_the_messages_api_is_sent_the_limit_that_it_names(place: Place, words: str, limit: int) -> None:
    refusal = api_error(400, words, kind="invalid_request_error")
    with FakeMessages(refusal, MESSAGES.say("done"), MESSAGES.say("more")) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="messages") as watched:
            ended = await watched.say("go")
            await watched.say("on")
    assert isinstance(ended, events.TurnCompleted)
    assert [body["max_tokens"] for body in model.bodies] == [32_768, limit, limit]


REFUSED_THINKING = [
    # anthropics/anthropic-sdk-python#1598, and lbjlaq/Antigravity-Manager#498
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    # kaitranntt/ccs#415
    "messages.1.content.0: Invalid signature in thinking block",
    "messages.1.content.0.thinking.signature: Field required",
    # docs.anthropic.com/en/docs/build-with-claude/extended-thinking
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    "messages.1.content.0.thinking: each thinking block must contain thinking",
    # Servers that copy the API with pydantic or serde
    "messages.1.content.0: Input tag 'thinking' found using 'type' does not match any of the expected tags: 'text'",
    "messages[1].content[0]: unknown variant `thinking`, expected `text`",
    "messages.1.content.0: thinking: Extra inputs are not permitted",
    "Unsupported content type: thinking",
    "Thinking content blocks are not supported by this model",
    # lbjlaq/Antigravity-Manager#3342
    "Invalid thought signature.",
    "Corrupted thought signature.",
]


@pytest.mark.parametrize("words", REFUSED_THINKING)
async def test_refused_thinking_blocks_are_left_out(place: Place, words: str) -> None:
    first = messages_answer(thinks("hm"), says("one"))
    with FakeMessages(first, api_error(400, words), MESSAGES.say("two"), excuse={"messages", "prefix"}) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="messages") as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert ['"type": "thinking"' in json.dumps(body["messages"]) for body in model.bodies] == [False, True, False]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        # community.openai.com, and the reference of the Responses API
        (400, "The encrypted content gAAA could not be verified. Reason: it could not be decrypted or parsed."),
        (400, "Item 'rs_1' of type 'reasoning' was provided without its required following item."),
        (404, "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."),
        # Servers that copy the API
        (400, "unknown item type: reasoning items are not supported"),
        (422, "encrypted_content: extra inputs are not permitted"),
    ],
)
async def test_refused_reasoning_items_are_left_out(place: Place, code: int, words: str) -> None:
    script = [[reasoning("SEALED"), say("one")], api_error(code, words), [say("two")], [say("three")]]
    async with scripted_session(place, *script, excuse={"prefix", "replay"}) as (model, watched):
        await watched.say("first")
        ended = await watched.say("second")
        await watched.say("third")
    assert isinstance(ended, events.TurnCompleted)
    assert ["SEALED" in json.dumps(request.body) for request in model.requests] == [False, True, False, False]


@pytest.mark.parametrize(
    "words",
    [
        "property 'reasoning_content' is unsupported",  # console.groq.com
        "messages[1]: unknown field `reasoning_content`",  # serde
        "Extra inputs are not permitted: messages.2.assistant.reasoning_content",  # docs.mistral.ai
        "thinking is not accepted in assistant messages",
    ],
)
async def test_reasoning_that_a_chat_server_refuses_is_left_out(place: Place, words: str) -> None:
    place.write("a.txt", "a")
    first = chat_answer(calls=[shell("c1", "cat a.txt")], reasoning="let me see")
    with FakeChat(first, api_error(400, words), CHAT.say("two"), excuse={"chat"}) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="chat") as watched:
            ended = await watched.say("first")
    assert isinstance(ended, events.TurnCompleted)
    assert ["let me see" in json.dumps(body["messages"]) for body in model.bodies] == [False, True, False]


CUT = [
    ("chat", "length"),  # platform.openai.com
    ("chat", "max_tokens"),  # DeepSeek behind Bedrock, Cohere
    ("chat", "MAX_TOKENS"),  # ai.google.dev
    ("chat", "model_length"),  # docs.mistral.ai
    ("chat", "max_length"),
    ("chat", "token_limit"),  # IBM watsonx
    ("chat", "truncated"),
    ("messages", "max_tokens"),  # docs.anthropic.com
    ("messages", "length"),  # Proxies of chat servers
    ("messages", "max_output_tokens"),
    ("responses", "max_output_tokens"),  # platform.openai.com
    ("responses", "max_tokens"),  # openrouter.ai
    ("responses", "length"),
]


def ended_by(wire: str, reason: str) -> Any:
    match wire:
        case "chat":
            return [chunk({"content": "half"}), chunk(finish=reason), *done()]
        case "messages":
            return messages_answer(says("half"), stop=reason)
        case _:
            response = {"id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": reason}}
            return [say("half"), {"type": "response.incomplete", "response": response}]


@pytest.mark.parametrize(("wire", "reason"), CUT)
def test_an_answer_that_was_cut_off_is_a_failed_run(place: Place, wire: str, reason: str) -> None:
    dialect = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}[wire]
    with dialect.server(ended_by(wire, reason)) as model:
        place.use_model(model.base_url, wire_api=wire)
        ended = run(place, "exec", "--json", "-m", "some-model", "go")
    failed = ended.events[-1]
    assert (ended.status, failed["type"], failed["error"]["code"]) == (65, "turn.failed", "context_length")
    assert "the limit of 32,768 output tokens" in failed["error"]["message"]


@pytest.mark.parametrize("wire", ["chat", "messages", "responses"])
# turnstonelabs/turnstone#1162, earendil-works/pi#2700, and LiteLLM
@pytest.mark.parametrize("reason", ["model_context_window_exceeded", "context_length_exceeded"])
async def test_an_answer_that_filled_the_window_leads_to_a_compaction(place: Place, wire: str, reason: str) -> None:
    dialect = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}[wire]
    with with_summary(dialect, ended_by(wire, reason)) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api=wire) as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert len(watched.of(events.CompactionStarted)) == 1


GOOD = '{"cmd":"printf %s it-ran","login":false}'
ARGUMENTS = [
    "{}" + GOOD,  # BerriAI/litellm: the empty object of the block's start, then the fragments
    "null" + GOOD,  # vllm-project/vllm
    "{} " + GOOD + "\n",
    json.dumps(GOOD),  # vllm-project/vllm#54964, tailcallhq/forgecode#2764
    json.dumps(json.dumps(GOOD)),
    f"```json\n{GOOD}\n```",  # earendil-works/pi#8858
    f"```\n{GOOD}```",
    GOOD[:-1] + ",}",  # ollama/ollama
    GOOD[:-1] + " ,\n}",
    GOOD + GOOD,  # The whole once more at the end
    GOOD + "{}",
    '""' + GOOD,
    json.dumps(f"```json\n{GOOD}\n```"),
]


@every_wire
@pytest.mark.parametrize("arguments", ARGUMENTS)
async def test_arguments_with_one_reading_run(place: Place, wire: Dialect, arguments: str) -> None:
    with wire.server(wire.answer("", [("c1", "exec_command", arguments)]), wire.say("done")) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api=wire.wire) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert wire.asked(model.requests[1]) == {"c1": "it-ran"}


@pytest.mark.parametrize(("field", "words"), [(json.loads(GOOD), "it-ran"), (None, "cmd")])
async def test_arguments_that_are_no_text_are_read(place: Place, field: Any, words: str) -> None:
    made = {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": field}
    with FakeResponses([{"type": "response.output_item.done", "item": made}], [say("done")]) as model:
        async with watched_session(place, model, overrides=OTHER) as watched:
            await watched.say("go")
    assert words in model.requests[1].output_of("c1")


@pytest.mark.parametrize(
    "arguments",
    [GOOD + '{"cmd":"echo other"}', f"[{GOOD}]", '"words"', GOOD[:-1], "{} and then", "```json\n[]\n```"],
)
async def test_arguments_with_more_readings_or_none_do_not_run(place: Place, arguments: str) -> None:
    with FakeResponses([*RESPONSES.answer("", [("c1", "exec_command", arguments)])], [say("done")]) as model:
        async with watched_session(place, model, overrides=OTHER) as watched:
            await watched.say("go")
    assert "failed to parse function arguments" in model.requests[1].output_of("c1")


def test_the_message_names_the_limit_of_the_server(place: Place) -> None:
    refusal: Answer = api_error(400, "This model's maximum context length is 8192 tokens.")
    with fake_model(place, refusal):
        ended = run(place, "exec", "go")
    assert (ended.status, "8192 tokens" in ended.err) == (65, True)
