"""Lemma 1 by enumeration: how much a tuple of policies tells about the model, exactly.

The posterior is uniform over models, and everything is deterministic, so a policy's embedding Φ (its
final state) is a function of the model: `endpoints[m, i]` is where policy i ends in model m. Then the
conditional entropy vanishes and I(∏ P^Φ_π ; M) is the entropy of the joint endpoints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from jaxtyping import Float, Int

Endpoints = Int[np.ndarray, "M K"]


def entropy(probabilities: Float[np.ndarray, "K"]) -> float:
    """Shannon entropy in nats, with 0 log 0 = 0."""
    positive = probabilities[probabilities > 0.0]
    return float(-(positive * np.log(positive)).sum())


def last_layer_endpoints(height: int, ordered: bool = True) -> Endpoints:
    """All trees whose last layer is unknown (proof of Lemma 1), as the leaf under each action sequence.

    `ordered`: any of the (2^L)! placements of the leaves. Otherwise only who is whose parent is unknown:
    the smaller label of two siblings is always under action 0.
    """
    placements = np.array(list(permutations(range(2**height))))
    if ordered:
        return placements
    return placements[(placements[:, 0::2] < placements[:, 1::2]).all(axis=1)]


def information(endpoints: Endpoints, policies: Sequence[int]) -> float:
    """I(∏_i P^Φ_π(i) ; M) in nats for one tuple of policies."""
    code = np.zeros(len(endpoints), dtype=np.int64)
    for policy in dict.fromkeys(policies):  # a repeated policy adds no outcome
        _, place = np.unique(endpoints[:, policy], return_inverse=True)
        _, code = np.unique(code * (int(place.max()) + 1) + place, return_inverse=True)
    return entropy(np.bincount(code) / len(code))


def info_cascade(endpoints: Endpoints, population: int) -> tuple[int, ...]:
    """InfoCascade: each policy maximises the information of the tuple so far; ties go to a new policy."""
    chosen: list[int] = []
    for _ in range(population):
        gains = [round(information(endpoints, [*chosen, i]), 12) for i in range(endpoints.shape[1])]
        chosen.append(max(range(len(gains)), key=lambda i: (gains[i], i not in chosen, -i)))
    return tuple(chosen)


@dataclass(frozen=True)
class Lemma1:
    """Information in nats: of the best tuple, of the best repeated policy and of the greedy tuple."""

    best: float
    best_repeated: float
    greedy: float
    greedy_ratio: float
    distinct: bool  # the best is reached by a tuple without repetition


def lemma1(endpoints: Endpoints, population: int) -> Lemma1:
    """Lemma 1 over every tuple of `population` policies.

    The information of a tuple depends only on which policies occur in it, so the maximum over all
    tuples is the maximum over all sets of at most `population` policies.
    """
    policies = range(endpoints.shape[1])
    by_size = [
        max(information(endpoints, chosen) for chosen in combinations(policies, size))
        for size in range(1, min(population, len(policies)) + 1)
    ]
    best = max(by_size)
    greedy = information(endpoints, info_cascade(endpoints, population))
    distinct = len(by_size) == population and by_size[-1] >= best - 1e-12
    ratio = greedy / best if best > 0.0 else 1.0
    return Lemma1(best, by_size[0], greedy, ratio, distinct)
