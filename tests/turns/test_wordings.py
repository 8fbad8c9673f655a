"""Refusals, ends and arguments in the words of many servers: what each means for the turn. Sources beside the rows."""

from __future__ import annotations

import json
import re
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
GITHUB = "https://github.com"
# Wordings of many servers, collected by another agent.
PI = f"{GITHUB}/earendil-works/pi/blob/main/packages/ai/src/utils/overflow.ts"
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


# Where it was seen, the status and the body.
TOO_LONG: list[tuple[str, int, Any]] = [
    # In an array of one.
    (
        f"{GITHUB}/google-gemini/gemini-cli/issues/6678",
        400,
        json.dumps([error("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).")]),
    ),
    (
        f"{GITHUB}/google-gemini/deprecated-generative-ai-android/issues/26",
        400,
        error("Request payload size exceeds the limit: 4194304 bytes.", status="INVALID_ARGUMENT"),
    ),
    (
        f"{GITHUB}/google-gemini/gemini-cli/issues/13776",
        413,
        error(
            "Maximum request body size 1048576 exceeded, actual body size 1056562", status="Request Entity Too Large"
        ),
    ),
    (
        f"{GITHUB}/lmstudio-ai/lmstudio-bug-tracker/issues/237",
        400,
        {
            "error": "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded "
            "with context length of only 4096 tokens, which is not enough."
        },
    ),
    (PI, 400, {"error": "tokens to keep from the initial prompt is greater than the context length"}),
    (PI, 400, {"error": "prompt too long; exceeded max context length by 200 tokens"}),
    (
        f"{GITHUB}/vllm-project/vllm/issues/12165",
        400,
        error(
            "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that "
            "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens."
        ),
    ),
    (
        f"{GITHUB}/xorbitsai/inference/issues/3785",
        400,
        {
            "object": "error",
            "message": "The decoder prompt (length 21535) is longer than the maximum model length of 16384. Make sure "
            "that `max_model_len` is no smaller than the number of text tokens.",
        },
    ),
    (
        f"{GITHUB}/hiyouga/LlamaFactory/issues/7723",
        400,
        error("Prompt length of 5016 is longer than the maximum model length of 4096."),
    ),
    (
        PI,
        400,
        error(
            "This model's maximum context length is 131072 tokens. However, you requested 8192 output tokens and your "
            "prompt contains at least 122881 input tokens"
        ),
    ),
    (
        PI,
        400,
        {
            "code": "invalid-argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        },
    ),
    (PI, 400, error("Your request exceeded model token limit: 262144 (requested: 300000)")),
    (f"{GITHUB}/zeroclaw-labs/zeroclaw/issues/4124", 400, error("Prompt exceeds max length", code="1261")),
    (PI, 400, error("The input (1492905 tokens) is longer than the model's context length (1048576 tokens).")),
    (
        f"{GITHUB}/getkimchi/kimchi/issues/794",
        400,
        error("Input length (265330 tokens) exceeds the maximum allowed length (262138 tokens)."),
    ),
    (PI, 400, error("Input length (265330) exceeds model's maximum context length (262144).")),
    (PI, 400, error("Input length 265330 exceeds the maximum allowed input length of 262112 tokens.")),
    (PI, 400, error("Requested token count exceeds the model's maximum context length of 131072 tokens")),
    (PI, 400, {"message": "Input is too long for requested model."}),
    # What the server behind it says is in the metadata.
    (
        "https://openrouter.ai/docs/api-reference/errors#provider-errors",
        400,
        error("Provider returned error", metadata={"raw": '{"message":"prompt is too long: 213462 tokens"}'}),
    ),
    (
        PI,
        400,
        error("This endpoint's maximum context length is 128000 tokens. However, you requested about 140000 tokens"),
    ),
    (
        f"{GITHUB}/meta-llama/llama/issues/1103",
        422,
        error("Input validation error: `inputs` must have less than 4096 tokens. Given: 4545"),
    ),
    (
        f"{GITHUB}/web-infra-dev/midscene/issues/315",
        422,
        error(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 82004 `inputs` tokens "
            "and 2048 `max_new_tokens`"
        ),
    ),
    (PI, 400, error("Please reduce the length of the messages or completion.")),
    (
        f"{GITHUB}/QwenLM/qwen-code/issues/98",
        400,
        error("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]"),
    ),
    (
        f"{GITHUB}/QwenLM/qwen-code/issues/747",
        400,
        error(
            "String value length (20054016) exceeds the maximum allowed (20000000, from "
            "`StreamReadConstraints.getMaxStringLength()`)"
        ),
    ),
    (PI, 400, error("invalid params, context window exceeds limit (2013)")),
    (PI, 400, {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}),
    (PI, 400, error("prompt token count of 200000 exceeds the limit of 128000")),
    (
        f"{GITHUB}/eslint/tsc-meetings/pull/593",
        413,
        error("Request body too large for gpt-4o model. Max size: 8000 tokens.", code="tokens_limit_reached"),
    ),
    # llama.cpp answers 400 or 500.
    (PI, 500, error("the request exceeds the available context size, try increasing it")),
    (PI, 413, error("Request exceeds the maximum size", type="request_too_large")),
    (PI, 400, error("prompt is too long: 213462 tokens > 200000 maximum")),
    (
        f"{GITHUB}/stackblitz/bolt.new/issues/7414",
        400,
        error(
            "input length and max_tokens exceed context limit: 190402 + 32768 > 204648, decrease input length or "
            "max_tokens and try again"
        ),
    ),
    (f"{GITHUB}/modu-ai/moai-adk/issues/676", 400, error("The model has reached its context window limit.")),
    (
        f"{GITHUB}/ridgesai/ridges-old/pull/75",
        400,
        error("Requested 319487 tokens, max 300000 tokens per request", code="max_tokens_per_request"),
    ),
    # More than the tokens of a whole minute: waiting does not help.
    (
        f"{GITHUB}/vanna-ai/vanna-flask/issues/11",
        429,
        error(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output "
            "tokens must be reduced in order to run successfully.",
            code="rate_limit_exceeded",
        ),
    ),
    (
        "https://nginx.org/en/docs/http/ngx_http_core_module.html#client_max_body_size",
        413,
        "<html><head><title>413 Request Entity Too Large</title></head></html>",
    ),
    (PI, 413, ""),
]


@pytest.mark.parametrize(("source", "code", "body"), TOO_LONG, ids=range(len(TOO_LONG)))
async def test_a_request_that_is_too_long_is_compacted(place: Place, source: str, code: int, body: Any) -> None:
    # Where the limit on the answer may be at fault, the request is sent without it first.
    is_limited = code != 429 and re.search(r"max_(new_)?tokens`? (exceed|must)|output tokens", str(body))
    with with_summary(CHAT, *[status(code, body)] * (2 if is_limited else 1)) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="chat") as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted), source
    assert (ended.last_message, len(watched.of(events.CompactionStarted))) == ("done", 1)


