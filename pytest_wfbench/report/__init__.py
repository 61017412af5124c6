"""Readers of rows for people and machines: one verdict, one summary, and their renderings."""
