"""Keys that are valid on one socket alone."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

PREFIX = "sk-wf-"


@dataclass(frozen=True)
class Claim:
    """What a key binds: whose it is, for which models, on which door, and until when.

    ``expires`` is in seconds of the monotonic clock: setting the machine's clock neither ends a key nor prolongs it.
    """

    cell_id: str
    session: str
    door: str
    models: tuple[str, ...]
    expires: int


def mint(secret: bytes, claim: Claim) -> str:
    """Return the key of a claim. Nothing of the claim can be read from it but its expiry."""
    return f"{PREFIX}{claim.expires:x}-{_signature(secret, claim)}"


def verify(secret: bytes, claim: Claim, key: str, now: float) -> bool:
    """Whether ``key`` is the one minted for the claim, and still alive."""
    return hmac.compare_digest(mint(secret, claim).encode(), key.encode("utf-8", "replace")) and now < claim.expires


def _signature(secret: bytes, claim: Claim) -> str:
    parts = (claim.cell_id, claim.session, claim.door, str(claim.expires), *claim.models)
    message = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    return hmac.new(secret, message, hashlib.sha256).hexdigest()
