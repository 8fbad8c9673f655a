from __future__ import annotations

import json
import random
import string
import time

import pytest

from codex_py.text.redact import Redactor

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


def test_many_secrets_and_hostile_text_stay_quick() -> None:
    letters = random.Random(3)
    redactor = Redactor("sk-proj-" + "".join(letters.choices(string.ascii_letters, k=40)) for _ in range(1000))
    started = time.process_time()
    for text in ("sk-proj-" * 2**17, "s" * 2**20, "hello world " * 87_000):
        assert redactor.redact(text) is text
    assert time.process_time() - started < 2
