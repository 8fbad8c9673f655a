"""Recognizing credentials by their shape, and masking them in URLs and command lines that are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

# Each piece of text begins the shapes listed for it, so that a value without any of them costs no regular expression.
# A shape that starts with a letter must not continue a longer word: `disk-…` is not `sk-…`.
_TOKENS: Final[Mapping[str, str]] = {
    "eyJ": r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]+",
    "-----BEGIN ": r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
    "gh": r"gh[opsur]_[A-Za-z0-9]{20,}",
    "github_pat_": r"github_pat_\w{20,}",
    "gl": r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[\w-]{16,}",
    "sk-": r"sk-[\w-]{16,}",
    "k_live_": r"[rs]k_live_\w{16,}",
    "k_test_": r"[rs]k_test_\w{16,}",
    "whsec_": r"whsec_[\w+/=]{16,}",
    "xox": r"xox[a-z]-[\w.-]{10,}",
    "xapp-": r"xapp-[\w-]{10,}",
    "AKIA": r"AKIA[A-Z0-9]{16}\b",
    "ASIA": r"ASIA[A-Z0-9]{16}\b",
    "AIza": r"AIza[\w-]{30,}",
    "ya29.": r"ya29\.[\w-]{20,}",
    "GOCSPX-": r"GOCSPX-[\w-]{20,}",
    "npm_": r"npm_[A-Za-z0-9]{30,}",
    "pypi-": r"pypi-[\w-]{40,}",
    "hf_": r"hf_[A-Za-z0-9]{20,}",
    "gsk_": r"gsk_[A-Za-z0-9]{20,}",
    "xai-": r"xai-[A-Za-z0-9]{20,}",
    "nvapi-": r"nvapi-[\w-]{20,}",
    "SG.": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "dop_v1_": r"dop_v1_[a-f0-9]{32,}",
    "dckr_": r"dckr_[a-z]+_[\w-]{20,}",
    "hvs.": r"hvs\.[\w-]{20,}",
    "shp": r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    "lin_api_": r"lin_api_[A-Za-z0-9]{20,}",
    "ATATT3": r"ATATT3[\w=-]{20,}",
    "tskey-": r"tskey-[\w-]{16,}",
    "sntry": r"sntry[su]_[\w+/=-]{20,}",
    "AGE-SECRET-KEY-": r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    "hooks.slack.com/": r"hooks\.slack\.com/(?:services|workflows)/\S{16,}",
    "/api/webhooks/": r"/api/webhooks/\d+/[\w-]{16,}",
}
# What a password begins with that is not to be filled in yet, as in `password=$PASSWORD`.
_FILLED_IN: Final = r"[^;&\s$\"'`<{%*(/@]"
# The same for words, in any case of letters: passwords in addresses and connection strings, headers, cookies.
_WORDS: Final[Mapping[str, str]] = {
    "://": rf"://[^/\s:@]*:{_FILLED_IN}[^/\s@]*@",
    "@": r"^[^\s:/@]+:[^\s@]+@(?:tcp|unix)\(",
    "bearer ": r"\bbearer\s+[\w.~+/=-]{16,}",
    "basic ": r"\bbasic\s+(?=\S*[\d=+/])[\w+/=-]{12,}",
    "=": (
        rf"(?:\b|_)(?:password|passwd|pwd|accountkey|sharedaccesskey|_authtoken)\s*=\s*{_FILLED_IN}"
        r"|[?&](?:[\w-]{0,32}(?:token|secret|api_?key|signature)|sig|key)=[^&;\s$]{8,}"
        r"|(?:^|;\s*|cookie:\s*)[\w.-]{0,32}(?:sess|sid|auth|token|csrf|jwt)[\w.-]{0,32}=[^;\s$\"'(]{12,}(?:;|$)"
    ),
}

_SECRET_NAME: Final = (
    r"(?i)key|secret|token|passw|passphrase|credential|authorization|cookie|signature"
    r"|(?:^|[^a-z])(?:sig|auth|pass|pwd|dsn|pat|jwt)(?![a-z])"
)
_MIN_SEGMENT: Final = 8


def is_secret_name(name: str) -> bool:
    """Whether a setting, a variable, a header or a flag of this name holds something nobody else may read."""
    return re.search(_SECRET_NAME, name) is not None


def is_secret(name: str, value: str) -> bool:
    """Whether the value of a setting is a secret: by its name, its shape, or because it looks random.

    Only such values can be redacted everywhere: words, numbers, paths and plain addresses occur in any text.
    """
    return is_secret_name(name) or has_credential(value) or _looks_random(value)


def _looks_random(value: str) -> bool:
    if value.startswith(("/", "~", ".")) or "://" in value or any(map(str.isspace, value)):
        return False
    segments = re.split(r"[-_.:,=+/]", value)
    return any(
        len(segment) >= _MIN_SEGMENT and re.search(r"[A-Za-z]\d", segment) and re.search(r"\d[A-Za-z]", segment)
        for segment in segments
    )


def has_credential(text: str) -> bool:
    """Whether a credential of a known shape stands somewhere in the text; a text without one is cheap to check."""
    for start, shape in _TOKENS.items():
        if start in text and re.search(rf"(?<![A-Za-z0-9]){shape}" if start[0].isalpha() else shape, text):
            return True
    lower = text.lower()
    return any(start in lower and re.search(shape, lower) for start, shape in _WORDS.items())


def without_credentials(text: str) -> str:
    """A text with a mask in place of each credential of a known shape, and of what follows it up to a space."""
    if not has_credential(text):
        return text
    text = re.sub(r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-*|\Z)", MASK, text)
    for start, shape in _TOKENS.items():
        if start in text:
            text = re.sub(rf"(?<![A-Za-z0-9]){shape}" if start[0].isalpha() else shape, MASK, text)
    for shape in _WORDS.values():
        text = re.sub(rf"(?i)(?:{shape})[^\s\"'`<>;&]*", MASK, text)
    return text


MASK: Final = "*****"
# Patterns are compiled when first needed, which at most starts they are not.
_USERINFO: Final = r"(?<=://)[^/@\s]*@"
_QUERY: Final = r"(?<==)[^&#]+"
# `--name=value`, or `NAME=value` as in `env` and `docker run -e`.
_ASSIGNED: Final = r"(?s)(--?[\w.-]+|[A-Za-z_]\w*)=(.+)"
_HEADER: Final = r"(?s)([\w-]+):\s*(\S.*)"


class _Word(NamedTuple):
    """A word of a command line as it may be shown, and the secret in it, "" for none."""

    shown: str
    secret: str = ""


def masked_url(url: str) -> str:
    """An address without the password and the parameters it may carry."""
    plain = re.sub(_USERINFO, f"{MASK}@", url)
    head, mark, query = plain.partition("?")
    return head + mark + re.sub(_QUERY, MASK, query)


def url_secrets(url: str) -> tuple[str, ...]:
    """The password and the secret parameters in an address."""
    try:
        address = urlsplit(url)
        found = [address.password or "", *(value for name, value in parse_qsl(address.query) if is_secret(name, value))]
    except ValueError:
        return ()
    return tuple(value for value in found if value)


def masked_words(words: Sequence[str]) -> list[str]:
    """A command line without values of flags named like secrets, secret headers and credentials of known shapes."""
    return [word.shown for word in _words(words)]


def word_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """The secrets that `masked_words` leaves out."""
    return tuple(word.secret for word in _words(words) if word.secret)


def setting_secrets(values: Mapping[str, str]) -> Iterator[str]:
    """The secrets among the values of a table of variables, headers or parameters; of `Bearer x` also the `x`."""
    for name, value in values.items():
        if is_secret(name, value):
            yield value
            if " " in value:
                yield value.rpartition(" ")[2]
            yield from url_secrets(value)


def _words(words: Sequence[str]) -> Iterator[_Word]:
    after_secret = False
    for word in words:
        if after_secret and not word.startswith("--"):
            after_secret = False
            yield _Word(MASK, word)
            continue
        after_secret = word.startswith("-") and "=" not in word and is_secret_name(word)
        yield _word(word)


def _word(word: str) -> _Word:
    if (assigned := re.fullmatch(_ASSIGNED, word)) is not None:
        name, value = assigned.groups()
        if is_secret_name(name):
            return _Word(f"{name}={MASK}", value)
        inner = _word(value)
        return _Word(f"{name}={inner.shown}", inner.secret)
    if (header := re.fullmatch(_HEADER, word)) is not None and is_secret_name(header[1]):
        return _Word(f"{header[1]}: {MASK}", header[2])
    if "://" in word and (shown := masked_url(word)) != word:
        return _Word(shown, next(iter(url_secrets(word)), ""))
    return _Word(MASK, word) if has_credential(word) else _Word(word)
