"""Uncertainty bonuses and the policies that maximise them in a sampled model (Algorithm 2, lines 9-11)."""

import numpy as np
from jaxtyping import Float, Int

from cascade.tabular.mdp import Labels, Transition
from cascade.tabular.noise import Draws
from cascade.tabular.posterior import Counts

TIE_BREAK = 1e-9


def bonuses(counts: Counts, horizon: int) -> Counts:
    """b(s, a) = 1/sqrt(N(s, a)), and 2L for a pair never tried, real or imagined (proof of Lemma 2)."""
    return np.where(counts > 0, 1.0 / np.sqrt(np.maximum(counts, 1.0)), 2.0 * horizon)


def plan_tree(labels: Labels, counts: Counts, draws: Draws) -> Int[np.ndarray, "S I"]:
    """Best action at every inner position of a sampled tree: value iteration, one sweep from the leaves.

    Equally good actions are told apart at random.
    """
    seeds, nodes = labels.shape
    inner = (nodes - 1) // 2
    height = int(np.log2(nodes + 1)) - 1
    bonus = bonuses(np.take_along_axis(counts, labels[:, :inner, None], axis=1), height)
    bonus = bonus + TIE_BREAK * draws.uniform(inner, 2)
    actions = np.empty((seeds, inner), dtype=np.int64)
    value = np.zeros((seeds, 2**height))
    for depth in reversed(range(height)):
        layer = slice(2**depth - 1, 2 ** (depth + 1) - 1)
        q = bonus[:, layer] + value.reshape(seeds, -1, 2)
        right = q[..., 1] > q[..., 0]
        actions[:, layer] = right
        value = np.where(right, q[..., 1], q[..., 0])
    return actions


def follow_tree(actions: Int[np.ndarray, "S I"], height: int) -> Int[np.ndarray, "S D"]:
    """The positions met from the root under the action of each position."""
    path = np.zeros((len(actions), height + 1), dtype=np.int64)
    for step in range(height):
        here = path[:, step : step + 1]
        path[:, step + 1] = (2 * here + 1 + np.take_along_axis(actions, here, axis=1))[:, 0]
    return path


def plan_mdp(model: Transition, counts: Counts, horizon: int, draws: Draws) -> Int[np.ndarray, "S H N"]:
    """Best action for every step and state of a stochastic model: finite-horizon value iteration."""
    seeds, states, actions, _ = model.shape
    bonus = bonuses(counts, horizon) + TIE_BREAK * draws.uniform(states, actions)
    policy = np.empty((seeds, horizon, states), dtype=np.int64)
    flat, value = model.reshape(seeds, states * actions, states), np.zeros((seeds, states))
    for step in reversed(range(horizon)):
        q = bonus + (flat @ value[..., None]).reshape(seeds, states, actions)
        policy[:, step] = q.argmax(axis=-1)
        value = q.max(axis=-1)
    return policy


def rollout_mdp(
    model: Transition, policy: Int[np.ndarray, "S H N"], times: int, draws: Draws
) -> tuple[Int[np.ndarray, "S K H+1"], Int[np.ndarray, "S K H"]]:
    """States and actions of `times` independent episodes per seed, all from state 0."""
    seeds, horizon, _ = policy.shape
    states = np.zeros((seeds, times, horizon + 1), dtype=np.int64)
    actions = np.zeros((seeds, times, horizon), dtype=np.int64)
    rows = np.arange(seeds)[:, None]
    luck = draws.uniform(times, horizon)
    cumulative: Float[np.ndarray, "S N A N"] = np.cumsum(model, axis=-1)
    for step in range(horizon):
        here = states[:, :, step]
        actions[:, :, step] = policy[rows, step, here]
        odds = cumulative[rows, here, actions[:, :, step]]
        states[:, :, step + 1] = (odds < luck[:, :, step, None] * odds[..., -1:]).sum(axis=-1)
    return states, actions
