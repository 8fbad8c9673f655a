"""A keyring for the `keyring` library that keeps its entries in the file that `FILE_KEYRING` names."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend


class FileKeyring(KeyringBackend):
    """Chosen with `PYTHON_KEYRING_BACKEND`."""

    priority = 1  # pyright: ignore[reportAssignmentType]

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._path.write_text(json.dumps({**self._read(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        entries = self._read()
        del entries[f"{service}/{username}"]
        self._path.write_text(json.dumps(entries))

    @property
    def _path(self) -> Path:
        return Path(os.environ["FILE_KEYRING"])

    def _read(self) -> dict[str, str]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}
