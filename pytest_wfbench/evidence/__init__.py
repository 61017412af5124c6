"""Rows and files: what a sweep leaves behind, and how secrets are kept out of it."""
