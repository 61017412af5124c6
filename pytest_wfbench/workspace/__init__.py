"""The private clone of a cell: template, start state, upper layers, and what was changed."""