@every_wire
async def test_every_wire_compacts(place: Place, wire: Dialect) -> None:
    with with_summary(wire, status(413, "Payload Too Large")) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api=wire.wire) as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert len(watched.of(events.CompactionStarted)) == 1


# Where it was seen, the status, the words, and which failure it is.
OTHER_LIMITS: list[tuple[str, int, str, str]] = [
    (
        "https://platform.openai.com/docs/guides/rate-limits",
        429,
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 5000.",
        "rate_limit",
    ),
    (
        "https://docs.anthropic.com/en/api/rate-limits",
        429,
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
        "rate_limit",
    ),
    (PI, 400, "ThrottlingException: Too many tokens, please wait before trying again.", "internal"),
    (
        "https://ai.google.dev/gemini-api/docs/rate-limits",
        400,
        "Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, "
        "limit: 250000",
        "internal",
    ),
    (
        f"{GITHUB}/continuedev/continue/issues/11540",
        402,
        "Prompt tokens limit exceeded: 36163 > 29652. To increase, visit https://openrouter.ai/settings/credits and "
        "upgrade to a paid account",
        "quota",
    ),
    # One part of a request
    (
        f"{GITHUB}/rusiaaman/wcgw/issues/51",
        400,
        "Invalid 'tools[5].function.description': string too long. Expected a string with maximum length 1024, but "
        "got a string with length 2357 instead.",
        "internal",
    ),
    (
        f"{GITHUB}/earendil-works/pi/issues/4720",
        400,
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with "
        "length 67 instead.",
        "internal",
    ),
    # A deadline is no window.
    ("https://pkg.go.dev/context#pkg-variables", 400, "context deadline exceeded", "internal"),
]


