"""Measurements as ratios or medians of one run; never a test, since a clock is no judge on a busy machine."""
