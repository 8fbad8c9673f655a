"""Addresses and command lines as they can be shown to anybody: without the secrets people write into them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from codex_py.text.credentials import has_credential, is_secret, is_secret_name

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