@pytest.mark.parametrize(("source", "code", "words", "failure"), OTHER_LIMITS)
async def test_another_limit_is_no_reason_to_compact(
    place: Place, source: str, code: int, words: str, failure: str
) -> None:
    refusal = api_error(code, words, headers={"retry-after": "86400"})
    async with scripted_session(place, [say("one")], refusal, overrides=OTHER) as (_, watched):
        await watched.say("first")
        ended = await watched.say("second")
    assert isinstance(ended, events.TurnFailed)
    assert (ended.failure, watched.of(events.CompactionStarted)) == (failure, []), source


ANSWER_LIMITS = [
    (
        f"{GITHUB}/diffbot/code-gpt-docs/issues/284",
        "max_tokens is too large: 32768. This model supports at most 4096 completion tokens, whereas you provided "
        "32768.",
    ),
    (
        "https://platform.openai.com/docs/api-reference/chat/create#chat-create-max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
    (f"{GITHUB}/Wei-Shaw/sub2api/issues/3954", "Unsupported parameter: max_output_tokens"),
    (
        f"{GITHUB}/deepseek-ai/DeepSeek-V3/issues/69",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    ),
    (
        "https://www.alibabacloud.com/help/en/model-studio/error-code",
        "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]",
    ),
    (
        f"{GITHUB}/khoj-ai/khoj/issues/1236",
        "`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens` "
        "is less than the `context_window` for this model",
    ),
    (
        f"{GITHUB}/skapadia3214/groq-moa/issues/8",
        "max_tokens for `llama-3.1-8b-instant` must be less than or equal to 8000",
    ),
    (f"{GITHUB}/Kilo-Org/kilocode/pull/1332", "max_tokens must be less than or equal to 16384"),
    (
        f"{GITHUB}/vllm-project/vllm/issues/33418",
        "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is 8192 "
        "tokens and your request has 1210 input tokens.",
    ),
    (
        f"{GITHUB}/huggingface/chat-ui/issues/340",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and "
        "1024 `max_new_tokens`",
    ),
    (
        f"{GITHUB}/BerriAI/litellm/pull/10548",
        "Unable to submit request because it has a maxOutputTokens value of 65536 but the supported range is from 1 "
        "(inclusive) to 65536 (exclusive). Update the value and try again.",
    ),
    (
        f"{GITHUB}/sigoden/aichat/pull/813",
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that "
        "is lower than 4096.",
    ),
    (f"{GITHUB}/charmbracelet/crush/issues/946", "The maximum tokens you requested exceeds the model limit of 32768"),
]


@pytest.mark.parametrize(("source", "words"), ANSWER_LIMITS)
async def test_a_refused_output_limit_is_not_sent_again(place: Place, source: str, words: str) -> None:
    script: list[Any] = [api_error(400, words), CHAT.say("done")]
    with FakeChat(*script) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="chat") as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert ["max_tokens" in body for body in model.bodies] == [True, False], source


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        # https://docs.anthropic.com/en/api/errors
        ("max_tokens: 32768 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku", 4096),
        # https://github.com/deepseek-ai/DeepSeek-V3/issues/69, whose API speaks this one too
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        # https://github.com/sigoden/aichat/pull/813
        (
            "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value",
            4096,
        ),
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
    (
        f"{GITHUB}/anthropics/anthropic-sdk-python/issues/1598",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (f"{GITHUB}/kaitranntt/ccs/issues/415", "messages.1.content.0: Invalid signature in thinking block"),
    (f"{GITHUB}/lbjlaq/Antigravity-Manager/issues/498", "messages.1.content.0.thinking.signature: Field required"),
    (
        f"{GITHUB}/anthropics/claude-code/issues/63284",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response.",
    ),
    (
        f"{GITHUB}/anthropics/claude-code/issues/2573",
        "messages.1.content.0: When providing `thinking` or `redacted_thinking` blocks, the blocks must match the "
        "parameters during the original request.",
    ),
    (
        "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking",
        "messages.1.content.0.thinking: each thinking block must contain thinking",
    ),
    (
        f"{GITHUB}/anthropics/claude-code/issues/11978",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
        "`tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns.",
    ),
    (f"{GITHUB}/lbjlaq/Antigravity-Manager/issues/3342", "Invalid thought signature."),
    (f"{GITHUB}/lbjlaq/Antigravity-Manager/issues/3342", "Corrupted thought signature."),
    # The errors of pydantic and serde, with which servers read the API's requests.
    (
        "https://docs.pydantic.dev/latest/errors/validation_errors/#union_tag_invalid",
        "messages.1.content.0: Input tag 'thinking' found using 'type' does not match any of the expected tags: 'text'",
    ),
    (
        "https://docs.pydantic.dev/latest/errors/validation_errors/#extra_forbidden",
        "messages.1.content.0: thinking: Extra inputs are not permitted",
    ),
    (
        "https://docs.rs/serde/latest/serde/de/trait.Error.html#method.unknown_variant",
        "messages[1].content[0]: unknown variant `thinking`, expected `text`",
    ),
]


