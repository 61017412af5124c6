"""Tokens and dollars, derived offline from what the gateway recorded."""
