"""The comparison of Lemma 2 as one experiment: settings in, a plain record of results out."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int

from cascade.tabular.cascade_ts import NOT_REACHED, STRATEGIES, Outcome, rounds_to_accuracy
from cascade.tabular.noise import Draws
from cascade.tabular.worlds import World, grid_world, stochastic_world, tree_world

OnRound = Callable[[str, int, int], None]
CURVE_POINTS = 400


@dataclass(frozen=True)
class Experiment:
    """Everything that decides the numbers."""

    world: str
    height: int
    population: int
    epsilon: float
    seeds: tuple[int, ...]
    strategies: tuple[str, ...]
    fake_samples: int
    policies: str
    states: int
    actions: int
    side: int
    max_rounds: int

    def build(self, draws: Draws) -> World[Any, Any, Any]:
        """The true world of every seed."""
        if self.world == "tree":
            return tree_world(draws, self.height, react=self.policies == "states")
        if self.world == "grid":
            return grid_world(draws, self.height, self.side)
        return stochastic_world(draws, self.height, self.states, self.actions)

    def run(self, on_round: OnRound = lambda strategy, done, reached: None) -> dict[str, Outcome]:
        """Every strategy on the same worlds, with the same luck where they ask for the same thing."""
        draws = Draws.of(self.seeds)
        world = self.build(draws)
        outcomes = {}
        for name in self.strategies:
            outcomes[name] = rounds_to_accuracy(
                world,
                STRATEGIES[name],
                draws,
                population=self.population,
                epsilon=self.epsilon,
                fake_samples=self.fake_samples,
                max_rounds=self.max_rounds,
                on_round=lambda done, reached, name=name: on_round(name, done, reached),  # type: ignore[misc]
            )
        return outcomes

    def settings(self) -> dict[str, Any]:
        """The settings that matter for this world, as they go into the record."""
        unused = {
            "tree": {"states", "actions", "side"},
            "stochastic": {"policies", "side"},
            "grid": {"policies", "states", "actions"},
        }[self.world]
        record = {key: value for key, value in asdict(self).items() if key not in unused}
        return record | {"seeds": list(self.seeds), "strategies": list(self.strategies)}


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95% confidence interval."""

    mean: float
    low: float
    high: float
    missing: int  # seeds that never got there; they count as the last round, so the mean is a lower bound


def interval(rounds: Int[np.ndarray, "S"], max_rounds: int, resamples: int = 2000) -> Interval:
    """The mean number of rounds with a percentile bootstrap over seeds (itself seeded)."""
    missing = rounds == NOT_REACHED
    values = np.where(missing, max_rounds, rounds).astype(float)
    picks = np.random.default_rng(0).integers(len(values), size=(resamples, len(values)))
    low, high = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    return Interval(float(values.mean()), float(low), float(high), int(missing.sum()))


def rounds_record(outcomes: dict[str, Outcome]) -> dict[str, list[int | None]]:
    """Rounds per seed; null where the accuracy was never reached."""
    return {
        name: [None if value == NOT_REACHED else int(value) for value in outcome.rounds]
        for name, outcome in outcomes.items()
    }


def _curve(outcome: Outcome) -> dict[str, list[Any]]:
    rounds = np.arange(len(outcome.accuracy))
    if len(rounds) > CURVE_POINTS:
        rounds = np.unique(np.geomspace(1, len(rounds), CURVE_POINTS).astype(int) - 1)
    accuracy = outcome.accuracy[rounds]
    low, high = np.quantile(accuracy, [0.1, 0.9], axis=1)
    columns = {"mean": accuracy.mean(axis=1), "low": low, "high": high}
    return {"round": rounds.tolist()} | {key: value.round(5).tolist() for key, value in columns.items()}


def full_record(experiment: Experiment, outcomes: dict[str, Outcome], on_round: OnRound) -> dict[str, Any]:
    """What the figures are drawn from: rounds, summary, accuracy by round, rounds by population."""
    populations = sorted({2**k for k in range(experiment.population.bit_length())} | {experiment.population})
    by_population: dict[str, list[dict[str, float]]] = {name: [] for name in outcomes}
    for population in populations:
        same = population == experiment.population
        smaller = outcomes if same else replace(experiment, population=population).run(on_round)
        for name, outcome in smaller.items():
            point = asdict(interval(outcome.rounds, experiment.max_rounds))
            by_population[name].append({"population": population} | point)
    return {
        "rounds": rounds_record(outcomes),
        "settings": experiment.settings(),
        "summary": {n: asdict(interval(o.rounds, experiment.max_rounds)) for n, o in outcomes.items()},
        "accuracy": {name: _curve(outcome) for name, outcome in outcomes.items()},
        "by_population": by_population,
    }
