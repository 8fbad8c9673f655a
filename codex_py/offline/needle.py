"""Which text a prompt wants found: the quoted one, else the word that looks like a name, else the last word."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.offline.pattern import Pattern
from codex_py.offline.quotes import QUOTED, Sketch

_I: Final = re.IGNORECASE
_VERBS: Final = Pattern(
    r"\b(?:find(?! out\b| (?:a |the |any )?(?:way|bugs?|problems?|issues?|errors?|solution|reason|cause|mistakes?)\b)"
    r"|search(?:ing)?(?: through)?(?: for)?|grep(?: for)?|rg|locate|look(?:ing)? for|look up"
    r"|(?:show|tell)(?: me| us)? where|where(?:'s| is| are| do| does| did| can| was| were)\b"
    r"|which (?:\w+ )?(?:files?|lines?|places?|modules?)\b[^.?!\n]{0,20}?"
    r"\b(?:contains?|mentions?|uses?|has|have|defines?|imports?|calls?|refers? to)"
    r"|(?:show|list|give)(?: me)?(?: all| every)?(?: the)? "
    r"(?:occurrences|uses|usages|references|mentions|callers|places)"
    r"|(?:show|list)(?: me)?(?: all| every| the){1,2} (?=(?:TODO|FIXME|XXX|HACK)s?\b)"
    r"|(?:count|how many)(?: (?:all|the|times|occurrences|of|is|does|do|are)){1,4}"
    r"|who (?:calls|uses|imports))\b",
    _I,
)
_EDIT: Final = Pattern(r"\b(?:fix|implement|refactor|write|add|create|remove|delete|improve|rewrite)\b", _I)
_DEFINITION: Final = Pattern(
    r"\b(?:where|locate|find)\b.*"
    r"\b(?:defined|declared|implemented|definition|declaration|implementation|comes? from)\b",
    _I | re.DOTALL,
)
_CLAUSE: Final = Pattern(r"[?!;\n]|\.(?:\s|$)|,| and (?:then|tell|show|explain|report|list|say|replace)\b", _I)
# What stands at the end of such a sentence without being looked for: a place, or what is done to the thing.
_TAIL: Final = Pattern(
    r"\s+(?:(?:in|inside|within|of|across|throughout|from|on|under) "
    r"(?:(?:this|the|my|our|all|any|every|whole|entire|current|source|git) )*"
    r"(?:repo|repository|project|code ?base|code|sources?|files?|folder|directory|tree|package|app|library|here)"
    r"|is|are|was|were|gets?|being|been|defined|declared|implemented|used|called|loaded|set|stored|handled|documented"
    r"|mentioned|located|imported|created|computed|referenced|configured|kept|coming from|comes? from|lives?|happens?"
    r"|appears?|occurs?|please|here|everywhere|thanks|exactly|again|now)\s*$",
    _I,
)
_FILLER_WORDS: Final = """
a all an and any are class code constant declaration definition definitions every file files find for function
functions i identifier implementation in is it line lines locate me mention mentions method name named names
occurrence occurrences of out please reference references string symbol text that the their this to token type
uses usages use used using variable where which with word words we you do does did can case places place called
comments comment parameter option flag
"""
_FILLER: Final = frozenset(_FILLER_WORDS.split())
# A word that looks like a name of the code: foo_bar, fooBar, foo.bar, FOO, src/foo, --foo, .foo.ext
_NAME: Final = Pattern(
    r"[A-Za-z_][\w.]*(?:_|\d|[a-z][A-Z]|\w\.\w|::)[\w.:]*(?:\(\))?|[A-Z]{2,}[A-Z0-9_]*"
    r"|(?:[\w.-]+/)+[\w.-]+|--?[\w-]+|\.?[\w-]+\.\w{1,5}"
)
_LONGEST_NAME: Final = 200


class Needle(NamedTuple):
    """`at` is where the wish begins in the prompt."""

    at: int
    needle: str
    definition: bool


def find_needle(drawn: Sketch, head: str) -> Needle | None:
    """The text a prompt wants found; None when it asks for something else."""
    verb = _VERBS.search(head)
    edit = _EDIT.search(head)
    if verb is None or (edit is not None and edit.start() < verb.start()):
        return None
    rest = head[verb.end() :]
    clause = rest[: cut.start()] if (cut := _CLAUSE.search(rest)) else rest
    quoted = drawn.marks(clause) or drawn.marks(rest)[:1]
    if quoted:
        needle = quoted[0]
    else:
        needle = _bare(clause)
    definition = _DEFINITION.search(head) is not None
    return Needle(verb.start(), needle, definition) if needle.strip() else None


def _bare(clause: str) -> str:
    words = clause.strip()
    for _ in range(4):
        shorter = _TAIL.sub("", words)
        if shorter == words:
            break
        words = shorter
    candidates = [_plain(word) for word in words.split() if not re.match(QUOTED, word)]
    named = [word for word in candidates if len(word) < _LONGEST_NAME and _NAME.fullmatch(word)]
    telling = [word for word in candidates if word and word.lower() not in _FILLER]
    if named:
        word = named[0]
    elif telling:
        word = telling[-1]
    else:
        return ""
    word = word.removesuffix("()")
    return word[:-1] if re.fullmatch(r"(?:TODO|FIXME|XXX|HACK)s", word) else word


def _plain(word: str) -> str:
    return word.strip(",;:!?'\"").rstrip(".")