@pytest.mark.parametrize(("source", "words"), REFUSED_THINKING)
async def test_refused_thinking_blocks_are_left_out(place: Place, source: str, words: str) -> None:
    first = messages_answer(thinks("hm"), says("one"))
    with FakeMessages(first, api_error(400, words), MESSAGES.say("two"), excuse={"messages", "prefix"}) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="messages") as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert ['"type": "thinking"' in json.dumps(body["messages"]) for body in model.bodies] == [False, True, False]


REFUSED_ITEMS = [
    (
        f"{GITHUB}/NousResearch/hermes-agent/pull/33035",
        400,
        "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
    ),
    (
        f"{GITHUB}/anomalyco/opencode/issues/5104",
        400,
        "The encrypted content for item rs_0f26baa4a8bfec6b0169326d7c20a8819499e6d836076cc00b could not be verified.",
    ),
    (
        f"{GITHUB}/openai/openai-agents-python/issues/919",
        404,
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try again with `store` "
        "set to true, or remove this item from your input.",
    ),
    (
        "https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context",
        400,
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    (f"{GITHUB}/OpenHands/software-agent-sdk/pull/1208", 400, "Encrypted content is not supported with this model."),
    (
        "https://docs.pydantic.dev/latest/errors/validation_errors/#extra_forbidden",
        422,
        "encrypted_content: Extra inputs are not permitted",
    ),
]


@pytest.mark.parametrize(("source", "code", "words"), REFUSED_ITEMS)
async def test_refused_reasoning_items_are_left_out(place: Place, source: str, code: int, words: str) -> None:
    script = [[reasoning("SEALED"), say("one")], api_error(code, words), [say("two")], [say("three")]]
    async with scripted_session(place, *script, excuse={"prefix", "replay"}) as (model, watched):
        await watched.say("first")
        ended = await watched.say("second")
        await watched.say("third")
    assert isinstance(ended, events.TurnCompleted)
    assert ["SEALED" in json.dumps(request.body) for request in model.requests] == [False, True, False, False]


FORBIDDEN = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
REFUSED_REASONING: list[tuple[str, int, Any]] = [
    (
        f"{GITHUB}/SimonSchubert/Kai/issues/265",
        400,
        error(
            "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property "
            "'reasoning_content' is unsupported)]"
        ),
    ),
    (
        f"{GITHUB}/Kilo-Org/kilocode/issues/10375",
        400,
        {
            "message": "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is "
            "unsupported",
            "type": "invalid_request_error",
            "code": "wrong_api_format",
        },
    ),
    (
        f"{GITHUB}/charmbracelet/crush/issues/1590",
        422,
        {"detail": [{**FORBIDDEN, "loc": ["body", "messages", 2, "assistant", "reasoning_content"], "input": "hm"}]},
    ),
    (
        f"{GITHUB}/BerriAI/litellm/issues/30835",
        422,
        {"detail": [{**FORBIDDEN, "loc": ["body", "messages", 1, "assistant", "reasoning_content"]}]},
    ),
    (
        f"{GITHUB}/earendil-works/pi/issues/4514",
        400,
        error(
            "Error from provider: Extra inputs are not permitted, field: 'messages[2].reasoning_content', value: 'Now'"
        ),
    ),
    (
        "https://docs.rs/serde/latest/serde/de/trait.Error.html#method.unknown_field",
        400,
        error("messages[2]: unknown field `reasoning_content`, expected one of `role`, `content`"),
    ),
]


@pytest.mark.parametrize(("source", "code", "body"), REFUSED_REASONING, ids=range(len(REFUSED_REASONING)))
async def test_reasoning_that_a_chat_server_refuses_is_left_out(
    place: Place, source: str, code: int, body: Any
) -> None:
    place.write("a.txt", "a")
    first = chat_answer(calls=[shell("c1", "cat a.txt")], reasoning="let me see")
    with FakeChat(first, status(code, body), CHAT.say("two"), excuse={"chat"}) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api="chat") as watched:
            ended = await watched.say("first")
    assert isinstance(ended, events.TurnCompleted), source
    assert ["let me see" in json.dumps(body["messages"]) for body in model.bodies] == [False, True, False]


