"""The note for the model when the provider's filter has stopped its answer."""

from __future__ import annotations

from typing import Final

from codex_py.protocol.items import ResponseItem, message

_NOTE: Final = """\
<content_filter_guidance>
The provider's content filter stopped your last answer. Sending the same again, in other words or by other means, will \
be stopped again. Say in one or two sentences what cannot be done and what can be done instead, and go on with the \
parts of the work that are not affected.
</content_filter_guidance>"""


def content_filter_guidance() -> ResponseItem:
    """The developer message `<content_filter_guidance>`, appended before the request is made again."""
    return message("developer", _NOTE)
