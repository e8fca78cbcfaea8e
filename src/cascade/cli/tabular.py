"""`cascade tabular`: the paper's two lemmas, measured."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cascade.cli.output import console, print_json, say
from cascade.errors import SettingError, disk_errors
from cascade.seeds import Seeds

if TYPE_CHECKING:
    from cascade.tabular.cascade_ts import Outcome
    from cascade.tabular.experiment import Experiment, OnRound

WORLDS = ("tree", "stochastic", "grid")
POLICIES = ("sequences", "states")
STRATEGY_NAMES = ("sequential", "cascade_ts", "single_policy_batch")
MAX_HEIGHT, MAX_LEMMA1_HEIGHT = 12, 3


def _choice(names: tuple[str, ...]) -> Any:
    return tyro.conf.arg(metavar="{" + ",".join(names) + "}")


def _shown(metavar: str, default: str) -> Any:
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


@dataclass(frozen=True)
class Tabular:
    """Measure the theory: how many rounds of P policies it takes to learn a small world (Lemma 2), or how
    much a tuple of policies tells about it (--lemma1).
    """

    height: Annotated[int | None, _shown("INT", "6, or 3 with --lemma1")] = None
    """Height L of the binary tree; the length of an episode in other worlds."""
    population: Annotated[int | None, _shown("INT", "8, or 4 with --lemma1")] = None
    """Policies P deployed per round."""
    epsilon: Annotated[float | None, _shown("FLOAT", "0 on trees, 0.2 elsewhere")] = None
    """A model is good enough when its accuracy is 1 - epsilon."""
    seeds: Seeds = tuple(range(100))
    """One world per seed: 3, 0-9 or 0,2,5."""
    world: Annotated[str, _choice(WORLDS)] = "tree"
    """Where to explore: the paper's trees, random stochastic MDPs, or slippery grids."""
    strategies: Annotated[tuple[str, ...], _choice(STRATEGY_NAMES)] = STRATEGY_NAMES
    """Which strategies to compare."""
    fake_samples: int = 1
    """Imagined trajectories M per policy of CASCADE-TS; 0 turns its memory of the others off."""
    policies: Annotated[str, _choice(POLICIES)] = "sequences"
    """On trees a policy is a sequence of actions, as in the paper's proof, or a map from states."""
    states: int = 12
    """States of a stochastic MDP."""
    actions: int = 2
    """Actions of a stochastic MDP."""
    side: int = 4
    """Cells along the side of a grid."""
    max_rounds: Annotated[int | None, _shown("INT", "2^(L+1) on trees, 1000 elsewhere")] = None
    """Give up after so many rounds; the result is then null."""
    lemma1: bool = False
    """Enumerate all trees with an unknown last layer and report exact information, in nats."""
    json: bool = False
    """Print one JSON document on stdout."""
    out: Annotated[Path | None, _shown("DIR", "nothing is written")] = None
    """Folder for results.json and, for the rounds, the figure as PNG and SVG."""

    def run(self) -> None:
        """Check every setting, measure, report."""
        from cascade.run.cache import keep_compiled_programs

        self._check()
        keep_compiled_programs(say)
        if self.out is not None:
            _make_folder(self.out)
        if self.lemma1:
            self._run_lemma1()
        else:
            self._run_rounds()

    def _check(self) -> None:
        _whole("--height", self.height, 1, MAX_HEIGHT)
        _whole("--population", self.population, 1, 1024)
        _whole("--fake-samples", self.fake_samples, 0, 1000)
        _whole("--states", self.states, 2, 100)
        _whole("--actions", self.actions, 1, 20)
        _whole("--side", self.side, 2, 10)
        _whole("--max-rounds", self.max_rounds, 1, 1_000_000)
        _one_of("--world", self.world, WORLDS)
        _one_of("--policies", self.policies, POLICIES)
        for name in self.strategies:
            _one_of("--strategies", name, STRATEGY_NAMES)
        if not self.strategies or len(set(self.strategies)) != len(self.strategies):
            raise SettingError("--strategies", " ".join(self.strategies), "one or more names, each once")
        if self.epsilon is not None and not 0.0 <= self.epsilon < 1.0:
            raise SettingError("--epsilon", self.epsilon, "a number from 0 up to, not including, 1")
        if self.epsilon == 0.0 and self.world != "tree":
            expected = f"more than 0 in the {self.world} world, where no data make odds exact"
            raise SettingError("--epsilon", self.epsilon, expected)

    def _run_lemma1(self) -> None:
        from cascade.tabular.information import last_layer_endpoints, lemma1

        height = MAX_LEMMA1_HEIGHT if self.height is None else self.height
        if height > MAX_LEMMA1_HEIGHT:
            expected = f"1 to {MAX_LEMMA1_HEIGHT} with --lemma1, which enumerates (2^height)! trees"
            raise SettingError("--height", height, expected)
        population = min(4, 2**height) if self.population is None else self.population
        if population > 2**height:
            expected = f"at most 2^height = {2**height} with --lemma1, one policy per path"
            raise SettingError("--population", population, expected)
        endpoints = last_layer_endpoints(height)
        result = lemma1(endpoints, population)
        settings = {"height": height, "population": population, "trees": len(endpoints), "unit": "nats"}
        table = Table(title=f"Lemma 1: {len(endpoints)} trees of height {height}, {population} policies")
        table.add_column("tuple of policies")
        table.add_column("information (nats)", justify="right")
        table.add_row("best, without repetition" if result.distinct else "best", f"{result.best:.4f}")
        table.add_row("greedy cascade", f"{result.greedy:.4f} ({result.greedy_ratio:.0%} of the best)")
        table.add_row("best policy, repeated", f"{result.best_repeated:.4f}")
        say(table)
        self._publish(asdict(result) | {"settings": settings})

    def _run_rounds(self) -> None:
        from cascade.tabular.experiment import full_record, rounds_record

        experiment = self._experiment()
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as progress:
            on_round = _watch(progress, len(self.seeds))
            outcomes = experiment.run(on_round)
            record = full_record(experiment, outcomes, on_round) if self.out is not None else None
        say(_rounds_table(experiment, outcomes))
        self._publish({"rounds": rounds_record(outcomes), "settings": experiment.settings()}, record)
        if record is not None and self.out is not None:
            from cascade.report.tabular import save

            for path in save(record, self.out):
                say(f"wrote {path}")

    def _experiment(self) -> "Experiment":
        from cascade.tabular.experiment import Experiment

        tree = self.world == "tree"
        height = 6 if self.height is None else self.height
        default_epsilon, default_rounds = (0.0, 2 ** (height + 1)) if tree else (0.2, 1000)
        return Experiment(
            world=self.world,
            height=height,
            population=8 if self.population is None else self.population,
            epsilon=default_epsilon if self.epsilon is None else self.epsilon,
            seeds=self.seeds,
            strategies=self.strategies,
            fake_samples=self.fake_samples,
            policies=self.policies,
            states=self.states,
            actions=self.actions,
            side=self.side,
            max_rounds=default_rounds if self.max_rounds is None else self.max_rounds,
        )

    def _publish(self, document: dict[str, Any], record: dict[str, Any] | None = None) -> None:
        """The document on stdout if asked for; the fuller record, if there is one, in the folder."""
        if self.out is not None:
            path = self.out / "results.json"
            with disk_errors(path):
                path.write_text(json.dumps(record or document) + "\n", encoding="utf-8")
            say(f"wrote {path}")
        if self.json:
            print_json(document)


