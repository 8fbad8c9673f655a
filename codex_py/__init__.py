"""A terminal coding agent with skills."""

__version__ = "0.2.0.dev0"
