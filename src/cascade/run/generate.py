"""Datasets at stated returns, made by a run's own policies: random, expert, and medium in between.

An expert is the policy that a transfer learned. A medium one is the same policy with a share of random actions, so
large that it earns halfway between both. What is written is a data folder: `--initial DIR` begins a run with it.

    DIR/deploy-000/      the episodes
    DIR/dataset.json     how they were made, and what they earned
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key, Shaped

from cascade.data.files import LOCK, Unusable, one_writer, read_json, write_json
from cascade.data.journal import Journal
from cascade.data.store import Deployment, deployment_folder
from cascade.deploy import Plan, Progress, RandomPolicy, collect, vectorise
from cascade.envs import Vectoriser
from cascade.errors import CascadeError, SettingError, disk_errors
from cascade.explore.policy import Memory, PopulationPolicy
from cascade.run.api import Run
from cascade.run.places import whole
from cascade.run.signals import Interrupted
from cascade.run.transfer import evaluate
from cascade.specs import ActionSpec
from cascade.transfer.saved import SETTINGS, Behaviour
from cascade.types import Policy

Kind = Literal["random", "medium", "expert"]
ABOUT = "dataset.json"
OWN_SEEDS = 1 << 20
"""Added to the seed, so that a dataset has other episodes than any deployment of the run."""
HALVINGS = 6


@dataclass(frozen=True)
class Request:
    """Which dataset is asked for."""

    task: str
    kind: Kind
    steps: int
    seed: int
    deployment: int | None = None
    """whose policy, by default the last there is"""


def generate(
    run: Run,
    request: Request,
    out: Path,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """Make the dataset, or go on with the one that was begun at `out`; what dataset.json says of it."""
    if request.task not in run.spec.tasks:
        raise SettingError("--task", request.task, f"one of {', '.join(run.spec.tasks)}")
    if request.steps < 1:
        raise SettingError("--steps", request.steps, "at least 1")
    if request.kind == "random":
        request = replace(request, deployment=None)
    if _begun(request, out) is None and request.kind != "random":
        _transferred(run, request)  # without a policy nothing is written
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    busy = f"{out}: another process is making this dataset; wait for it, or choose another --out"
    with one_writer(out, busy):
        return _made(run, request, out, progress, stop)


def _made(
    run: Run,
    request: Request,
    out: Path,
    progress: Callable[[Progress], None] | None,
    stop: Callable[[], bool] | None,
) -> dict[str, Any]:
    """The dataset, by the only process that writes there."""
    about = _begun(request, out) or _begin(run, request, out)
    request = replace(request, deployment=about["deployment"])
    policy = policy_of(run, request, about["random_actions"])
    if not deployment_folder(out, 0).exists():
        deploy = replace(run.settings.deploy, steps=request.steps)
        plan = Plan.of(deploy, seed=OWN_SEEDS + request.seed, deployment=0)
        with vectorise(run.settings.env, deploy, plan) as envs:
            journal = Journal(out, 0, run.spec)
            if collect(policy, envs, journal, plan, deploy, progress=progress, stop=stop).interrupted:
                raise Interrupted(f"{out}: stopped; the same command goes on from here")
    stored = Deployment.open(deployment_folder(out, 0))
    about |= achieved(stored, request.task)
    with disk_errors(out):
        write_json(out / ABOUT, about)
    return about


def _begun(request: Request, out: Path) -> dict[str, Any] | None:
    """What was decided when the dataset was begun at `out`; None in a new folder, and one of another is refused."""
    wanted = {name: value for name, value in asdict(request).items() if value is not None}
    try:
        about = read_json(out / ABOUT)
    except Unusable:
        with disk_errors(out):
            others = {path.name for path in out.iterdir()} if out.is_dir() else set()
        if others - {LOCK, f"{ABOUT}.tmp"}:
            raise SettingError(
                "--out", str(out), "a new folder, or one in which this dataset was begun"
            ) from None
        return None
    if {name: about.get(name) for name in wanted} != wanted:
        raise SettingError("--out", str(out), "a new folder; there is another dataset in this one")
    return about


def _begin(run: Run, request: Request, out: Path) -> dict[str, Any]:
    """Decide, whose policy acts included, and write it down."""
    if request.kind != "random":
        request = replace(request, deployment=_transferred(run, request))
    about = {
        **asdict(request),
        "environment": run.spec.name,
        "run": run.path.name,
        **decide(run, request),
    }
    with disk_errors(out):
        write_json(out / ABOUT, about)
    return about


def _transferred(run: Run, request: Request) -> int:
    """The deployment after which the policy was learned."""
    place = behaviour_folder(run, request.task, request.seed, request.deployment)
    return int(place.parent.name.removeprefix("deploy-"))


def decide(run: Run, request: Request) -> dict[str, Any]:
    """The share of random actions, and the returns that it was chosen by."""
    if request.kind != "medium":
        return {"random_actions": 1.0 if request.kind == "random" else 0.0}
    expert = expert_policy(run, request)
    config = run.settings
    lanes = min(config.transfer.episodes, config.deploy.lanes)
    with Vectoriser(config.env, lanes, min(config.deploy.workers, lanes), config.deploy.step_timeout) as envs:

        def earned(share: float) -> float:
            return mean_return(run, Mixed(expert, run.spec.action, share), request.task, envs)

        best, worst = earned(0.0), earned(1.0)
        if not best > worst:
            raise CascadeError(
                f"the policy of task {request.task} earns {best:.4g} and random actions earn {worst:.4g}: there is "
                "nothing in between; transfer with more steps first, or choose --kind expert"
            )
        target = (best + worst) / 2
        share, found = halve(earned, target, {0.0: best, 1.0: worst})
    return {
        "random_actions": share,
        "evaluated": {"expert": best, "random": worst, "target": target, "medium": found},
    }


def halve(earned: Callable[[float], float], target: float, known: dict[float, float]) -> tuple[float, float]:
    """The share of random actions whose return is nearest to the target, by repeated halving, and that return."""
    low, high = min(known), max(known)
    for _ in range(HALVINGS):
        share = (low + high) / 2
        known[share] = earned(share)
        low, high = (share, high) if known[share] > target else (low, share)
    share = min(known, key=lambda one: abs(known[one] - target))
    return share, known[share]


def mean_return(run: Run, policy: Policy, task: str, envs: Vectoriser) -> float:
    """What a policy earns in the evaluation's episodes, which are the same for all."""
    keep: Any = nullcontext(envs)  # they are used again, for the next policy
    played = evaluate(policy, run.settings, 1, jax.random.key(0), envs=lambda env, lanes: keep)
    return float(played.returns[task][played.finished].mean())


