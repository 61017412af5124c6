"""Agents: how each is started, and how its stream reads. No agent decides quality."""
