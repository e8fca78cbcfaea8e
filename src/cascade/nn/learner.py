"""A model with the state of its optimiser, and the one way it is updated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from cascade.config import OptimizerConfig

Model = TypeVar("Model")
Carry = TypeVar("Carry")
Metrics = dict[str, Float[Array, "..."]]


class Learner(eqx.Module, Generic[Model]):
    """A model and its optimiser; stacked along P for several. `skipped` counts updates that were not finite."""

    model: Model
    opt_state: PyTree
    skipped: Int[Array, "*P"]

    @classmethod
    def create(cls, model: Model, config: OptimizerConfig) -> Learner[Model]:
        return cls(model, optimizer(config).init(model), jnp.zeros((), jnp.int32))


def optimizer(config: OptimizerConfig) -> optax.GradientTransformation:
    """Clip by global norm, Adam, and weight decay decoupled from the learning rate."""
    return optax.chain(
        optax.clip_by_global_norm(config.clip) if config.clip else optax.identity(),
        optax.scale_by_adam(eps=config.eps),
        optax.scale(-config.lr),
        optax.add_decayed_weights(-config.weight_decay) if config.weight_decay else optax.identity(),
    )


def update(
    learner: Learner[Model], grads: Model, config: OptimizerConfig, pace: Float[Array, ""] | None = None
) -> tuple[Learner[Model], dict[str, Float[Array, ""]]]:
    """One optimiser step, of which only the share `pace` is gone, if given.

    A gradient that is not finite changes nothing and is counted. Under `vmap` over a population or seeds each
    member has its own norm, so members stay independent.
    """
    norm = optax.tree.norm(grads)
    finite = jnp.isfinite(norm)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes its step count with floats
        changes, opt_state = optimizer(config).update(grads, learner.opt_state, learner.model)
    if pace is not None:
        changes = jax.tree.map(lambda change: pace * change, changes)
    model = optax.apply_updates(learner.model, changes)
    model, opt_state = jax.tree.map(
        lambda new, old: jnp.where(finite, new, old), (model, opt_state), (learner.model, learner.opt_state)
    )
    skipped = learner.skipped + jnp.logical_not(finite).astype(jnp.int32)
    return Learner(model, opt_state, skipped), {"grad_norm": norm, "skipped": skipped.astype(jnp.float32)}


def repeat(
    body: Callable[[Carry, Any], tuple[Carry, Metrics]], carry: Carry, xs: PyTree
) -> tuple[Carry, Metrics]:
    """`body` once for each entry of `xs`, and the mean of its metrics.

    One entry is a plain call: on a CPU convolutions run several times slower inside a compiled loop than outside.
    """
    if jax.tree.leaves(xs)[0].shape[0] == 1:
        return body(carry, jax.tree.map(lambda x: x[0], xs))
    carry, metrics = jax.lax.scan(body, carry, xs)
    return carry, jax.tree.map(lambda x: x.mean(0), metrics)
