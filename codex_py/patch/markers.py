"""The lines a patch begins and ends with, for those who only need to know one when they see it."""

from __future__ import annotations

from typing import Final

BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
