"""Skills that a message names in words: "use the release notes skill", "按 release-notes 这个 skill 来".

A name counts only beside a word for using something, never after a negation, and never in what is quoted or pasted. A
name that is taken wrongly costs more than one that is missed, so a doubtful word does not count as a name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from codex_py.protocol.value import Value

MAX_CHARS: Final = 8000
_MAX_NAMED: Final = 8
_CJK: Final = "\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"

# Without one of these a message names nothing, whatever skills there are.
_HINTS: Final = tuple(
    "use using run apply invoke follow skill benutz verwend nutz utilis emplo usa util aplica appliqu gebruik использу"
    " skill 用 按 技能 使って スキル 스킬".split()
)
_USES: Final = frozenset(
    "use using run apply invoke follow benutze benutzen verwende verwenden nutze nutzen utilise utiliser utilisez"
    " emploie applique appliquer appliquez usa usar utiliza utilizar aplica ejecuta gebruik"
    " используй используйте".split()
)
# Those that go with tools and methods as well: "use browser automation to log in" is about no skill.
_USES_ANYTHING: Final = frozenset(
    "use using benutze benutzen verwende verwenden nutze nutzen utilise utiliser utilisez emploie usa usar utiliza"
    " utilizar gebruik используй используйте".split()
)
# A name that begins with one of these can be no tool or method: "use fix tests".
_IMPERATIVES: Final = frozenset(
    "add analyze apply ask bring check clean convert create debug deploy draft explain extract find fix generate get"
    " improve install make migrate optimize prepare publish refactor remove rewrite run send ship simplify summarize"
    " translate triage update upgrade validate verify write".split()
)
_SKILL: Final = frozenset("skill skills fähigkeit compétence habilidad скилл навык".split())
# What may stand between the word for a skill and its name.
_CALLED: Final = frozenset("called named namens appelé llamado llamada".split())
# What may stand between the verb and the name.
_ARTICLES: Final = frozenset(
    "the our my your this that a an bitte dafür hier jetzt den die das dem unseren le la les notre el los nuestra"
    " nuestro o os de".split()
)
_WITH: Final = frozenset("with mit con avec com via".split())
# Who speaks of one of these with a skill does not want it used.
_TROUBLE: Final = frozenset(
    "problem problems issue issues trouble wrong bug bugs error errors conflict conflicts compare happy unhappy"
    " familiar problème problèmes problema problemas fehler ärger vergleiche".split()
)
# What may follow a name that is not called a skill: anything else could make the name a part of something longer.
_FOLLOWERS: Final = frozenset(
    "on for to in and then with from before after at now please here again first against over when until so but"
    " auf für und dann mit im in am bitte sur pour et avec dans sobre para y con en".split()
)
_NEGATIONS: Final = frozenset(
    "not no never without don't dont doesn't didn't won't can't cannot stop avoid skip refrain forget forbid forbidden"
    " instead rather nor neither"
    " nicht kein keine keinen nie niemals ohne statt pas jamais sans sin nunca ni não niet geen не без".split()
)
# These may also follow the name.
_TRAILING_NEGATIONS: Final = frozenset("nicht nie niemals niet".split())
_JAPANESE_NEGATION: Final = "^[^。、！？\\n]{0,12}(?:わない|わず|しない|せずに|ないで|지 ?마|지 ?말|말고|않)"
# Between two names of which the first is used.
_AND: Final = (
    r"(?: skills?)?(?:,| and| und| et| y|, and|,? then)(?: also| then)?(?: with| the| my| our| den| die| le| la| el)* "
    r"|[ 　]*(?:技能|skill)?[ 　]*(?:和|、|以及|与)[ 　]*"
)
# Between the subject and the verb these change nothing.
_ADVERBS: Final = frozenset(
    "already always usually often sometimes still just also currently mostly only now but and so".split()
)
# Who reports what somebody says does not ask for it.
_REPORTING: Final = frozenset(
    "say says said tell tells told suggest suggests suggested recommend recommends recommended sagt sagte dit dijo"
    " сказал".split()
)
_REPORTED: Final = (
    r"(?i:\b(?:says?|said|reads?|told|wrote|writes?|todo|fixme|errors?|messages?|titles?|headings?|comments?|examples?)"
    r"|(?:写着|写道|说|提示|报错|标题|例如))[ \t]*[:：][ \t]*$"
)
# A clause that begins so asks or tells about a skill.
_ASKING: Final = frozenset(
    "how why what when where which who whose did does do was were is are should would if whether has had before unless"
    " wenn falls bevor quand lorsque cuando antes wie warum"
    " wann wo welche wer hat soll comment pourquoi quand où qui cómo por qué cuándo dónde quién".split()
)
_SUBJECTS: Final = frozenset(
    "i we they he she it people users who which that ich wir sie er es on ils elles there something nothing".split()
)
# Who asks so wants it done.
_POLITE: Final = frozenset("can could would will please kannst könntest bitte peux pourrais puedes podrías".split())
_HELPING: Final = frozenset("can could let let's lets must will shall please to".split())

_CLAUSE_END: Final = ".!?;:。！？；：，,\n"
_TOKEN: Final = (
    r"[A-Za-zÀ-ɏ\u0400-\u04ff0-9_'’]+(?:[-:/][A-Za-zÀ-ɏ0-9_]+)*|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]+|"
    r"[.!?;:。！？；，,\n]"
)
_CJK_USES: Final = "(使用|用|按照|按|运行|调用|套用)[ 　]*$"
_CJK_USES_ANYTHING: Final = frozenset(("使用", "用", "套用"))
_CJK_NEGATIONS: Final = (
    "(?:不要|不用|禁止|切勿|避免|停止|别|不|没|无需|勿|怎么|如何|为什么|谁|有人|已经|之前)[^。，！？；]{0,4}$"
)
_CJK_SKILL: Final = "^[ 　]*(?:这个|这項|这项|该|的)?[ 　]*(?:skill|技能|スキル|스킬)"
_CJK_AFTER: Final = "^[ 　]*(?:来|去|做|处理|检查|写|改|$|。|！|，)"
_JAPANESE_USE: Final = (
    "^[ 　]*(?:という|の)?(?:skill|スキル)?[ 　]*(?:を使って|で(?:やって|お願い|書いて)|を使い)"
    "|^[ 　]*스킬(?:을|로)?[ 　]*(?:사용해|이용해|써)"
)


class NaturalName(Value):
    """A name in a message, as its words were written, and the names of skills that it fits; more than one is none."""

    written: str
    names: tuple[str, ...]


def may_name(text: str) -> bool:
    """Whether a text could name a skill at all; cheap."""
    lowered = text[:MAX_CHARS].lower()
    return any(hint in lowered for hint in _HINTS)


def find_named(text: str, names: Collection[str]) -> list[NaturalName]:
    """The names of skills in the user's own words of a text, in order, at most eight."""
    if not may_name(text):
        return []
    own = own_words(text[:MAX_CHARS])
    flat = f" {_flat(own)} "
    fitting = [
        name
        for name in names
        if f" {_flat(_base(name))} " in flat
        or f" {_flat(name)} " in flat
        or (not name.isascii() and _base(name).lower() in own.lower())
    ]
    found: dict[str, list[str]] = {}
    taken: list[tuple[int, int]] = []
    by_words = _by_words(fitting)
    longest = sorted(by_words, key=lambda words: (-len(words), words))
    spelled = [(match, words) for words in longest for match in re.finditer(_spelling(words), own, re.IGNORECASE)]
    used = [(match, words) for match, words in spelled if _is_used(own, match.start(), match.end(), words)]
    # First the names beside a word for using them, then those that an "and" joins to one of these, in order.
    for match, words in [*used, *sorted(spelled, key=lambda entry: entry[0].start())]:
        if any(match.start() < end and begin < match.end() for begin, end in taken):
            continue
        if (match, words) in used or _is_joined(own, match.start(), match.end(), words, taken):
            taken.append(match.span())
            found.setdefault(match[0], []).extend(by_words[words])
    order = sorted(found, key=lambda written: own.find(written))
    return [NaturalName(written, tuple(dict.fromkeys(found[written]))) for written in order[:_MAX_NAMED]]


