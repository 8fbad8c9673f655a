from __future__ import annotations

import base64
import json
import random
import string
import urllib.parse

import pytest

from codex_py.text.redact import HeldBack, Redactor

KEY = "sk-proj-0123456789abcdef"


def test_a_secret_is_replaced_wherever_it_stands() -> None:
    redactor = Redactor([KEY])
    assert redactor.redact(f"{KEY} x{KEY}y\n{KEY}{KEY}") == "[redacted] x[redacted]y\n[redacted][redacted]"
    assert redactor.redact_bytes(f"key={KEY}".encode() + b"\xff") == b"key=[redacted]\xff"


def test_text_without_a_secret_is_handed_back_as_it_is() -> None:
    text, raw = "nothing to hide, sk-proj-0123", b"nothing"
    assert Redactor([KEY]).redact(text) is text
    assert Redactor([KEY]).redact_bytes(raw) is raw
    assert Redactor().redact(text) is text
    assert Redactor().redact_bytes(raw) is raw


@pytest.mark.parametrize("secret", ["", "short", "1234567", "       a       "])
def test_short_values_would_blot_out_words_and_are_ignored(secret: str) -> None:
    assert Redactor([secret]).redact("a short 1234567 text") == "a short 1234567 text"


def test_blanks_around_a_value_do_not_count() -> None:
    assert Redactor([f"  {KEY}\n"]).redact(f"<{KEY}>") == "<[redacted]>"


def test_the_longest_secret_wins() -> None:
    redactor = Redactor(["secret-one", "secret-one-longer", "secret-two"])
    assert redactor.redact("secret-one secret-one-longer secret-one-long secret-two secret-three") == (
        "[redacted] [redacted] [redacted]-long [redacted] secret-three"
    )


def test_a_secret_inside_json_text_is_found() -> None:
    secret = 'pä"ss\\wo\trd é'
    redactor = Redactor([secret])
    for line in (json.dumps({"k": secret}), json.dumps({"k": secret}, ensure_ascii=False)):
        assert redactor.redact(line) == '{"k": "[redacted]"}'
        assert redactor.redact_bytes(line.encode()) == b'{"k": "[redacted]"}'


def test_marks_of_patterns_are_plain_characters() -> None:
    assert Redactor(["a.*b(c)[d]+"]).redact("a.*b(c)[d]+ axxb(c)[d]+") == "[redacted] axxb(c)[d]+"


def test_secrets_in_other_scripts_work_in_text_and_bytes() -> None:
    secrets = [chr(0x4E00 + number) * 8 for number in range(500)]
    redactor = Redactor(secrets)
    text = f"x{secrets[7]}y{secrets[499]}"
    assert redactor.redact(text) == "x[redacted]y[redacted]"
    assert redactor.redact_bytes(text.encode()) == b"x[redacted]y[redacted]"


def test_secrets_that_begin_with_each_other_do_not_nest_for_ever() -> None:
    redactor = Redactor("a" * length for length in range(8, 200))
    assert redactor.redact("b" + "a" * 199 + "b") == "b[redacted]b"


def test_a_lone_surrogate_is_no_trouble() -> None:
    assert Redactor(["abc\udc80defgh"]).redact("abc\udc80defgh \udc80") == "[redacted] \udc80"


def test_hostile_text_without_a_secret_is_left_as_it_is() -> None:
    letters = random.Random(3)
    redactor = Redactor("sk-proj-" + "".join(letters.choices(string.ascii_letters, k=40)) for _ in range(1000))
    for text in ("sk-proj-" * 2**17, "s" * 2**20, "hello world " * 87_000):
        assert redactor.redact(text) is text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pin 1234, 1234", "pin [redacted], [redacted]"),
        ("1234", "[redacted]"),
        ("x1234 12345 _1234 1234b", "x1234 12345 _1234 1234b"),
        ("a-1234-b", "a-[redacted]-b"),
        ("é1234é", "é[redacted]é"),
        (json.dumps("a\n1234\n"), '"a\\n[redacted]\\n"'),
        (json.dumps("é1234"), '"\\u00e9[redacted]"'),
        ("abcdefgh x-long-abcdefgh-one", "[redacted] x-long-[redacted]-one"),
        ("the cat", "the cat"),
    ],
)
def test_what_the_user_typed_is_hidden_from_four_characters_on(text: str, shown: str) -> None:
    redactor = Redactor(typed=["1234", "cat", "abcdefgh"])
    assert redactor.redact(text) == shown
    assert redactor.redact_bytes(text.encode()) == shown.encode()


