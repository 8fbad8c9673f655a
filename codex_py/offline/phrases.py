"""The phrases by which a prompt is understood. Quoted texts are marks here: see `quotes`."""

from __future__ import annotations

import re
from typing import Final

from codex_py.offline.pattern import Pattern
from codex_py.offline.quotes import QUOTED

_I: Final = re.IGNORECASE
_PROJECT: Final = (
    r"(?:repo|repos|repository|project|code ?base|folder|directory|package|library|program|application|"
    r"app|source tree|code)"
)
_THIS: Final = r"(?:this|the|my|our|your|that|current|present|whole|entire|local|given|git)"
_THIS_PROJECT: Final = rf"\b{_THIS} (?:\w+ ){{0,2}}?{_PROJECT}\b"
_TELL: Final = (
    r"(?:explain|describe|summari[sz]e|introduce|analy[sz]e|outline|present|explore|inspect|tour|understand|overview|"
    r"summary|description|walk me through|tell me (?:something |more )?about|look at|intro(?:duction)?)"
)
# What may follow "this project" when it is the project that is asked about, and not some part of it.
_AND_NO_PART: Final = (
    r"(?!'s|-)(?=\s*(?:[.?!,;:]|$|\n|(?:and|to|in|for|at|briefly|please|structure|layout|is|does|works?|here|with|first|"
    r"a bit|as|about|all about|do|uses?|contains?|written)\b))"
)
TOUR: Final = (
    Pattern(rf"\bwhat(?:'s|s| is| are| does| do)?\b[^.?!\n]{{0,20}}{_THIS_PROJECT}{_AND_NO_PART}", _I),
    Pattern(rf"\b{_TELL}\b[^.?!\n]{{0,20}}{_THIS_PROJECT}{_AND_NO_PART}", _I),
    Pattern(
        r"\b(?:an?|the|short|brief|quick) (?:\w+ )?(?:overview|summary|tour)\b"
        r"\s*(?:[.?!,]|$|(?:please|of (?:it|this|the))\b)",
        _I,
    ),
    Pattern(r"^\W*(?:(?:what(?:'s| is)|explain|describe|summari[sz]e) (?:this|it|here)|overview|where am i)\W*$", _I),
    Pattern(rf"\b(?:which|what) (?:programming )?languages?\b[^.?!\n]{{0,40}}\b(?:{_PROJECT}|written in)\b", _I),
    Pattern(r"\bhow many (?:\w+ )?files\b", _I),
    Pattern(rf"\bhow is {_THIS} (?:\w+ )?{_PROJECT} (?:\w+ )?(?:structured|organi[sz]ed|laid out|built|run)\b", _I),
    Pattern(
        r"\bhow (?:do|can|should|would) (?:i|we|you|one) (?:build|run|start|install|launch|use) "
        rf"{_THIS} (?:\w+ )?{_PROJECT}\b",
        _I,
    ),
    Pattern(r"\b(?:list|show)(?: me)?(?: all)? (?:the )?files\b\W*(?:$|(?:in|of) (?:this|the|here|my)\b)", _I),
)
WHOLE_PROJECT: Final = Pattern(r"\b(?:repo|repository|project|code ?base)\b", _I)
WORK_ON_TESTS: Final = Pattern(
    r"\b(?:write|add|create|generate|implement|extend|improve|refactor|delete|remove|document|explain|port|convert|"
    r"rename)\b[^.?!\n]{0,40}\btests?\b",
    _I,
)
_SUITE: Final = r"(?:tests?|test[- ]?suites?|specs?|pytest|unittests?|test cases?)"
_BAD: Final = r"(?:fail\w*|break\w*|broken|red|wrong|crash\w*)"
_GOOD: Final = r"(?:pass\w*|green|work\w*|ok|okay)"
TESTS: Final = (
    Pattern(
        r"\b(?:run|re-?run|execute|start|launch|check|try|perform|invoke|do)\b(?! not\b)[^.?!\n]{0,60}?"
        rf"\b(?<![-/.]){_SUITE}\b(?![-/])",
        _I,
    ),
    Pattern(rf"\bwhy\b[^?!\n]{{0,80}}?\b{_SUITE}\b[^?!\n]{{0,60}}?\b(?:{_BAD}|{_GOOD})", _I),
    Pattern(rf"\bwhy\b[^?!\n]{{0,40}}?\bfail\w*[^?!\n]{{0,30}}?\b{_SUITE}\b", _I),
    Pattern(
        rf"\b(?:do|does|are|is|did|will|see if|check that|verify that|make sure)\b[^.?!\n]{{0,40}}?\b{_SUITE}\b"
        rf"[^.?!\n]{{0,30}}?\b(?:{_BAD}|{_GOOD})\b",
        _I,
    ),
    Pattern(r"\b(?:why|debug|check)\b[^?!\n]{0,40}?\btest_\w+[^?!\n]{0,40}?\bfail\w*", _I),
    Pattern(rf"\b(?:make|get) (?:all )?(?:the |our |these )?{_SUITE} (?:to )?(?:pass|green|work)\b", _I),
    Pattern(rf"\b(?:failing|failed|broken|red) (?:unit |integration )?{_SUITE}\b", _I),
    Pattern(
        rf"\b(?:which|what|how many) (?:of the |unit )?{_SUITE}\b[^.?!\n]{{0,30}}?\b(?:{_BAD}|{_GOOD})\b",
        _I,
    ),
    Pattern(
        r"^\W*(?:please )?(?:run )?(?:all )?(?:the )?(?:tests?|test suite|pytest|unittest)(?: now| please)?\W*$",
        _I,
    ),
    Pattern(
        r"^\W*(?:please )?(?:npm (?:run )?test|yarn test|pnpm test|cargo test|go test|make (?:test|check))\b",
        _I,
    ),
    Pattern(rf"^\W*(?:please )?test (?:it|this|everything|all|{_THIS} {_PROJECT})\W*$", _I),
)
TEST_TOOL: Final = Pattern(
    r"\b(pytest|unittest|npm|yarn|pnpm|bun|cargo|go test|make(?= (?:test|check))|jest|vitest|mvn|gradle)\b",
    _I,
)
TEST_NAME: Final = Pattern(
    r"(?:[\w.-]+/)*[\w.-]*tests?[\w.-]*\.\w+(?:::[\w\[\]-]+)*|(?:[\w.-]+/)*tests?/[\w./-]*|test_\w+"
)
TEST_PLACE: Final = Pattern(rf"\btests? (?:\w+ )?(?:in|under|of|for|from) (?:the )?({QUOTED}|(?:[\w.-]+/)+[\w.-]*)", _I)
MEND: Final = Pattern(r"\b(?:fix|repair|make (?:them|it|the tests?) (?:pass|green)|correct)\b", _I)
RUN: Final = Pattern(
    r"\b(?P<verb>run|re-?run|execute|exec|launch|invoke|call|try|type|start|do|perform|issue|use)\b"
    rf"(?P<between>(?:(?!\b(?:not|never)\b)[^.?!\n{QUOTED[0]}]){{0,60}}):?"
    rf"\s*(?P<quoted>{QUOTED}(?:\s*(?:,|;|and|then|&&|and then|,\s*then|,\s*and)?\s*{QUOTED})*)",
    _I,
)
# Between such a verb and a quoted text these say that the text is a command, whatever it looks like.
RUN_VERBS: Final = ("run", "rerun", "re-run", "execute", "exec", "invoke")
_RUN_WORDS: Final = "a again bash command commands following for just me my please program script shell the this tool"
RUN_WORDS: Final = frozenset(_RUN_WORDS.split())
RUN_BARE: Final = Pattern(
    r"^\W*(?:(?:please|can you|could you|now|just) )*(?:run|execute)(?: the command)?:?\s+(?P<command>[\w./~-][^\n]*)",
    _I,
)
RUN_TAIL: Final = Pattern(
    r"(?:,| and| then|\.)? (?:and |then )?(?:tell|show|report|explain|say|give|summari[sz]e|let) "
    r"(?:me|us|what|the|it|whether|if)\b.*$|,? (?:please|thanks|thank you)\W*$",
    _I,
)
FOLDER: Final = Pattern(
    rf"\bin (?:the )?(?:(?:folder|directory|dir) ({QUOTED}|[\w./~-]+)|({QUOTED}|[\w./~-]+) (?:folder|directory|dir)\b)",
    _I,
)
FORBIDDEN: Final = Pattern(
    r"\b(?:don't|do not|never|without|must not|mustn't|shouldn't|should not|stop|avoid)\b[^.;!?\n]{0,20}?"
    r"\b(?:run|running|execute|executing|replace|replacing|rename|change|remove|delete|touch)\b",
    _I,
)
ABOUT: Final = (
    Pattern(r"\b(?:what|who)(?:'re| are| r) (?:you|u)\b", _I),
    Pattern(r"\bwhat can (?:you|i) (?:do|ask|say|type)\b|\bwhat (?:do you|does codex-py) do\b", _I),
    Pattern(r"\bwhat(?:'s| is) (?:codex(?:-py)?|the offline model)\b|\b(?:which|what) model\b", _I),
    Pattern(r"\bare you (?:an? )?(?:ai|real|human|llm|bot|gpt|chatgpt|model)\b", _I),
    Pattern(
        r"\bhow (?:do|can|to|should)\b[^.?!\n]{0,20}\b(?:connect|log ?in|sign in|set up|configure|use|get|switch to)\b"
        r"[^.?!\n]{0,30}\b(?:model|api|api key|key|openai|ollama|provider|codex(?:-py)?)\b",
        _I,
    ),
    Pattern(r"\bhow do i log ?in\b|\bhow do (?:you work|i use (?:you|this))\b", _I),
    Pattern(r"^\W*(?:help|usage|\?|/help|--help|man)\W*(?:me|please)?\W*$", _I),
)
_HELLO: Final = (
    r"hi|hello|hey|hiya|howdy|yo|good (?:morning|afternoon|evening|day)|greetings|thanks?|thank you|cheers|bye|goodbye|"
    r"ping|hallo|guten (?:tag|morgen|abend)|moin|servus|bonjour|salut|hola|ciao|ol[aá]|hej|こんにちは|你好|привет|"
    r"danke|merci|gracias"
)
GREETING: Final = Pattern(
    rf"^\W*(?:{_HELLO})(?:[\s,]+(?:there|codex(?:-py)?|you|all|world|again|everyone|a lot|so much|very much|"
    r"how are you|how's it going))*\W*$",
    _I,
)
ENGLISH: Final = Pattern(
    r"\b(?:the|this|that|a|an|is|are|it|of|to|and|in|for|with|please|my|me|you|what|why|how|where|can|do|add|fix|make|"
    r"write|create|implement|use|all|not|from|run|don|never|stop|show|find|on|refactor|build|new|code|bug)\b",
    _I,
)
