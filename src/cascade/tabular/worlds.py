"""Worlds as the strategies of Lemma 2 see them: a truth to deploy in, and the beliefs one may hold."""

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from cascade.tabular.mdp import Labels, Transition, grid_worlds, random_mdps, random_trees, reachable
from cascade.tabular.noise import Draws
from cascade.tabular.planning import follow_tree, plan_mdp, plan_tree, rollout_mdp
from cascade.tabular.posterior import DirichletBelief, TreeBelief

Belief = TypeVar("Belief")
Model = TypeVar("Model")
Policy = TypeVar("Policy")

_SAMPLE, _TIES, _FAKE, _REAL, _TRUTH = range(5)  # places of Draws


@runtime_checkable
class World(Protocol[Belief, Model, Policy]):
    """One world per seed. Every method treats all seeds at once."""

    def prior(self) -> Belief:
        """The belief before any data."""
        ...

    def sample(self, belief: Belief, draws: Draws) -> Model:
        """A model from the posterior (Algorithm 2, line 8)."""
        ...

    def plan(self, model: Model, belief: Belief, draws: Draws) -> Policy:
        """The policy with the largest sum of bonuses in the model (lines 9-11)."""
        ...

    def imagine(self, belief: Belief, model: Model, policy: Policy, times: int, draws: Draws) -> Belief:
        """The belief with fake trajectories of the policy in the model added (lines 12-13)."""
        ...

    def deploy(self, belief: Belief, policy: Policy, times: int, draws: Draws) -> Belief:
        """The belief after the policy was really played `times` times (line 5)."""
        ...

    def accuracy(self, belief: Belief) -> Float[np.ndarray, "S"]:
        """How much of the true model the belief holds, from 0 to 1."""
        ...


@dataclass(frozen=True)
class TreePolicy:
    """A plan made in a sampled tree: the path it hopes for, and its action for every label."""

    path: Int[np.ndarray, "S D"]
    by_label: Int[np.ndarray, "S N"]


@dataclass(frozen=True)
class TreeWorld:
    """Deterministic binary trees with random labels (Lemma 2).

    `react=False`: a policy is its sequence of L actions, as in the paper's proof. `react=True`: a policy
    maps states to actions, so a state it imagined elsewhere makes it act as it meant to act elsewhere.
    """

    labels: Labels
    height: int
    react: bool = False

    def prior(self) -> TreeBelief:
        """Uniform over all labelings."""
        return TreeBelief.prior(len(self.labels), self.height)

    def sample(self, belief: TreeBelief, draws: Draws) -> Labels:
        """A tree that agrees with all data, real and imagined."""
        return belief.sample(draws.at(_SAMPLE))

    def plan(self, model: Labels, belief: TreeBelief, draws: Draws) -> TreePolicy:
        """The path with the most pairs never tried, then the largest sum of 1/sqrt(N)."""
        actions = plan_tree(model, belief.counts, draws.at(_TIES))
        by_label = np.zeros(model.shape, dtype=np.int64)  # a state imagined as a leaf takes action 0
        np.put_along_axis(by_label, model[:, : actions.shape[1]], actions, axis=1)
        return TreePolicy(follow_tree(actions, self.height), by_label)

    def imagine(
        self, belief: TreeBelief, model: Labels, policy: TreePolicy, times: int, draws: Draws
    ) -> TreeBelief:
        """The path hoped for, `times` times: nothing is random in a sampled tree."""
        return belief.observe(policy.path, np.take_along_axis(model, policy.path, axis=1), times)

    def deploy(self, belief: TreeBelief, policy: TreePolicy, times: int, draws: Draws) -> TreeBelief:
        """The path really met: playing it again shows nothing new."""
        path = policy.path
        if self.react:
            path = follow_tree(np.take_along_axis(policy.by_label, self.labels, axis=1), self.height)
        return belief.observe(path, np.take_along_axis(self.labels, path, axis=1), times)

    def accuracy(self, belief: TreeBelief) -> Float[np.ndarray, "S"]:
        """Fraction of triplets that the data settle."""
        return belief.accuracy()


@dataclass(frozen=True)
class StochasticWorld:
    """Stochastic MDPs with Dirichlet posteriors, episodes of `horizon` steps from state 0."""

    transition: Transition
    horizon: int
    within: Bool[np.ndarray, "S N"]

    @classmethod
    def of(cls, transition: Transition, horizon: int) -> "StochasticWorld":
        """A world that is judged on the states reachable within its episodes."""
        return cls(transition, horizon, reachable(transition, horizon))

    def prior(self) -> DirichletBelief:
        """Nothing known, not even which states are neighbours."""
        seeds, states, actions, _ = self.transition.shape
        return DirichletBelief.prior(seeds, states, actions)

    def sample(self, belief: DirichletBelief, draws: Draws) -> Transition:
        """Thompson sample."""
        return belief.sample(draws.at(_SAMPLE))

    def plan(self, model: Transition, belief: DirichletBelief, draws: Draws) -> Int[np.ndarray, "S H N"]:
        """Finite-horizon value iteration on the bonuses."""
        return plan_mdp(model, belief.counts, self.horizon, draws.at(_TIES))

    def imagine(
        self,
        belief: DirichletBelief,
        model: Transition,
        policy: Int[np.ndarray, "S H N"],
        times: int,
        draws: Draws,
    ) -> DirichletBelief:
        """Fake episodes in the sampled model."""
        return belief.observe(*rollout_mdp(model, policy, times, draws.at(_FAKE)))

    def deploy(
        self, belief: DirichletBelief, policy: Int[np.ndarray, "S H N"], times: int, draws: Draws
    ) -> DirichletBelief:
        """Real episodes."""
        return belief.observe(*rollout_mdp(self.transition, policy, times, draws.at(_REAL)))

    def accuracy(self, belief: DirichletBelief) -> Float[np.ndarray, "S"]:
        """One minus the mean total-variation distance of posterior mean to truth over reachable pairs."""
        distance = 0.5 * np.abs(belief.mean() - self.transition).sum(axis=-1).mean(axis=-1)
        return 1.0 - (distance * self.within).sum(axis=1) / self.within.sum(axis=1)


def tree_world(draws: Draws, height: int, react: bool = False) -> TreeWorld:
    """A random tree for every seed."""
    return TreeWorld(random_trees(draws.at(_TRUTH), height), height, react)


def stochastic_world(draws: Draws, horizon: int, states: int, actions: int) -> StochasticWorld:
    """A random stochastic MDP for every seed."""
    return StochasticWorld.of(random_mdps(draws.at(_TRUTH), states, actions), horizon)


def grid_world(draws: Draws, horizon: int, side: int) -> StochasticWorld:
    """A slippery grid with random pillars for every seed."""
    return StochasticWorld.of(grid_worlds(draws.at(_TRUTH), side), horizon)
