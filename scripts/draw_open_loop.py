"""Draw what a world model of FourRooms predicts of episodes it never saw.

From the repository's root:  python scripts/draw_open_loop.py  collects 40,000 random steps, trains the demo
preset's world model on them for 8,000 steps, and writes docs/assets/open_loop.png from held-out episodes. It takes
about six minutes on two cores; --model-steps and --steps make it shorter, --out writes elsewhere, the film too.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import jax

from cascade.config import DeployConfig, EnvConfig, OptimizerConfig
from cascade.data.fields import Fields, split
from cascade.data.journal import Journal
from cascade.data.sampler import make_sampler
from cascade.data.store import Store
from cascade.deploy import Plan, RandomPolicy, collect
from cascade.envs import InProcess
from cascade.nn.learner import Learner
from cascade.presets import preset
from cascade.run.look import look
from cascade.specs import EnvSpec
from cascade.world.model import WorldModel, step
from cascade.world.predict import held_out_loss

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
DEMO = preset("demo")
WORLD = EnvConfig("minigrid:FourRooms-v0", observation="grid")


def collected(folder: Path, steps: int) -> tuple[EnvSpec, Fields]:
    """Random episodes."""
    config = DeployConfig(steps=steps, lanes=16)
    plan = Plan.of(config, seed=0, deployment=0)
    with InProcess(WORLD, plan.lanes) as envs:
        collect(RandomPolicy(envs.spec.action), envs, Journal(folder, 0, envs.spec), plan, config)
        return envs.spec, Store.open(folder).fields()


def trained(spec: EnvSpec, kept: Fields, held_out: Fields, steps: int) -> WorldModel:
    """The demo preset's world model, with a report of the loss on episodes held out."""
    config = replace(DEMO.world, optimizer=OptimizerConfig(lr=5e-4))
    world = WorldModel(spec, config, key=jax.random.key(0))
    learner = Learner.create(world, config.optimizer)
    sampler = make_sampler(kept, DEMO.sample, jax.random.key(1))
    unseen = make_sampler(held_out, DEMO.sample, jax.random.key(2)).chunk(0, 8)
    run, evaluate = jax.jit(step, donate_argnums=0), jax.jit(held_out_loss)
    for index in range(steps):
        batch = jax.tree.map(lambda x: x[0], sampler.chunk(index, 1))
        learner, _, metrics = run(learner, batch, jax.random.fold_in(jax.random.key(3), index))
        if (index + 1) % 500 == 0 or index + 1 == steps:
            loss = evaluate(learner.model, unseen, jax.random.key(4))["loss"]
            print(f"step {index + 1}: loss {metrics['loss']:.2f}, held out {loss:.2f}", flush=True)
    return learner.model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40_000, help="environment steps collected")
    parser.add_argument("--model-steps", type=int, default=8_000, help="gradient steps")
    parser.add_argument(
        "--out", type=Path, help="folder for the picture and the film; docs/assets by default"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spec, fields = collected(Path(folder), args.steps)
        kept, held_out = split(fields)
        world = trained(spec, kept, held_out, args.model_steps)
        picture, film = look(world, held_out, spec, args.out or ASSETS, key=jax.random.key(5), count=3)
    if args.out is None:
        film.unlink()
    print(picture)
