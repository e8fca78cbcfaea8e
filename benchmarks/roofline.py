"""What the steps of `gpu_steps.py` could take at best: counted from their programs, beside what was measured.

    python benchmarks/roofline.py --steps benchmarks/gpu_steps.json --out benchmarks/roofline.json

Nothing is computed, so any machine will do. Every matrix product is given the time that its operations take at the
rate of a large one on that device, or that its operands and its result take through the memory, whichever is longer.
Whatever lies between products is taken to cost nothing, and products to follow each other without a gap.
"""

import argparse
import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
from gpu_steps import cases

from cascade.config import RunConfig
from cascade.explore import actor_critic, population
from cascade.explore.imagine import Imagined, Starts, imagine
from cascade.nn.precision import cast
from cascade.run.bench import random_chunk, world_model_step
from cascade.run.flops import Product, products
from cascade.run.phases import create_models, explorer_phase, model_step
from cascade.specs import EnvSpec

BANDWIDTH = 4.8e12  # bytes a second, as NVIDIA states it for the H200


def bounds(found: list[Product], rate: float) -> dict[str, float]:
    """Operations, bytes and products, and the milliseconds that they take at the least."""
    seconds = sum(one.times * max(one.flops / rate, one.bytes / BANDWIDTH) for one in found)
    flops, moved = sum(one.times * one.flops for one in found), sum(one.times * one.bytes for one in found)
    numbers = {"gflop": flops / 1e9, "gigabytes": moved / 1e9, "arithmetic_ms": 1e3 * flops / rate}
    numbers |= {"roofline_ms": 1e3 * seconds}
    return {name: float(f"{value:.4g}") for name, value in numbers.items()} | {
        "products": sum(one.times for one in found)
    }


def whole_step(kind: object, spec: EnvSpec, config: RunConfig) -> list[Product]:
    """The products of one step of one seed."""
    models = jax.eval_shape(partial(create_models, spec, config), key=jax.random.key(0))
    chunk = jax.eval_shape(lambda: random_chunk(spec, config, 1))
    if kind is world_model_step:
        batch = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), chunk)
        return products(model_step, models, batch, jax.random.key(2))
    explorers = jax.eval_shape(
        partial(population.create, config.world, spec.action, config.explore), key=jax.random.key(1)
    )
    phase = partial(explorer_phase, config=config.explore)
    return products(phase, explorers, models, chunk, jnp.float32(0.1), jnp.int32(0), jax.random.key(2))


def parts_of_explorers(spec: EnvSpec, config: RunConfig, starts: int) -> dict[str, list[Product]]:
    """The products of a population's step, part by part."""
    agent, world, size = config.explore.agent, config.world, config.explore.population
    models = jax.eval_shape(partial(create_models, spec, config), key=jax.random.key(0))
    agents = jax.eval_shape(
        partial(population.create, world, spec.action, config.explore), key=jax.random.key(1)
    ).agents
    keys = jax.random.split(jax.random.key(2), size)
    model = jax.eval_shape(lambda tree: cast(tree, world.precision), models.world.model)
    state = jax.eval_shape(lambda tree: tree.rssm.initial(starts), model)
    begin = Starts(state, jax.ShapeDtypeStruct((starts,), jnp.float32))
    rollout = partial(imagine, config=agent)
    imagined: Imagined = jax.eval_shape(rollout, model, agents.actor.model, begin, keys)
    by_agent = [jax.eval_shape(lambda x: x.swapaxes(0, 1), part) for part in _arrays(imagined)]

    def critic_loss(critics: actor_critic.Critic, feature: jax.Array) -> jax.Array:
        return jnp.square(actor_critic.evaluate(critics, feature)).sum()

    def actor_loss(actors: actor_critic.Actor, feature: jax.Array, action: jax.Array) -> jax.Array:
        return jax.vmap(lambda actor, x, a: actor.log_prob(x, a)[0])(actors, feature, action).sum()

    gain = models.ensemble.model
    return {
        "imagination with the discount head": products(rollout, model, agents.actor.model, begin, keys),
        "information gain": products(lambda e, *x: e.disagreement(*x), gain, *_arrays(imagined)),
        "slow critics": products(actor_critic.evaluate, agents.slow, by_agent[0]),
        "actors, forward and backward": products(jax.grad(actor_loss), agents.actor.model, *by_agent),
        "critics, forward and backward": products(jax.grad(critic_loss), agents.critic.model, by_agent[0]),
    }


def _arrays(imagined: Imagined) -> tuple[jax.Array, jax.Array]:
    return imagined.feature, imagined.action


def main() -> None:
    parser = argparse.ArgumentParser(description="Lower bounds of the GPU steps.")
    parser.add_argument("--steps", type=Path, required=True, help="what was measured")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    measured = json.loads(args.steps.read_text(encoding="utf-8"))
    rate = 1e12 * measured["matrix_tflop_per_s"]["bfloat16"]
    found: dict = {
        "rate_tflop_per_s": round(rate / 1e12, 1),
        "bandwidth_tb_per_s": BANDWIDTH / 1e12,
        "steps": {},
    }
    for name, (kind, spec, config, _, _) in cases(False).items():
        if "full" in name:
            step = bounds(whole_step(kind, spec, config), rate)
            found["steps"][name] = step | {"measured_ms": measured["steps"][name]["ms"]}
    name = "explorers, full, P=10, 800 starts"
    _, spec, config, _, _ = cases(False)[name]
    starts = config.sample.batch * config.sample.length
    found["parts"] = {
        part: bounds(own, rate) for part, own in parts_of_explorers(spec, config, starts).items()
    }
    args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
