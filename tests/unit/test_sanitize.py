from __future__ import annotations

import random
import unicodedata

import pytest

from codex_py.text.sanitize import sanitize, sanitize_line
from tests.support.work import within

ESC = "\x1b"
ZWJ = "\u200d"
ZWNJ = "\u200c"
VS16 = "\ufe0f"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain text\twith tabs\nand lines\n",
        "naïve — “quotes” … ½ 漢字 עברית العربية हिन्दी",
        "icons \ue0b0 and \U0010fffd from private use",
        "⠀⠁⡇ braille plots, ▁▂▃ bars, ┌─┐ boxes",
        "e\u0301 combining accents",
        "😀 👍🏽 🇩🇪",
        f"👩{ZWJ}💻 👨{ZWJ}👩{ZWJ}👧{ZWJ}👦",
        f"❤{VS16} ✔{VS16} ©{VS16} ❤{VS16}{ZWJ}🔥 👁{VS16}{ZWJ}🗨{VS16}",
        f"1{VS16}\u20e3 #{VS16}\u20e3",
        f"🏴{ZWJ}☠{VS16}",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        f"می{ZWNJ}خواهم",
        f"क्{ZWJ}ष",
        "葛\U000e0100",
    ],
)
def test_what_a_reader_can_see_stays(text: str) -> None:
    assert sanitize(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{ESC}[31mred{ESC}[0m", "␛[31mred␛[0m"),
        (f"{ESC}]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        (f"{ESC}]0;title{ESC}\\", "␛]0;title␛\\"),
        (f"{ESC}P1$r0m{ESC}\\", "␛P1$r0m␛\\"),
        ("\x9b31m \x9d0;t\x9c \x85", r"\u{9b}31m \u{9d}0;t\u{9c} \u{85}"),
        ("\x00\x07\x08\x0b\x0c\x7f", "␀␇␈␋␌␡"),
        ("progress 10%\rprogress 99%", "progress 10%␍progress 99%"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("\r\r\n", "␍\n"),
        ("user\u202egpj.exe", r"user\u{202e}gpj.exe"),
        ("a\u2066b\u2069 \u200e\u200f \u061c", r"a\u{2066}b\u{2069} \u{200e}\u{200f} \u{61c}"),
        ("pass\u200bword pass\u2060word \ufeffx so\u00adft", r"pass\u{200b}word pass\u{2060}word \u{feff}x so\u{ad}ft"),
        ("one\u2028two\u2029three", r"one\u{2028}two\u{2029}three"),
        ("\ud800 \udcff", r"\u{d800} \u{dcff}"),
        ("\u115f\u3164\uffa0\u034f", r"\u{115f}\u{3164}\u{ffa0}\u{34f}"),
        (f"pass{ZWNJ}word a{ZWJ}b", r"pass\u{200c}word a\u{200d}b"),
        (f"👩{ZWJ} {ZWJ}💻 👩{ZWJ}x", r"👩\u{200d} \u{200d}💻 👩\u{200d}x"),
        (f"می{ZWNJ}x {ZWNJ}", r"می\u{200c}x \u{200c}"),
        (f"file1{VS16} x{VS16} ❤{VS16}{VS16}", "file1\\u{fe0f} x\\u{fe0f} ❤" + VS16 + "\\u{fe0f}"),
        ("a\U000e0100\ufe00 葛\U000e0100\U000e0101", r"a\u{e0100}\u{fe00} 葛" + "\U000e0100" + r"\u{e0101}"),
        ("\U000e0068\U000e0069", r"\u{e0068}\u{e0069}"),
        ("🏴\U000e0061\U000e007f", r"🏴\u{e0061}\u{e007f}"),
        (
            "\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            r"\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        ),
    ],
)
def test_what_steers_or_hides_is_shown(text: str, shown: str) -> None:
    assert sanitize(text) == shown


def test_no_control_or_format_character_gets_through_alone() -> None:
    suspects = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    ]
    left = [c for c in suspects if c not in "\t\n" and c in sanitize(f"a{c}b")]
    assert left == []


def test_one_line_places_get_one_line() -> None:
    assert sanitize_line("one\ntwo\r\nthree\tfour") == "one␊two␍␊three\tfour"
    assert sanitize("one\ntwo", keep_newlines=False) == "one␊two"


def test_sanitizing_twice_changes_nothing_more() -> None:
    text = f"{ESC}[1m👩{ZWJ}💻\u202e\x9b a{ZWJ}b"
    assert sanitize(sanitize(text)) == sanitize(text)


@pytest.mark.parametrize(
    "text",
    [
        ESC * 2**20,
        "\r" * 2**20,
        f"{ESC}é" * (2**20 // 3),
        ZWJ * (2**20 // 3),
        VS16 * (2**20 // 3),
        f"👩{ZWJ}💻" * (2**20 // 11),
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067" * (2**20 // 24),
        "葛\U000e0100" * (2**20 // 7),
        "".join(map(chr, random.Random(7).choices(range(0x110000), k=2**18))),
    ],
    ids=["escape", "returns", "mixed", "joiners", "selectors", "emoji", "cut flags", "ideographs", "random"],
)
def test_a_hostile_megabyte_is_read_in_linear_time(text: str) -> None:
    within(20 * len(text), lambda: sanitize(text))
