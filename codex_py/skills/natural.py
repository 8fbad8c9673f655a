"""Skills that a message names in words: "use the release notes skill", "go with lint", "用 release-notes 和 lint".

A name counts beside the word "skill", or after a verb such as "use"; not after a negation, in code or in a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final

from codex_py.protocol.value import Value

MAX_CHARS: Final = 8000
_MAX_NAMED: Final = 8
_MAX_PLACES: Final = 20
# Patterns are compiled when a message is looked at, and not at every start.
_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_HINT: Final = r"(?i)skill|技能|スキル|스킬|\b(?:use|using|run|apply|follow|invoke|with)\b|用|按"

_SKILL: Final = r"(?:skills?(?![A-Za-z])|技能|スキル|스킬)"
_ARTICLES: Final = r"(?:the|our|my|your|a|an|this|that|both)"
_SKILL_AFTER: Final = rf"(?i)[ 　-]*(?:这个|这项|该|的)?[ 　]*{_SKILL}"
_SKILL_BEFORE: Final = rf"(?i)(?<![A-Za-z]){_SKILL}(?: called| named)?[ 　:：]*$"
_VERB_BEFORE: Final = (
    rf"(?i)(?:\b(?P<go>go(?:ing)? )?(?P<verb>use|using|run|running|apply|follow|invoke|with) (?:{_ARTICLES} )*"
    r"|(?:使用|按照|用|按)(?:一下|下)?[ 　]*)$"
)
# What may follow a name that is not called a skill: other words could make it a part of something longer.
_FOLLOWER: Final = (
    r"(?i)[ 　]*(?:$|[.,;:!?)\n，。！？；：、]|(?:on|for|to|in|and|or|then|with|from|before|after|at|now|please|here"
    rf"|again|first|against|over|when|until|so|but|as|if|this|that|it|my|our)\b|[{_CJK}])"
)
_END: Final = rf"[ 　]*(?:$|[.,;:!?)\n，。！？；：、{_CJK}]|and\b)"
# Between two names of which the first is used.
_AND: Final = (
    rf"(?i)(?:[ 　]*{_SKILL})?[ 　]*(?:[,，、]|\b(?:and|or)\b|和|与|及|跟)(?:[ 　]*(?:and|also)\b)*[ 　]*"
    rf"(?:{_ARTICLES} )*"
)
_NEGATION: Final = (
    r"(?i)(?:not?|never|without|avoid|skip|stop|nor|cannot|dont|instead|refrain|nicht|keine?n?|ohne|pas|sans|niet"
    r"|.*n['’]t)"
)
_CJK_NEGATION: Final = r"(?:[不别没勿]|禁止|避免|无需)[^，。！？；\n]{0,3}$"


class NaturalName(Value):
    """A name in a message, as its words were written, and the names of skills that it fits; more than one is none."""

    written: str
    names: tuple[str, ...]


def may_name(text: str) -> bool:
    """Whether a text could name a skill at all; cheap."""
    return re.search(_HINT, text[:MAX_CHARS]) is not None


def find_named(text: str, names: Collection[str]) -> list[NaturalName]:
    """The names of skills in the user's own words of a text, in order, at most eight."""
    if not may_name(text):
        return []
    own = own_words(text[:MAX_CHARS])
    spelled = list(_spelled(own, names))
    used: dict[tuple[int, int], tuple[str, ...]] = {}
    # Longer names first; then those that an "and" joins to one of these, in order.
    by_length = sorted(spelled, key=lambda entry: (entry[0].start() - entry[0].end(), entry[0].start()))
    for match, fitting in by_length:
        if not _overlaps(match, used) and _is_used(own, match):
            used[match.span()] = fitting
    for match, fitting in sorted(by_length, key=lambda entry: entry[0].start()):
        if not _overlaps(match, used) and _is_joined(own, match, used):
            used[match.span()] = fitting
    found: dict[str, tuple[str, ...]] = {}
    for start, end in sorted(used):
        found.setdefault(own[start:end], used[start, end])
    return [NaturalName(written, fitting) for written, fitting in found.items()][:_MAX_NAMED]


