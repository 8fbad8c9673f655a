"""What servers mean by the words of their refusals and their ends, as patterns: one table, with who says it so.

A pattern names a thing beside what is wrong with it, so that it holds for sentences nobody has listed. The patterns are
text, which is compiled on the day something fails. Wordings that they were tried on: `tests/turns/test_wordings.py`.
"""

from __future__ import annotations

import re
from typing import Final, Literal

_EXCESS: Final = (
    r"(?:exceed|overflow|too (?:long|large|big|many)|(?:long|larg|great)er than|more than"
    r"|maximum|\bmax\b|limit|only \d|超|过长)"
)
_CONTEXT: Final = (
    r"(?:\bcontext[ _-]?(?:length|window|size|limit)|available context|\bn_ctx\b|max(?:imum)?[ _]model[ _]len)"
)
_REQUEST: Final = r"\b(?:prompt|inputs?|messages|conversation|payload|string value)\b|tokens in request"
_MEASURE: Final = r"(?:\btokens?\b|\blength\b|\bsize\b|\bbytes\b)"

# The whole request is longer than the model can read.
_TOO_LONG_BY_CONTEXT: Final = (
    # OpenAI, OpenRouter, vLLM, SGLang, llama.cpp, LM Studio, Ollama, Mistral, MiniMax, Anthropic, Cloudflare.
    rf"{_CONTEXT}.{{0,80}}{_EXCESS}|{_EXCESS}.{{0,80}}{_CONTEXT}|context (?:the )?overflow|\bbut\b.{{0,20}}{_CONTEXT}"
)
_TOO_LONG: Final = (
    # Anthropic, Bedrock, Fireworks, GitHub; proxies that answer 413.
    rf"(?:{_REQUEST}|\brequest\b)[^.]{{0,60}}too (?:long|large|big)",
    # Gemini, xAI, Copilot, z.ai, Together, Azure.
    rf"(?=.*{_REQUEST})(?=.*{_MEASURE}).*(?:{_EXCESS}|must be <=|must have less than|should be \[)",
    # Kimi, and Gemini and Anthropic about bytes.
    rf"\brequest\b[^.]{{0,60}}exceed[^.]{{0,60}}{_MEASURE}",
    # OpenAI about embeddings and batches.
    rf"\brequested \d[\d,]* tokens\b.{{0,40}}{_EXCESS}",
    # Cohere and Databricks.
    r"too many (?:input |prompt |total )?(?:tokens|text bytes)|token limit exceeded",
    # Groq and Cerebras.
    r"(?:reduce|shorten) (?:the|your) (?:length|size|prompt|input|message)",
    # DashScope, z.ai, Kimi.
    r"(?:上下文|输入|提示|prompt|长度).{0,20}(?:超|过长)",
)
# Limits of another kind: on a rate, on an account, on one part of a request.
_OTHER_LIMIT: Final = (
    r"rate.?limit|quota|throttl|billing|credit|please wait|try again (?:in|later)|\b[tr]pm\b|额度|余额|频率|每分钟"
    r"|per[ _-](?:second|min|minute|hour|day|week|month)\b|\b(?:daily|weekly|monthly)\b"
)
_PART: Final = (
    r"\b(?:input|messages|contents|tools)(?:\[\d+\]|\.\d+)|\btool[ _](?:argument|name|description|call)"
    r"|\bimage.{0,20}(?:exceed|size|too)"
)

# A request that alone is over a rate of tokens, which no waiting changes (OpenAI, Groq).
_OVER_RATE: Final = r"request too large for|tokens must be reduced"

# The limit on an answer: the fields of the APIs, and OpenAI, Anthropic, Google, vLLM and Together in sentences.
_ANSWER_LIMIT: Final = (
    r"max(?:imum)?[_ ](?:output[_ ]|completion[_ ]|new[_ ])?tokens|maxoutputtokens"
    r"|\b(?:output|completion) tokens|in the completion"
)

# Reasoning of earlier answers: Anthropic and its resellers, Google, OpenAI, OpenRouter, and servers that copy one API.
_THINKING: Final = (
    r"signature|thought|encrypted.?content|\brs_\w|reasoning_details|redacted_thinking"
    r"|thinking.{0,40}\b(?:block|content)|\b(?:block|tag|variant|type|found|got)\b.{0,40}\bthinking\b"
    r"|\b(?:messages|input|content)\S*[\s`'\"]*thinking|reasoning.{0,60}\b(?:items?|following)\b"
    r"|\bitems?\b.{0,60}reasoning"
)

# Why an answer ended: `length` (OpenAI), `max_tokens` (Anthropic), `MAX_TOKENS` (Google), `model_length` (Mistral),
# `model_context_window_exceeded` (Anthropic, z.ai).
_FULL_WINDOW: Final = r"context|window"
_CUT: Final = r"length|max|limit|\btokens?\b|token_|truncat|incomplete"


def says_too_long(sentence: str) -> bool:
    """Whether a server means that the request is longer than the model can read."""
    text = sentence.lower()
    if re.search(_OTHER_LIMIT, text) or re.search(_PART, text):
        return False
    if re.search(_TOO_LONG_BY_CONTEXT, text):
        return True
    # A limit on the answer alone is not met by a shorter request.
    if re.search(_ANSWER_LIMIT, text) and not re.search(_REQUEST, text):
        return False
    return any(re.search(pattern, text) for pattern in _TOO_LONG)


def says_over_rate(sentence: str) -> bool:
    """Whether one request is over the tokens of a whole minute."""
    return re.search(_OVER_RATE, sentence.lower()) is not None


def names_answer_limit(sentence: str) -> bool:
    """Whether a sentence is about the limit on the tokens of an answer."""
    return re.search(_ANSWER_LIMIT, sentence.lower()) is not None


def stated_answer_limit(sentence: str, sent: int) -> int | None:
    """The limit that a refusal of the limit `sent` names; None where it names none, or one on the whole request."""
    text = sentence.lower()
    if not names_answer_limit(text) or re.search(_CONTEXT, text):
        return None
    numbers = [int(number.replace(",", "")) for number in re.findall(r"(?<![\w.])\d[\d,]{0,11}(?![\w.]*\d)", text)]
    return max((number for number in numbers if 256 <= number < sent and number not in (400, 422)), default=None)


def refuses_thinking(sentence: str) -> bool:
    """Whether a refusal is about reasoning of earlier answers, which the request has brought back."""
    return re.search(_THINKING, sentence.lower()) is not None


def cut_reason(reason: str) -> Literal["answer", "window", ""]:
    """What an answer that ended for this reason has reached: its own limit or the end of the context window."""
    if re.search(_FULL_WINDOW, reason.lower()):
        return "window"
    return "answer" if re.search(_CUT, reason.lower()) else ""
