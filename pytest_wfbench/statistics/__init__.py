"""Pure functions from rows to numbers."""
