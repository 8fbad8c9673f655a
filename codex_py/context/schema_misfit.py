"""The note for the model when its answer does not fit the schema that the caller asked for."""

from __future__ import annotations

from codex_py.protocol.items import ResponseItem, message


def schema_misfit(problem: str) -> ResponseItem:
    """The developer message `<output_schema_error>`, appended before the answer is asked for once more."""
    note = (
        f"Your last message does not fit the required JSON schema: {problem}. Answer again with one JSON document that "
        "fits the schema, and nothing else: no prose, no code fence."
    )
    return message("developer", f"<output_schema_error>\n{note}\n</output_schema_error>")