def own_words(text: str) -> str:
    """A text without code, quoted lines, quotations and blocks of tags, none of which are the user's own words."""
    text = re.sub(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<([A-Za-z][\w-]*)\b[^>\n]*>.*?(?:</\1>|\Z)", "\n", text, flags=re.DOTALL)
    text = re.sub(r"^(?:[ \t]*[>|]|\t| {4}|[+-]{3} |@@ |\s+at |Traceback ).*$", "\n", text, flags=re.MULTILINE)
    # A name alone may stand in backticks or quotation marks.
    text = re.sub(r"`([A-Za-z0-9_:-]{1,64})`", r"\1", text)
    return re.sub(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|«[^»\n]*»", lambda quoted: _unquoted(quoted[0]), text)


def without_parts(text: str, parts: Iterable[tuple[int, int]]) -> str:
    """A text without some parts of its UTF-8 form, such as what was pasted."""
    raw, last, pieces = text.encode("utf-8", "surrogatepass"), 0, list[bytes]()
    for start, end in sorted(parts):
        pieces.append(raw[last:start])
        last = max(last, end)
    return b"\n".join([*pieces, raw[last:]]).decode("utf-8", "ignore")


def _unquoted(quoted: str) -> str:
    inner = quoted[1:-1]
    return f" {inner} " if len(inner.split()) <= 3 and re.fullmatch(rf"[A-Za-z0-9_: {_CJK}-]{{1,48}}", inner) else " … "


def _base(name: str) -> str:
    return name.rpartition(":")[2]


def _flat(text: str) -> str:
    return " ".join(re.findall(rf"[a-z0-9à-ɏ]+|[{_CJK}]+", text.lower()))


def _by_words(names: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        for spelling in dict.fromkeys((_flat(_base(name)), _flat(name))):
            if spelling:
                found.setdefault(tuple(spelling.split()), []).append(name)
    return found


def _spelling(words: Sequence[str]) -> str:
    return (
        r"(?<![A-Za-z0-9_$/.-])" + r"[ _:-]".join(map(re.escape, words)) + r"(?!(?!-[Ss]kills?\b)[A-Za-z0-9_/-]|\.\w)"
    )


def _is_used(text: str, start: int, end: int, words: tuple[str, ...]) -> bool:
    """Whether a name at this place is beside a word for using it."""
    before = _clause_before(text[:start])
    after = text[end:]
    if re.search(_REPORTED, text[:start].removesuffix(before)[-80:]):
        return False
    tokens = [token.lower().replace("’", "'") for token in re.findall(_TOKEN, before)]
    if _is_negated(tokens[-6:]) or re.search(_CJK_NEGATIONS, before) or _is_negated_behind(after):
        return False
    if _is_used_in_cjk(before, after, text[start:end]):
        return True
    following = [token.lower() for token in re.findall(_TOKEN, after[:80])]
    if tokens and tokens[-1] in _CALLED:
        tokens.pop()
    is_called_skill = following[:1] in (["skill"], ["skills"]) or bool(tokens and tokens[-1] in _SKILL)
    while tokens and (tokens[-1] in _ARTICLES or tokens[-1] in _SKILL) and (is_called_skill or "-" in text[start:end]):
        tokens.pop()
    if not tokens or not _is_request(tokens, is_called=is_called_skill) or _is_doubted(tokens, after):
        return False
    if is_called_skill:
        return True
    # A single word is too common, and what follows must not make the name a part of something else.
    if len(words) == 1 or _may_be_method(text[start:end], tokens[-1], _USES_ANYTHING):
        return False
    return not following or following[0] in _FOLLOWERS or following[0] in _CLAUSE_END


def _is_doubted(tokens: Sequence[str], after: str) -> bool:
    """Whether a name ends a question that asks for nothing: "use the review skill?"."""
    return bool(re.match("(?: skills?)?[ ]*[?]", after, re.IGNORECASE)) and _POLITE.isdisjoint(tokens)


def _may_be_method(written: str, verb: str, verbs: Collection[str]) -> bool:
    """Whether words behind a verb may be a tool or a method rather than the name of a skill."""
    return " " in written and verb in verbs and written.partition(" ")[0].lower() not in _IMPERATIVES


def _is_joined(text: str, start: int, end: int, words: Sequence[str], taken: Sequence[tuple[int, int]]) -> bool:
    """Whether a name follows one that is used, with an "and" between them."""
    if not any(last <= start and re.fullmatch(_AND, text[last:start], re.IGNORECASE) for _, last in taken):
        return False
    if _is_negated_behind(text[end:]):
        return False
    following = re.findall(_TOKEN, text[end : end + 80])
    if (following and following[0].lower() in _SKILL) or re.match(_CJK_SKILL, text[end:], re.IGNORECASE):
        return True
    return len(words) > 1 and (not following or following[0].lower() in _FOLLOWERS or following[0] in _CLAUSE_END)


def _clause_before(text: str) -> str:
    text = re.sub(r"\b(skill)[:：][ ]*$", r"\1 ", text, flags=re.IGNORECASE)
    return text[max((text.rfind(mark) for mark in _CLAUSE_END), default=-1) + 1 :]


def _is_negated(tokens: Sequence[str]) -> bool:
    return any(token in _NEGATIONS or token.endswith("n't") for token in tokens)


def _is_negated_behind(after: str) -> bool:
    clause = re.split(f"[{re.escape(_CLAUSE_END)}]", after, maxsplit=1)[0]
    return bool(_TRAILING_NEGATIONS.intersection(clause.lower().split())) or bool(re.match(_JAPANESE_NEGATION, clause))


def _is_request(tokens: Sequence[str], *, is_called: bool) -> bool:
    """Whether the words before a name end in a verb for using, asked for rather than asked or told about."""
    verb = len(tokens) - 1
    if tokens[verb] in _WITH and is_called:
        first = next((token for token in tokens if token not in _ADVERBS), "")
        is_report = first in _SUBJECTS and _HELPING.isdisjoint(tokens)
        return not is_report and _ASKING.isdisjoint(tokens[:2]) and _TROUBLE.isdisjoint(tokens)
    if tokens[verb] not in _USES or not _REPORTING.isdisjoint(tokens[:verb]):
        return False
    before = [token for token in tokens[:verb] if token not in _ADVERBS]
    if before and before[-1] in _SUBJECTS:
        return before[-2:-1] != [] and before[-2] in _HELPING
    return not _ASKING.intersection(tokens[:verb])


def _is_used_in_cjk(before: str, after: str, written: str) -> bool:
    has_parts = bool(re.search("[ _:-]", written))
    if re.match(_JAPANESE_USE, after, re.IGNORECASE):
        return has_parts or any(word in after[:12] for word in ("スキル", "스킬")) or "skill" in after[:12].lower()
    verb = re.search(_CJK_USES, before)
    if verb is None:
        return False
    if re.match(_CJK_SKILL, after, re.IGNORECASE):
        return True
    is_method = _may_be_method(written, verb[1], _CJK_USES_ANYTHING)
    return has_parts and not is_method and bool(re.match(_CJK_AFTER, after))