CUT = [
    ("https://platform.openai.com/docs/api-reference/chat/object", "chat", "length"),
    ("https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html", "chat", "max_tokens"),
    ("https://ai.google.dev/api/generate-content#FinishReason", "chat", "MAX_TOKENS"),
    ("https://docs.mistral.ai/api/#tag/chat", "chat", "model_length"),
    ("https://cloud.ibm.com/apidocs/watsonx-ai#text-generation", "chat", "token_limit"),
    ("https://docs.anthropic.com/en/api/handling-stop-reasons", "messages", "max_tokens"),
    ("https://platform.openai.com/docs/api-reference/responses/object", "responses", "max_output_tokens"),
    # Proxies that speak one API in front of another, with the words of that.
    ("https://platform.openai.com/docs/api-reference/chat/object", "messages", "length"),
    ("https://platform.openai.com/docs/api-reference/responses/object", "messages", "max_output_tokens"),
    ("https://docs.anthropic.com/en/api/handling-stop-reasons", "responses", "max_tokens"),
    ("https://platform.openai.com/docs/api-reference/chat/object", "responses", "length"),
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


@pytest.mark.parametrize(("source", "wire", "reason"), CUT)
def test_an_answer_that_was_cut_off_is_a_failed_run(place: Place, source: str, wire: str, reason: str) -> None:
    dialect = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}[wire]
    with dialect.server(ended_by(wire, reason)) as model:
        place.use_model(model.base_url, wire_api=wire)
        ended = run(place, "exec", "--json", "-m", "some-model", "go")
    failed = ended.events[-1]
    assert (ended.status, failed["type"], failed["error"]["code"]) == (65, "turn.failed", "context_length"), source
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
    (f"{GITHUB}/openai/openai-agents-js/pull/712", "{}" + GOOD),
    (f"{GITHUB}/unslothai/unsloth/pull/10275", "{} " + GOOD + "\n"),
    (f"{GITHUB}/1jehuang/jcode/issues/225", "null" + GOOD),
    (f"{GITHUB}/vllm-project/vllm/issues/54964", json.dumps(GOOD)),
    (f"{GITHUB}/tailcallhq/forgecode/issues/2764", json.dumps(json.dumps(GOOD))),
    (f"{GITHUB}/earendil-works/pi/issues/8858", f"```json\n{GOOD}\n```"),
    (f"{GITHUB}/earendil-works/pi/issues/8858", f"```\n{GOOD}```"),
    (f"{GITHUB}/dataelement/Clawith/pull/212", GOOD[:-1] + ",}"),
    (f"{GITHUB}/ml-explore/mlx-lm/pull/1071", GOOD[:-1] + " ,\n}"),
    (f"{GITHUB}/simonw/llm/pull/1130", GOOD + GOOD),
    (f"{GITHUB}/openai/openai-agents-js/pull/712", GOOD + "{}"),
    (f"{GITHUB}/mastra-ai/mastra/pull/12823", GOOD + "<|call|>"),
    (f"{GITHUB}/mastra-ai/mastra/pull/12823", GOOD + "\n<|endoftext|><|im_end|>"),
    (f"{GITHUB}/tailcallhq/forgecode/issues/2764", json.dumps(f"```json\n{GOOD}\n```")),
]


@every_wire
@pytest.mark.parametrize(("source", "arguments"), ARGUMENTS, ids=range(len(ARGUMENTS)))
async def test_arguments_with_one_reading_run(place: Place, wire: Dialect, source: str, arguments: str) -> None:
    with wire.server(wire.answer("", [("c1", "exec_command", arguments)]), wire.say("done")) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api=wire.wire) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert wire.outputs(model.requests[1]) == {"c1": "it-ran"}, source


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
