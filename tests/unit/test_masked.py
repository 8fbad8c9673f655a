"""Command lines and addresses as they are shown, and the secrets in them."""

from __future__ import annotations

import pytest

from codex_py.text.credentials import MASK, masked_words, setting_secrets, url_secrets, word_secrets


@pytest.mark.parametrize(
    ("words", "shown", "secrets"),
    [
        (["-y", "server", "--stdio"], ["-y", "server", "--stdio"], ()),
        (["--token", "hunter22", "--port", "80"], ["--token", MASK, "--port", "80"], ("hunter22",)),
        (["--api-key=hunter22"], [f"--api-key={MASK}"], ("hunter22",)),
        (["--password", "-hunter22"], ["--password", MASK], ("-hunter22",)),
        (["--token", "--verbose"], ["--token", "--verbose"], ()),
        (["-e", "API_TOKEN=hunter22"], ["-e", f"API_TOKEN={MASK}"], ("hunter22",)),
        (["-H", "X-Api-Key: hunter22"], ["-H", f"X-Api-Key: {MASK}"], ("hunter22",)),
        (["--header=Authorization: hunter22"], [f"--header=Authorization: {MASK}"], ("hunter22",)),
        (["ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0"], [MASK], ("ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0",)),
        (["postgres://u:hunter22@h/db"], [f"postgres://{MASK}@h/db"], ("hunter22",)),
        (["https://h/mcp?api_key=hunter22&v=1"], [f"https://h/mcp?api_key={MASK}&v={MASK}"], ("hunter22",)),
        (["--keyfile", "/etc/key.pem"], ["--keyfile", MASK], ("/etc/key.pem",)),
    ],
)
def test_secrets_of_a_command_line_are_masked_and_known(
    words: list[str], shown: list[str], secrets: tuple[str, ...]
) -> None:
    assert masked_words(words) == shown
    assert word_secrets(words) == secrets


def test_of_settings_what_looks_like_a_secret_is_one() -> None:
    values = {
        "API_TOKEN": "hunter22",
        "Authorization": "Bearer hunter22",
        "DB": "postgres://u:hunter33@h/db",
        "X-Team-Id": "f3a9c2d17b604e55",
        "NODE_ENV": "production",
        "REGION": "us-east-1",
        "MODEL": "gpt-5.1-codex-max",
        "CACHE": "/home/me/cache1a2b3c4d",
        "SITE": "https://example.com/a1b2c3d4e5",
        "WHEN": "2026-01-01",
    }
    assert list(setting_secrets(values)) == [
        "hunter22",
        "Bearer hunter22",
        "hunter22",
        "postgres://u:hunter33@h/db",
        "hunter33",
        "f3a9c2d17b604e55",
    ]


def test_an_address_that_makes_no_sense_has_no_secrets() -> None:
    assert url_secrets("http://[x") == ()
