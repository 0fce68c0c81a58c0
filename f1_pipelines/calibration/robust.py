"""Robust least squares with a prior on each coefficient, in plain numpy."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HUBER = 1.345  # residuals above this many sd weigh less: 95 % efficient on normal noise (Huber 1964)


@dataclass(frozen=True)
class RobustFit:
    """Coefficients, their standard errors (posterior, assuming independent noise), and the residuals' MAD sd."""

    coef: np.ndarray
    se: np.ndarray
    scale: float


def mad_sd(residuals: np.ndarray) -> float:
    """Standard deviation from the median absolute deviation: 1.4826 MAD."""
    return float(1.4826 * np.median(np.abs(residuals - np.median(residuals)))) if len(residuals) else float("nan")


def huber_ridge(x: np.ndarray, y: np.ndarray, group: np.ndarray, groups: int, mean: np.ndarray, sd: np.ndarray,
                rounds: int = 12, floor: float = 0.05) -> RobustFit:
    """Minimise sum huber((y - level[group] - x b) / s) + sum ((b - mean) / sd)^2 / 2 by reweighting.

    s is the residuals' MAD sd. Each level is a 0/1 column, handled as group sums: that is quicker than multiplying by
    zeros, and no matrix becomes large enough for BLAS to start threads.

    Args:
        x: (n, k) regressors.
        y: (n,) response.
        group: (n,) group of each row, 0 .. groups - 1.
        mean, sd: (groups + k,) prior of each level and coefficient; infinite sd: no prior.
        floor: Lower limit of s [unit of y], needed when a few laps are fitted perfectly.

    Returns:
        Levels first, then coefficients.
    """
    # A column without data and prior would be singular: a precision of 1e-6 keeps it at its mean.
    strength = np.maximum(np.where(np.isinf(sd), 0.0, 1.0 / np.square(sd)), 1e-6)
    weight, scale = np.ones(len(y)), max(mad_sd(y) if len(y) else 1.0, floor)
    coef = mean.astype(float)
    for _ in range(rounds):
        gram, moment = _normal_equations(x, y, group, groups, weight / scale**2)
        new = np.linalg.solve(gram + np.diag(strength), moment + strength * mean)
        residual = y - new[group] - x @ new[groups:]
        scale = max(mad_sd(residual) if len(y) else 1.0, floor)
        weight = 1.0 / np.maximum(np.abs(residual) / (HUBER * scale), 1.0)
        done = np.allclose(new, coef, rtol=0, atol=1e-4)
        coef = new
        if done:
            break
    gram, _ = _normal_equations(x, y, group, groups, weight / scale**2)
    return RobustFit(coef, np.sqrt(np.diag(np.linalg.inv(gram + np.diag(strength)))), scale)


def _normal_equations(x: np.ndarray, y: np.ndarray, group: np.ndarray, groups: int,
                      weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted Gram matrix (groups + k, groups + k) and moments (groups + k,)."""
    xw = x * weight[:, None]
    cross = np.column_stack([np.bincount(group, column, groups) for column in xw.T]) if x.shape[1] else \
        np.zeros((groups, 0))
    gram = np.block([[np.diag(np.bincount(group, weight, groups)), cross], [cross.T, xw.T @ x]])
    return gram, np.r_[np.bincount(group, weight * y, groups), xw.T @ y]