def own_words(text: str) -> str:
    """A text without code, quoted lines, quotations and blocks of tags, none of which are the user's own words."""
    text = re.sub(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<([A-Za-z][\w-]*)\b[^>\n]*>.*?(?:</\1>|\Z)", "\n", text, flags=re.DOTALL)
    text = re.sub(r"^(?:[ \t]*[>|]|\t| {4}).*$", "\n", text, flags=re.MULTILINE)
    # A name alone may stand in backticks or quotation marks.
    text = re.sub(rf"[`\"“「]([\w:{_CJK}-]+(?: [\w:-]+)?(?: [\w:-]+)?)[`\"”」]", r"\1", text)
    return re.sub(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|«[^»\n]*»", " … ", text)


def without_parts(text: str, parts: Iterable[tuple[int, int]]) -> str:
    """A text without some parts of its UTF-8 form, such as what was pasted."""
    raw, last, pieces = text.encode("utf-8", "surrogatepass"), 0, list[bytes]()
    for start, end in sorted(parts):
        pieces.append(raw[last:start])
        last = max(last, end)
    return b"\n".join([*pieces, raw[last:]]).decode("utf-8", "ignore")


def _spelled(text: str, names: Collection[str]) -> Iterator[tuple[re.Match[str], tuple[str, ...]]]:
    """Where the words of names stand in a text in order, with hyphens or without, and the names that fit there."""
    flat = " ".join(_words(text))
    by_words: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        for spelling in {tuple(_words(name.rpartition(":")[2])), tuple(_words(name))}:
            if spelling and " ".join(spelling) in flat:
                by_words.setdefault(spelling, []).append(name)
    for words, fitting in by_words.items():
        pattern = r"[ _:-]?".join(map(re.escape, words))
        if pattern.isascii():
            pattern = rf"(?<![A-Za-z0-9_$/.-]){pattern}(?![A-Za-z0-9_/]|-(?!skill)\w|\.\w)"
        for match in islice(re.finditer(pattern, text, re.IGNORECASE), _MAX_PLACES):
            yield match, tuple(fitting)


def _words(text: str) -> list[str]:
    return re.findall(rf"[a-z0-9à-ɏ]+|[{_CJK}]+", text.lower())


def _overlaps(match: re.Match[str], used: Collection[tuple[int, int]]) -> bool:
    return any(match.start() < end and start < match.end() for start, end in used)


def _is_used(text: str, match: re.Match[str]) -> bool:
    """Whether a name is beside the word "skill" or after a verb for using it, and not negated."""
    before, after = re.split(r"[.!?;。！？；，,\n]", text[: match.start()])[-1], text[match.end() :]
    called = re.search(_SKILL_BEFORE, before)
    verb = re.search(_VERB_BEFORE, before[: called.start()] if called else before)
    prefix = before[: verb.start()] if verb else before[: called.start()] if called else before
    if _is_negated(prefix):
        return False
    if called or re.match(_SKILL_AFTER, after):
        return True
    # "with git" is about no skill; "with release-notes" and "go with lint" are.
    is_doubtful = verb and verb["verb"] == "with" and not verb["go"] and match[0].isalnum()
    return bool(verb and not is_doubtful and re.match(_FOLLOWER, after))


def _is_joined(text: str, match: re.Match[str], used: Iterable[tuple[int, int]]) -> bool:
    """Whether a name follows one that is used, with an "and" between them."""
    after, follower = text[match.end() :], _END if match[0].isalnum() else _FOLLOWER
    is_behind = any(end <= match.start() and re.fullmatch(_AND, text[end : match.start()]) for _, end in used)
    return is_behind and bool(re.match(_SKILL_AFTER, after) or re.match(follower, after))


def _is_negated(before: str) -> bool:
    words = re.findall(r"[^\W_]+(?:['’][^\W_]+)?", before)[-3:]
    return any(re.fullmatch(_NEGATION, word) for word in words) or re.search(_CJK_NEGATION, before) is not None
