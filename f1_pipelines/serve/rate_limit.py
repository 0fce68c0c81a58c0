"""Rate limits: a token bucket for each address."""
from __future__ import annotations

from collections.abc import Callable

MAX_ADDRESSES = 10_000  # kept at once; the memory of a flood is bounded


class TokenBucket:
    """`burst` at once, then `per_s` a second."""

    def __init__(self, per_s: float, burst: float, now_s: float) -> None:
        self._per_s, self._burst, self._left, self._then_s = per_s, burst, burst, now_s

    def take(self, now_s: float) -> float:
        """Take one: 0, or how long until there is one again [s]."""
        self._left = min(self._burst, self._left + (now_s - self._then_s) * self._per_s)
        self._then_s = now_s
        if self._left < 1.0:
            return (1.0 - self._left) / self._per_s
        self._left -= 1.0
        return 0.0


class RateLimiter:
    """A bucket for each address, the ones that asked last."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._held: dict[str, TokenBucket] = {}

    def take(self, address: str) -> float:
        """Take one for that address: 0, or how long until there is one again [s]."""
        now_s = self._clock()
        bucket = self._held.pop(address, None) or TokenBucket(self._per_s, self._burst, now_s)
        self._held[address] = bucket  # last
        if len(self._held) > MAX_ADDRESSES:
            del self._held[next(iter(self._held))]
        return bucket.take(now_s)
