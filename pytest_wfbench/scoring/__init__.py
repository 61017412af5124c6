"""What decides a cell's outcome: it sees files and exit codes, and no provider."""