def in_pieces(pieces: list[str], redactor: Redactor) -> list[str]:
    held = HeldBack()
    return [held.feed(piece, redactor) for piece in pieces] + [held.end(redactor)]


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["key ", "sk-proj-0123", "456789abcdef!"], ["key ", "", "[redacted]!", ""]),
        ([*KEY, "."], [""] * (len(KEY) - 1) + ["[redacted]", ".", ""]),
        (["sk-proj", "ect"], ["", "sk-project", ""]),
        (["so s", "k-pr"], ["so ", "", "sk-pr"]),
        (["sk-sk-proj-", KEY], ["sk-", "sk-proj-[redacted]", ""]),
        (["pin 12", "34", "5 and 12", "34"], ["pin ", "", "12345 and ", "", "[redacted]"]),
        (["x", "1234", " "], ["x", "", "1234 ", ""]),
        ([], [""]),
    ],
)
def test_only_what_may_be_the_beginning_of_a_secret_is_held_back(pieces: list[str], shown: list[str]) -> None:
    assert in_pieces(pieces, Redactor([KEY], typed=["1234"])) == shown


def test_without_secrets_pieces_pass_as_they_are() -> None:
    assert in_pieces(["a", "", "b"], Redactor()) == ["a", "", "b", ""]


def test_a_text_in_pieces_shows_what_the_whole_text_shows() -> None:
    chance = random.Random(7)
    for _ in range(1000):
        secrets = ["".join(chance.choices("ab", k=chance.randint(8, 12))) for _ in range(chance.randint(1, 4))]
        typed = ["".join(chance.choices("ab-", k=chance.randint(1, 9))) for _ in range(chance.randint(0, 3))]
        redactor = Redactor(secrets, typed)
        pieces = [
            chance.choice(secrets) if chance.random() < 0.2 else "".join(chance.choices("ab- ", k=chance.randint(0, 6)))
            for _ in range(chance.randint(0, 20))
        ]
        assert "".join(in_pieces(pieces, redactor)) == redactor.redact("".join(pieces)), (secrets, typed, pieces)


def test_a_long_text_in_pieces_is_not_kept() -> None:
    redactor = Redactor(["a" * 2000 + "b", "-----BEGIN KEY-----\n" + "c" * 2000])
    shown = in_pieces(["a" * 50] * 200, redactor)
    assert "".join(shown) == "a" * 10_000
    assert max(map(len, shown)) == 2000


@pytest.mark.parametrize("secret", [KEY, "pä/ss+wö?rd&=%", "12345678", "x" * 200 + "?" * 9])
@pytest.mark.parametrize("before", ["", "a", "ab", "KEY="])
def test_a_secret_is_found_in_the_encodings_that_a_command_prints(secret: str, before: str) -> None:
    raw = f"{before}{secret}\n".encode()
    urlsafe = base64.urlsafe_b64encode(raw).decode()
    for encoded in (
        base64.b64encode(raw).decode(),
        urlsafe,
        raw.hex(),
        raw.hex().upper(),
        urllib.parse.quote(raw, safe=""),
        urllib.parse.quote_plus(raw),
        urllib.parse.quote(raw, safe="").lower().replace(secret.lower(), secret),
    ):
        shown = Redactor([secret]).redact(f"out: {encoded}!")
        assert "[redacted]" in shown
        # What is left is what stood around it, and at most the two characters that hold bits of both.
        assert len(shown) <= len("out: [redacted]!") + len(before) * 3 + 6
        assert Redactor([secret]).redact_bytes(f"out: {encoded}!".encode()) == shown.encode()


@pytest.mark.parametrize("width", [76, 64])
def test_a_long_secret_is_found_in_wrapped_lines(width: int) -> None:
    secret = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=164))
    encoded = base64.b64encode(secret.encode()).decode()
    lines = [encoded[start : start + width] for start in range(0, len(encoded), width)]
    shown = Redactor([secret]).redact("\n".join(lines))
    assert not [line for line in lines if len(line) >= 12 and line in shown]


def test_an_encoded_secret_is_held_back_while_it_comes() -> None:
    encoded = base64.b64encode(KEY.encode()).decode()
    shown = in_pieces(["it is ", *encoded, " there"], Redactor([KEY]))
    assert "".join(shown) == "it is [redacted] there"
