"""CASCADE-TS (Algorithm 2) and the two strategies that Lemma 2 compares it with.

A round deploys P policies. The strategies differ only in what a policy may know of the others:
`sequential` plans each policy after the real outcome of the one before it, `cascade_ts` after its
imagined outcome, and `single_policy_batch` plans one policy and plays it P times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from cascade.tabular.noise import Draws
from cascade.tabular.worlds import Belief, Model, Policy, World

NOT_REACHED = -1
_ROUNDS = 7  # place of Draws


# One round of a strategy: world, belief, population P, fake samples M and luck give the next belief.
Round = Callable[[World[Any, Any, Any], Any, int, int, Draws], Any]


def sequential(
    world: World[Belief, Model, Policy], belief: Belief, population: int, fake_samples: int, draws: Draws
) -> Belief:
    """Plan, play, learn, P times over: no population, so nothing need be imagined."""
    for i in range(population):
        luck = draws.at(i)
        policy = world.plan(world.sample(belief, luck), belief, luck)
        belief = world.deploy(belief, policy, 1, luck)
    return belief


def cascade_ts(
    world: World[Belief, Model, Policy], belief: Belief, population: int, fake_samples: int, draws: Draws
) -> Belief:
    """Algorithm 2, lines 5-14: each policy sees what the earlier ones are imagined to find."""
    imagined, policies = belief, []
    for i in range(population):
        luck = draws.at(i)
        model = world.sample(imagined, luck)
        policies.append(world.plan(model, imagined, luck))
        imagined = world.imagine(imagined, model, policies[-1], fake_samples, luck)
    for i, policy in enumerate(policies):
        belief = world.deploy(belief, policy, 1, draws.at(i))
    return belief


def single_policy_batch(
    world: World[Belief, Model, Policy], belief: Belief, population: int, fake_samples: int, draws: Draws
) -> Belief:
    """One policy, planned as the others plan their first, played P times."""
    luck = draws.at(0)
    policy = world.plan(world.sample(belief, luck), belief, luck)
    return world.deploy(belief, policy, population, luck)


STRATEGIES: dict[str, Round] = {
    "sequential": sequential,
    "cascade_ts": cascade_ts,
    "single_policy_batch": single_policy_batch,
}


@dataclass(frozen=True)
class Outcome:
    """Rounds each seed needed (NOT_REACHED if it never got there), and the accuracy after every round."""

    rounds: Int[np.ndarray, "S"]
    accuracy: Float[np.ndarray, "T S"]  # row 0 is before the first round


def rounds_to_accuracy(
    world: World[Any, Any, Any],
    strategy: Round,
    draws: Draws,
    *,
    population: int,
    epsilon: float,
    fake_samples: int = 1,
    max_rounds: int = 1000,
    on_round: Callable[[int, int], None] = lambda done, reached: None,
) -> Outcome:
    """T(ε, strategy) of Lemma 2 for every seed: the first round after which the accuracy is 1 - ε."""
    belief = world.prior()
    accuracy = [world.accuracy(belief)]
    reached = accuracy[0] >= 1.0 - epsilon - 1e-12
    rounds = np.where(reached, 0, NOT_REACHED)
    while not reached.all() and len(accuracy) <= max_rounds:
        belief = strategy(world, belief, population, fake_samples, draws.at(_ROUNDS, len(accuracy)))
        accuracy.append(world.accuracy(belief))
        now = ~reached & (accuracy[-1] >= 1.0 - epsilon - 1e-12)
        rounds[now] = len(accuracy) - 1
        reached |= now
        on_round(len(accuracy) - 1, int(reached.sum()))
    return Outcome(rounds, np.stack(accuracy))
