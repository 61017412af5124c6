"""Paired, sandboxed, metered evaluation of coding agents as pytest items."""

__version__ = "0.1.0"
