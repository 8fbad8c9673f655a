"""Copies the results of a batch to object storage, or wherever else fsspec can write."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from codex_py.batch.records import JUDGE_LOG, LOG, RECORD, RESULT
from codex_py.errors import UserError
from codex_py.text.credentials import masked_url
from codex_py.text.sanitize import sanitize_line

_FILES: Final = (RESULT, RECORD, "changes.patch", "transcript.md", "events.jsonl", LOG, JUDGE_LOG)


class Uploader:
    """Writes below a URL such as `s3://bucket/prefix`. Blocks, so call it in a thread."""

    def __init__(self, url: str) -> None:
        """Raises `UserError` where fsspec is missing, or does not know the address."""
        self._shown = masked_url(url)
        try:
            core: Any = import_module("fsspec.core")
        except ImportError as error:
            raise UserError("`--upload` needs fsspec", hint="install `codex-py[fsspec]`") from error
        try:
            self._files, root = core.url_to_fs(url)
        except (ImportError, OSError, ValueError) as error:
            raise UserError(f"cannot upload to `{self._shown}`: {sanitize_line(str(error))[:200]}") from error
        self._root: str = str(root).rstrip("/")

    def upload_task(self, directory: Path) -> None:
        """Copy the files of a task, not its working copy. Raises `UserError`."""
        self._put((directory / name for name in _FILES), f"{self._root}/{directory.name}")

    def upload_reports(self, reports: Iterable[Path]) -> None:
        """Copy the reports. Raises `UserError`."""
        self._put(reports, self._root)

    def _put(self, paths: Iterable[Path], target: str) -> None:
        try:
            self._files.makedirs(target, exist_ok=True)
            for path in paths:
                if path.is_file():
                    self._files.put_file(str(path), f"{target}/{path.name}")
        except (OSError, ValueError, RuntimeError) as error:
            raise UserError(f"cannot upload to `{self._shown}`: {sanitize_line(str(error))[:200]}") from error
