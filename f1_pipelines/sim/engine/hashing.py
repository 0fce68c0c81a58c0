"""Numbers that depend on names alone: the same on every machine and in every process."""
from __future__ import annotations

import hashlib


def stable_hash(*parts: object) -> int:
    """63 bits of the SHA-256 of `parts`, joined by colons; fits a numpy int64 and any seed."""
    return int.from_bytes(hashlib.sha256(":".join(map(str, parts)).encode()).digest()[:8], "big") >> 1


def stable_uniform(*parts: object) -> float:
    """A number in [0, 1), uniform over `parts`."""
    return stable_hash(*parts) / 2.0**63
