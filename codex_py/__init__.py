"""A terminal coding agent with skills."""

__version__ = "0.1.0"