def _whole(setting: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise SettingError(setting, value, f"a whole number from {low} to {high}")


def _one_of(setting: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise SettingError(setting, value, "one of " + ", ".join(names))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            "--out", str(folder), f"a folder that can be created ({error.strerror})"
        ) from error


def _watch(progress: Progress, seeds: int) -> "OnRound":
    task = progress.add_task("", total=None)

    def on_round(strategy: str, done: int, reached: int) -> None:
        progress.update(task, description=f"{strategy}: round {done}, {reached} of {seeds} seeds there")

    return on_round


def _rounds_table(experiment: "Experiment", outcomes: "dict[str, Outcome]") -> Table:
    from cascade.tabular.experiment import interval

    title = (
        f"Rounds of {experiment.population} policies to {1 - experiment.epsilon:.0%} accuracy: "
        f"{experiment.world}, height {experiment.height}, {len(experiment.seeds)} seeds"
    )
    table = Table(title=title)
    table.add_column("strategy")
    for column in ("rounds", "95% CI", "fewest", "most"):
        table.add_column(column, justify="right")
    for name, outcome in outcomes.items():
        found = interval(outcome.rounds, experiment.max_rounds)
        note = f" ({found.missing} seeds gave up)" if found.missing else ""
        reached = outcome.rounds[outcome.rounds >= 0]
        spread = (f"{reached.min()}", f"{reached.max()}") if len(reached) else ("-", "-")
        mean = f"{'≥ ' if found.missing else ''}{found.mean:.2f}{note}"
        table.add_row(name, mean, f"{found.low:.2f} to {found.high:.2f}", *spread)
    return table