def policy_of(run: Run, request: Request, share: float) -> Policy:
    """What acts."""
    if request.kind == "random":
        return RandomPolicy(run.spec.action)
    return Mixed(expert_policy(run, request), run.spec.action, share)


def expert_policy(run: Run, request: Request) -> PopulationPolicy:
    """The policy that a transfer of this run saved."""
    return saved_behaviour(run, request.task, request.seed, request.deployment).policy()


def saved_behaviour(run: Run, task: str, seed: int, deployment: int | None = None) -> Behaviour:
    """What a transfer to this task left behind, by default after the last deployment that has one."""
    return Behaviour.load(behaviour_folder(run, task, seed, deployment))


def behaviour_folder(run: Run, task: str, seed: int, deployment: int | None = None) -> Path:
    """Where it is."""
    folder = run.path / "transfer" / quote(task, safe="")
    if deployment is None:
        there = sorted(folder.glob(f"deploy-*/seed-{seed}/{SETTINGS}"))
        place = there[-1].parent if there else folder
    else:
        place = deployment_folder(folder, deployment) / f"seed-{seed}"
    if not (place / SETTINGS).exists():
        after = "" if deployment is None else f" --deployment {deployment}"
        flag = "--reward" if ":" in task else "--task"
        raise CascadeError(
            f"{run.path}: no policy for the task {task} of seed {seed} is saved here; "
            f"make one first: {shlex.join(['cascade', 'transfer', str(run.path), flag, task])}{after}"
        )
    return place


@jax.jit
def _draws(keys: Key[Array, " L"]) -> tuple[Key[Array, " L"], Key[Array, " L"], Float[Array, " L"]]:
    """Keys for the policy and for the random actions, and a number that decides between them."""
    own, other, coin = jax.vmap(lambda key: jax.random.split(key, 3), out_axes=1)(keys)
    return own, other, jax.vmap(jax.random.uniform)(coin)


class Mixed:
    """A policy of which a share of actions is random; its belief is told what was really done."""

    def __init__(self, policy: PopulationPolicy, action: ActionSpec, share: float):
        self._policy, self._action, self._share = policy, action, share
        self._random = RandomPolicy(action)

    def initial(self, lanes: int) -> Memory:
        """See `cascade.types.Policy`."""
        return self._policy.initial(lanes)

    def act(
        self,
        carry: Memory,
        obs: Mapping[str, Shaped[np.ndarray, "L ..."]],
        is_first: Bool[np.ndarray, " L"],
        keys: Key[Array, " L"],
    ) -> tuple[Memory, np.ndarray]:
        """See `cascade.types.Policy`."""
        own, other, coin = _draws(keys)
        carry, chosen = self._policy.act(carry, obs, is_first, own)
        if self._share == 0.0:
            return carry, chosen
        _, drawn = self._random.act((), obs, is_first, other)
        strays = (np.asarray(coin) < self._share).reshape(-1, *[1] * (chosen.ndim - 1))
        action = np.where(strays, drawn, chosen).astype(self._action.dtype)
        return carry._replace(action=jnp.asarray(self._known(action))), action

    def _known(self, action: np.ndarray) -> np.ndarray:
        """Actions as the belief has them: float32 [L, A]."""
        if self._action.kind == "discrete":
            return np.eye(self._action.size, dtype=np.float32)[action]
        return action


def achieved(deployment: Deployment, task: str) -> dict[str, Any]:
    """What the whole episodes earned."""
    table = np.asarray(deployment.episodes)
    returns = np.add.reduceat(np.asarray(deployment.labels(task), np.float64), table["start"])
    kept = whole(table)
    found = returns[kept]
    return {
        "episodes": len(table),
        "whole_episodes": int(kept.sum()),
        "mean_return": float(found.mean()) if len(found) else None,
        "returns": {"least": float(found.min()), "most": float(found.max())} if len(found) else None,
    }
