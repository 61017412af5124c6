"""Processes and namespaces: the one way to run a command, in bubblewrap or, unsafely, on the host."""
