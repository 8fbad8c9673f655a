"""Texts of a session for other people's eyes: without secrets, with `~` for the home directory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.schema import Config
from codex_py.config.secret_values import secret_values
from codex_py.protocol.encoding import as_list, as_object, encode_json
from codex_py.text.credentials import has_credential, is_secret, without_credentials
from codex_py.text.redact import Redactor

_MIN_SECRET: Final = 8
_AUTH_FILE: Final = "auth.json"


def path_pattern(directory: str) -> re.Pattern[str]:
    """Where a directory stands in a text, alone or before the rest of a path: not inside a longer name.

    It may follow `file://`, or a line break that is escaped as in JSON.
    """
    begins = r"(?:(?<![\w/.-])|(?<=file://)|(?<=\\[nrt]))"
    return re.compile(rf"{begins}{re.escape(directory)}(?=[/\s\"'`:;,)\]}}>\\]|<|$)")


def replace_texts(value: Any, replace: Callable[[str], str]) -> Any:
    """A JSON value with all of its texts and names replaced, but not content encrypted by the provider."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, list):
        return [replace_texts(item, replace) for item in as_list(cast("object", value))]
    if isinstance(value, dict):
        return {
            replace(key): item if key == "encrypted_content" else replace_texts(item, replace)
            for key, item in as_object(cast("object", value)).items()
        }
    return value


class TextCleaner:
    """Takes secrets out of texts: known ones by their value, others by their shape."""

    def __init__(self, redactor: Redactor, user_home: str) -> None:
        self._redactor = redactor
        home = user_home.rstrip("/")
        self._home = path_pattern(home) if len(home) > 1 else None
        self._home_text = home

    def clean(self, text: str) -> str:
        """A text of people or programs."""
        text = without_credentials(self._redactor.redact(text))
        return self._home.sub("~", text) if self._home is not None and self._home_text in text else text

    def clean_all(self, texts: Sequence[str]) -> Sequence[str]:
        """Several texts, which costs little more than one where there is nothing to take out."""
        joined = "\0".join(texts)
        return texts if self._is_clean(joined) else [self.clean(text) for text in texts]

    def _is_clean(self, text: str) -> bool:
        return self._home_text not in text and self._redactor.redact(text) is text and not has_credential(text)

    def clean_record(self, value: dict[str, Any]) -> bytes:
        """A JSON object as bytes. Content encrypted by the provider stays unchanged."""
        raw = encode_json(value)
        text = raw.decode("utf-8", "replace")
        if self._is_clean(text):
            return raw
        return encode_json(replace_texts(value, self.clean))


def session_cleaner(home: Path, config: Config, env: Mapping[str, str]) -> TextCleaner:
    """Knows the secrets of the configuration, of `env` and of the logins below `home`."""
    named = [value for name, value in env.items() if not value.startswith("/") and is_secret(name, value)]
    secrets = (*secret_values(config, env), *named, *_login_secrets(home))
    return TextCleaner(Redactor(secret for secret in secrets if len(secret) >= _MIN_SECRET), env.get("HOME", ""))


def _login_secrets(home: Path) -> Iterator[str]:
    try:
        value = json.loads((home / _AUTH_FILE).read_bytes())
    except (OSError, ValueError):
        return
    waiting: list[Any] = [value]
    while waiting:
        found = waiting.pop()
        waiting += [*as_object(found).values(), *as_list(found)]
        if isinstance(found, str) and len(found) > 2 * _MIN_SECRET and " " not in found:
            yield found
