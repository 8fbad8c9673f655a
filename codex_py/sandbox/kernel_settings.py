"""The files through which the kernel is configured, and whether this user could.

Whoever owns them can write them in a new `/proc` too, capabilities or not. Imported by the stage: keep it small.
"""

from __future__ import annotations

import os
from typing import Final

KERNEL_SETTINGS: Final = ("/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr")
_SAMPLE_SETTING: Final = "/proc/sys/kernel/core_pattern"


def owns_kernel_settings() -> bool:
    """Whether they belong to this user: to uid 0, which may have another number in a container."""
    return os.geteuid() == 0 or os.access(_SAMPLE_SETTING, os.W_OK)
