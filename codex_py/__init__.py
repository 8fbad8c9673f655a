"""A terminal coding agent with skills."""

import sys

__version__ = "0.2.0.dev0"

# `import httpx` also imports its own command line, with click, rich and pygments, where these are installed. An entry
# without a module stops that, and httpx provides for it.
# No import but `sys`, since `cli.entry` has not left out the current directory yet; `vars` is for the type checker.
vars(sys)["modules"]["httpx._main"] = None
