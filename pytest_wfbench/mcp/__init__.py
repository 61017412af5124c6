"""A task's MCP servers: each in a sandbox of its own, which the agent's reaches by a socket alone."""
