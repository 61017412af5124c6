"""Scripted answers in the wire formats of the providers, streamed and whole."""
