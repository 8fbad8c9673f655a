"""A terminal coding agent with skills."""

import sys
from types import ModuleType
from typing import cast

__version__ = "0.2.0.dev0"

# `import httpx` also imports its own command line, with click, rich and pygments, where these are installed. An entry
# without a module stops that, and httpx provides for it.
sys.modules["httpx._main"] = cast(ModuleType, None)
