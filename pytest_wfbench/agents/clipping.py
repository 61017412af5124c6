"""How long texts are shortened, by the harness and by a program in the sandbox."""

from __future__ import annotations

# How much of a tool's output is kept, in characters.
OUTPUT_CLIP = 4096


def clip(text: str, limit: int = OUTPUT_CLIP) -> str:
    """Shorten a text to about ``limit`` characters: its head, how much is missing, its tail."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
