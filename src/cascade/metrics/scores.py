"""Scores over many skills, as Crafter defines them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float


def skill_success(unlocked: Bool[np.ndarray, "episodes skills"]) -> Float[np.ndarray, " skills"]:
    """Per cent of episodes in which each skill was unlocked; 0 where there are no episodes."""
    return 100.0 * unlocked.sum(axis=0) / max(len(unlocked), 1)


def crafter_score(success: Float[np.ndarray, " skills"]) -> float:
    """exp(mean ln(1 + s)) - 1 with s in per cent: 0 to 100, and one skill never seen does not make it 0."""
    if not len(success) or not ((success >= 0) & (success <= 100)).all():
        raise ValueError("success: expected per cent from 0 to 100, of one skill or more")
    return float(np.expm1(np.log1p(success).mean()))


def unique_skills(unlocked: Bool[np.ndarray, "episodes skills"]) -> int:
    """How many skills were unlocked at least once."""
    return int(unlocked.any(axis=0).sum())
