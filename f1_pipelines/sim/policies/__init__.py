"""Policies (scripted, expert, oracle), and races played by them."""
from f1_pipelines.sim.policies.play import (
    DEGENERATE,
    POLICIES,
    Played,
    UnknownPolicy,
    as_text,
    play,
    played,
    policy_for,
)
from f1_pipelines.sim.policies.policy import Decision, Policy

__all__ = [
    "DEGENERATE", "POLICIES", "Decision", "Played", "Policy", "UnknownPolicy", "as_text", "play", "played",
    "policy_for",
]
