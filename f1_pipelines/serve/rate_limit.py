"""Rate limits: one token bucket per address."""
from __future__ import annotations

from collections.abc import Callable

MAX_ADDRESSES = 10_000  # bounds the memory if many addresses send requests


class TokenBucket:
    """Allows `burst` requests at once, then `per_s` requests per second."""

    def __init__(self, per_s: float, burst: float, now_s: float) -> None:
        self._per_s, self._burst, self._tokens, self._updated_s = per_s, burst, burst, now_s

    def take(self, now_s: float) -> float:
        """Take a token. Returns 0, or the time until one is available [s]."""
        self._tokens = min(self._burst, self._tokens + (now_s - self._updated_s) * self._per_s)
        self._updated_s = now_s
        if self._tokens < 1.0:
            return (1.0 - self._tokens) / self._per_s
        self._tokens -= 1.0
        return 0.0


class RateLimiter:
    """One bucket per address, for the most recently active addresses."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._buckets: dict[str, TokenBucket] = {}  # the most recently active last

    def take(self, address: str) -> float:
        """Take a token for an address. Returns 0, or the time until one is available [s]."""
        now_s = self._clock()
        bucket = self._buckets.pop(address, None) or TokenBucket(self._per_s, self._burst, now_s)
        self._buckets[address] = bucket
        if len(self._buckets) > MAX_ADDRESSES:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now_s)
