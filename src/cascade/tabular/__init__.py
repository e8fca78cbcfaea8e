"""The paper's tabular theory, runnable: CASCADE-TS and Lemma 2, the information of Lemma 1."""

from cascade.tabular.cascade_ts import NOT_REACHED, STRATEGIES, Outcome, rounds_to_accuracy
from cascade.tabular.information import Lemma1, info_cascade, information, last_layer_endpoints, lemma1
from cascade.tabular.noise import Draws
from cascade.tabular.posterior import DirichletBelief, TreeBelief
from cascade.tabular.worlds import (
    StochasticWorld,
    TreeWorld,
    World,
    grid_world,
    stochastic_world,
    tree_world,
)

__all__ = [
    "NOT_REACHED",
    "STRATEGIES",
    "DirichletBelief",
    "Draws",
    "Lemma1",
    "Outcome",
    "StochasticWorld",
    "TreeBelief",
    "TreeWorld",
    "World",
    "grid_world",
    "info_cascade",
    "information",
    "last_layer_endpoints",
    "lemma1",
    "rounds_to_accuracy",
    "stochastic_world",
    "tree_world",
]
