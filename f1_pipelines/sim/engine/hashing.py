"""Numbers that depend only on names: the same on every machine and in every process."""
from __future__ import annotations

import hashlib


def stable_hash_64(*parts: object) -> int:
    """The first 64 bits of the SHA-256 of `parts`, joined by colons."""
    return int.from_bytes(hashlib.sha256(":".join(map(str, parts)).encode()).digest()[:8], "big")


def stable_hash(*parts: object) -> int:
    """The first 63 bits of the SHA-256 of `parts`, joined by colons; fits a numpy int64 and any seed."""
    return stable_hash_64(*parts) >> 1


def stable_uniform(*parts: object) -> float:
    """A number in [0, 1), uniform over `parts`."""
    return stable_hash(*parts) / 2.0**63
