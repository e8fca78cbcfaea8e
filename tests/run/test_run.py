"""Whole runs, from the first deployment to the last result."""

import json
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest
from run_helpers import SEEDS, Signals, finite, same, saved_state, tiny, traces, weights

import cascade
from cascade.config import EnvConfig
from cascade.data.journal import Journal
from cascade.data.store import Store
from cascade.deploy.ledger import Ledger
from cascade.envs import spec_of
from cascade.errors import CascadeError, SettingError
from cascade.report.series import METRICS
from cascade.run import initial, loop, snapshot, train
from cascade.run.api import Run, groups
from cascade.run.fitting import plan_of, refuse_misfits
from cascade.run.folder import Folder
from cascade.run.signals import Interrupted, heed, listening
from cascade.run.state import PHASES
from cascade.specs import ArraySpec, Episode, EpisodeKey


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Run:
    """A run of two seeds that nothing disturbed."""
    before = traces(train.train_models), traces(train.train_explorers)
    run = cascade.run(tiny(), tmp_path_factory.mktemp("runs") / "whole", seeds=SEEDS)
    # Two deployments, growing data: every phase was compiled once.
    assert traces(train.train_models) - before[0] == 1
    assert traces(train.train_explorers) - before[1] == 1
    return run


def test_every_deployment_has_exactly_its_budget(whole):
    for seed in SEEDS:
        store = whole.store(seed)
        assert [deployment.manifest.steps for deployment in store.deployments] == [240, 240]
        by_explorer = store.deployments[1].episodes
        steps = [int(by_explorer["steps"][by_explorer["explorer"] == i].sum()) for i in range(2)]
        assert steps == [120, 120]


def test_every_measure_is_there_for_every_seed_and_deployment(whole):
    found = {(item["seed"], item["deployment"], item["metric"]) for item in whole.results}
    expected = ("episodes", "rewarding_episodes", "maximum_return", "dataset_diversity", "deployed_distance")
    learned = ("information_gain", "population_diversity", "entropy")
    for seed in SEEDS:
        for k in (0, 1):
            assert {(seed, k, metric) for metric in (*expected, *learned)} <= found
    assert all(np.isfinite(item["value"]) for item in whole.results)
    assert {metric for _, _, metric in found} <= METRICS.keys(), "the page says what each of them is"


def test_every_step_is_logged_once_and_phases_are_timed(whole):
    lines = [json.loads(line) for line in Folder(whole.path).metrics.read_text().splitlines()]
    keys = [(line["seed"], line["deployment"], line["phase"], line["step"]) for line in lines]
    assert len(set(keys)) == len(keys)
    assert {(0, 0, "model", 16), (1, 1, "explore", 16)} <= set(keys)
    entropy = next(line["values"]["entropy"] for line in lines if line["phase"] == "explore")
    assert len(entropy) == 2, "one number for each explorer"
    phases = json.loads(Folder(whole.path).results.read_text())["phases"]
    assert [(p["deployment"], p["phase"]) for p in phases] == [(k, name) for k in (0, 1) for name in PHASES]
    assert list((whole.path / "tb").iterdir()), "TensorBoard has its events"


def test_a_stored_run_opens_and_its_explorers_act(whole):
    run = cascade.open(whole.path)
    assert (run.settings, run.seeds) == (tiny(), SEEDS)
    policy, keys = run.explorers(seed=1), jax.random.split(jax.random.key(0), 4)
    obs = {name: np.zeros((4, *part.shape), part.dtype) for name, part in run.spec.observations.items()}
    _, actions = policy.act(policy.initial(4), obs, np.ones(4, bool), keys)
    assert actions.shape == (4,)
    assert finite(run.world(0))
    with pytest.raises(SettingError, match="seed: got 7, expected one of the run's: 0, 1"):
        run.store(7)
    with pytest.raises(SettingError, match="explorer: got 2, expected from 0 to 1"):
        run.player(explorer=2)


def test_the_same_command_changes_nothing_when_all_is_done(whole):
    before = Folder(whole.path).results.read_bytes(), weights(whole)
    cascade.run(tiny(), whole.path, seeds=SEEDS)
    assert Folder(whole.path).results.read_bytes() == before[0]
    assert same(weights(whole), before[1])


def test_a_seed_trained_beside_others_learns_what_it_learns_alone(whole, tmp_path):
    alone = cascade.run(tiny(), tmp_path / "alone", seeds=1)
    assert [d.digest for d in alone.store().deployments] == [d.digest for d in whole.store(1).deployments]
    one, other = weights(alone, 1), weights(whole, 1)
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    ("phase", "deployment", "step"),
    [("deploy", 1, 1), ("model", 0, 8), ("explore", 1, 8), ("measure", 0, 1)],
)
def test_a_run_told_to_stop_saves_and_ends_as_if_it_had_not_been(phase, deployment, step, whole, tmp_path):
    watch = Signals(lambda at: (at.name, at.deployment) == (phase, deployment) and at.step >= step)
    with pytest.raises(Interrupted, match="stopped at deployment") as stopped:
        cascade.run(tiny(), tmp_path / "run", seeds=SEEDS, watch=watch)
    assert stopped.value.code == 128 + signal.SIGTERM
    assert "Ctrl-C once more" in watch.notes[0]
    again = cascade.run(tiny(), tmp_path / "run", seeds=SEEDS)
    for seed in SEEDS:
        assert same(weights(again, seed), weights(whole, seed))
    assert again.results == whole.results


def test_told_to_stop_in_the_middle_of_measuring_it_measures_anew(tmp_path, monkeypatch):
    config = tiny(method="random", model_steps=0, deployments=1)
    whole = cascade.run(config, tmp_path / "whole")
    write = snapshot.write

    def write_and_be_told(*args):
        write(*args)
        signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "write", write_and_be_told)
        with pytest.raises(Interrupted, match="stopped at deployment 1, measure step 0 and saved") as stopped:
            cascade.run(config, tmp_path / "run")
    assert stopped.value.code == 128 + signal.SIGTERM
    assert cascade.run(config, tmp_path / "run").results == whole.results


def test_what_is_interrupted_has_the_code_of_the_signal_that_came():
    def told(number):
        with listening() as asked:
            signal.raise_signal(number)
            heed(asked, "working")

    for number in (signal.SIGINT, signal.SIGTERM):
        with pytest.raises(Interrupted, match="stopped while working") as stopped:
            told(number)
        assert stopped.value.code == 128 + number


def test_a_second_ctrl_c_stops_at_once():
    with listening() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_scrambled_labels_change_no_weight(whole, tmp_path, monkeypatch):
    append = Journal.append

    def scrambled(self, episode):
        labels = {task: 100.0 - rows[::-1].astype(np.float32) for task, rows in episode.labels.items()}
        return append(self, replace(episode, labels=labels))

    monkeypatch.setattr(Journal, "append", scrambled)
    other = cascade.run(tiny(), tmp_path / "scrambled", seeds=SEEDS)
    labels = [run.store(0).labels("reward").read() for run in (whole, other)]
    assert not np.array_equal(*labels)
    for seed in SEEDS:
        assert same(weights(other, seed), weights(whole, seed))


def test_other_settings_are_refused_and_shown(whole):
    with pytest.raises(CascadeError, match=r"started with other settings \(model-steps: was 16, now 30\)"):
        cascade.run(tiny(model_steps=30), whole.path, seeds=SEEDS)
    with pytest.raises(CascadeError, match="was started with --seeds 0-1, now 5"):
        cascade.run(tiny(), whole.path, seeds=5)


def test_a_run_can_be_made_longer_when_changes_are_allowed(tmp_path):
    config = tiny(method="random", model_steps=8)
    first = cascade.run(replace(config, deployments=1), tmp_path / "run")
    digest = first.store().deployments[0].digest
    longer = cascade.run(config, tmp_path / "run", allow_changes=True)
    assert [d.index for d in longer.store().deployments] == [0, 1]
    assert longer.store().deployments[0].digest == digest
    assert longer.settings.deployments == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"world": replace(tiny().world, deter=24)}, r"the checkpoint has float32.* the settings ask for"),
        (
            {"world": replace(tiny().world, discount_head=False)},
            r"float32.* for state\.models\.world\..*, the settings ask for nothing; go on with the settings that",
        ),
        ({"method": "random"}, r" for state\.explorers\..*, the settings ask for nothing"),
        (
            {"env": replace(tiny().env, id="probe:table")},
            "holds data of probe:chain that differ from what probe:table",
        ),
    ],
)
def test_changes_that_do_not_fit_what_is_stored_change_nothing(changes, said, whole):
    before = Folder(whole.path).about.read_bytes()
    with pytest.raises(CascadeError, match=said):
        cascade.run(tiny(**changes), whole.path, seeds=SEEDS, allow_changes=True)
    assert Folder(whole.path).about.read_bytes() == before


def test_a_deployment_under_way_is_finished_as_it_was_begun(tmp_path):
    config, folder = tiny(), Folder(tmp_path / "run")
    spec = spec_of(config.env)
    folder.start(config, (0,), "demo", spec)
    journal = Journal(folder.data(0), 0, spec)
    Ledger(journal, plan_of(config, 0, 0), config.deploy)
    row = {"vector": np.zeros((2, *spec.observations["vector"].shape), np.float32)}
    info = {name: np.zeros((2, *part.shape), part.dtype) for name, part in spec.info.items()}
    rewards = {"reward": np.zeros(2, np.float32)}
    journal.append(Episode(EpisodeKey(0, 0, 0), row, np.zeros(2, np.int32), rewards, info, False))
    journal.flush()

    def asked(changed, spec=spec):
        refuse_misfits(folder, changed, spec, [(0,)])

    asked(replace(config, deployments=5))
    with pytest.raises(
        CascadeError, match=r"started with another plan \(steps was 240\); resume with the settings"
    ):
        asked(replace(config, deploy=replace(config.deploy, steps=100)))
    with pytest.raises(CascadeError, match="was begun with initial 'random', now 'varied'; finish it"):
        asked(replace(config, initial="varied"))
    with pytest.raises(CascadeError, match=r"holds episodes of .* under another spec"):
        asked(config, replace(spec, tasks=("another",)))


def test_random_has_no_explorers_and_pp2e_shares_the_compiled_step_of_cascade(whole, tmp_path):
    run = cascade.run(tiny(method="random", model_steps=8), tmp_path / "random")
    assert saved_state(run).explorers is None
    assert "information_gain" not in {item["metric"] for item in run.results}
    assert run.explorers().initial(3) == ()
    before = traces(train.train_explorers)
    cascade.run(tiny(method="pp2e"), tmp_path / "pp2e", seeds=SEEDS)
    assert traces(train.train_explorers) == before


def test_the_first_deployment_is_the_same_for_every_method(whole, tmp_path):
    run = cascade.run(tiny(method="p2e", deployments=1, model_steps=8, explorer_steps=0), tmp_path / "p2e")
    assert run.store().deployments[0].digest == whole.store(0).deployments[0].digest


def test_fresh_explorers_begin_anew(whole, tmp_path):
    explore = replace(tiny().explore, begin="fresh")
    run = cascade.run(tiny(explore=explore, explorer_steps=0), tmp_path / "fresh")
    # Without any step, warm explorers would be the first ones still.
    warm = cascade.run(tiny(explorer_steps=0), tmp_path / "warm")
    names = [
        name for name in weights(run) if name.startswith("explorers.agents.actor.model") and "weight" in name
    ]
    assert any(not np.array_equal(weights(run)[name], weights(warm)[name]) for name in names)


def test_scales_forget_the_model_as_it_was(whole):
    """After two times 16 steps they have seen the last 16, each of which counts a hundredth."""
    found = weights(whole)
    for term in ("gain", "diversity"):
        np.testing.assert_allclose(found[f"explorers.scales.{term}.weight"], 1.0 - 0.99**16, rtol=1e-4)


def test_the_first_deployment_may_have_odds_of_its_own_in_every_episode(whole, tmp_path):
    def first(name: str, **changes) -> np.ndarray:
        run = cascade.run(tiny(model_steps=0, explorer_steps=0, **changes), tmp_path / name)
        return run.store().deployments[0].array("action.npy")

    varied = first("varied", initial="varied")
    np.testing.assert_array_equal(varied, first("another method", initial="varied", method="random"))
    assert not np.array_equal(varied, whole.store(0).deployments[0].array("action.npy"))


def test_data_of_another_run_replace_the_first_deployment(whole, tmp_path):
    config = tiny(initial=str(whole.path), method="random", model_steps=8)
    run = cascade.run(config, tmp_path / "run")
    first = run.store().deployments[0]
    assert first.manifest.steps == whole.store(0).steps == 480
    np.testing.assert_array_equal(
        np.sort(first.array("action.npy")), np.sort(whole.store(0).fields().action.read())
    )
    assert run.store().deployments[1].manifest.steps == 240
    with pytest.raises(SettingError, match=r"initial: got .*expected random, varied, the folder of a run"):
        cascade.run(replace(config, initial=str(tmp_path / "nothing")), tmp_path / "other")
    with pytest.raises(SettingError, match=r"initial: .* data of seed 7, or of one seed alone; it has 0, 1"):
        cascade.run(config, tmp_path / "other", seeds=7)
    with pytest.raises(SettingError, match=r"initial: .* data with the observations and actions of"):
        cascade.run(replace(config, env=EnvConfig("probe:two-rooms")), tmp_path / "other")
    assert not (tmp_path / "other").exists(), "the corrected command is not refused as another run"


def test_info_that_other_data_lack_is_zero_and_said_to_be(whole, tmp_path):
    spec = replace(whole.spec, info={**whole.spec.info, "height": ArraySpec((2,), "float32")})
    note = initial.copy(str(whole.path), tmp_path / "data", spec, 0)
    assert "has no info height: zeros are stored for it" in note
    stored = Store.open(tmp_path / "data").info("height").read()
    assert stored.shape == (whole.store(0).rows, 2)
    assert not stored.any()


@pytest.mark.parametrize("name", ["embedding", "diversity"])
def test_a_misspelt_choice_is_refused_before_anything_is_written(tmp_path, name):
    config = tiny(explore=replace(tiny().explore, **{name: "finale"}))
    with pytest.raises(SettingError, match=f"explore.{name}: got 'finale', expected one of"):
        cascade.run(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_updates_that_are_not_finite_are_skipped_counted_and_end_the_run(tmp_path):
    world = replace(tiny().world, optimizer=replace(tiny().world.optimizer, lr=1e30))
    config = tiny(world=world, max_skipped=3)
    with pytest.raises(
        CascadeError, match=r"updates of the world model were not finite .* max-skipped, which is 3"
    ):
        cascade.run(config, tmp_path / "run")
    saved = cascade.open(tmp_path / "run")
    assert finite(saved_state(saved)), "the last checkpoint is from before"
    assert saved.store().steps == 240


def test_a_full_disk_is_one_line_and_loses_nothing(whole, tmp_path, monkeypatch):
    save, calls = loop.checkpoint.ocp.CheckpointManager.save, []

    def failing(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return save(self, *args, **kwargs)

    monkeypatch.setattr(loop.checkpoint.ocp.CheckpointManager, "save", failing)
    with pytest.raises(CascadeError, match=r"cannot write \(No space left on device\); free some space"):
        cascade.run(tiny(), tmp_path / "run", seeds=SEEDS)
    again = cascade.run(tiny(), tmp_path / "run", seeds=SEEDS)
    assert all(same(weights(again, seed), weights(whole, seed)) for seed in SEEDS)


def test_what_is_not_a_run_or_of_another_version_or_in_use_says_so(whole, tmp_path):
    with pytest.raises(CascadeError, match=r"not a run of cascade \(run.json: missing\)"):
        cascade.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CascadeError, match="cannot write"):
        cascade.run(tiny(), tmp_path / "file" / "run")
    old = tmp_path / "old"
    old.mkdir()
    document = json.loads((whole.path / "run.json").read_text())
    document.pop("crc32")
    from cascade.data.files import write_json

    write_json(old / "run.json", document | {"format": 0})
    with pytest.raises(CascadeError, match="written in format 0, this version reads 1; go on with cascade 0"):
        cascade.run(tiny(), old, seeds=SEEDS)
    with (
        Folder(whole.path).locked(),
        pytest.raises(CascadeError, match="another process is working on this run"),
    ):
        cascade.run(tiny(), whole.path, seeds=SEEDS)


def test_changed_data_are_noticed(tmp_path):
    config = tiny(method="random", model_steps=8)
    run = cascade.run(replace(config, deployments=1), tmp_path / "run")
    manifest = run.store().deployments[0].path / "manifest.json"
    other = cascade.run(replace(config, deployments=1), tmp_path / "other", seeds=3)
    manifest.parent.rename(tmp_path / "aside")
    (other.store(3).deployments[0].path).rename(manifest.parent)
    with pytest.raises(CascadeError, match="not the data that the checkpoint was trained on"):
        cascade.run(config, tmp_path / "run", allow_changes=True)


def test_calls_begin_at_the_same_steps_wherever_a_phase_is_resumed(whole):
    calls = list(train.chunks(0, 20, 8))
    assert calls == [(0, 8), (8, 8), (16, 4)]
    assert list(train.chunks(8, 20, 8)) == calls[1:]
    assert [train.steps_per_call(whole.spec, steps) for steps in (600, 20, 7, 1)] == [8, 5, 7, 8]


def test_convolutional_models_train_their_seeds_one_after_another(whole):
    assert groups(whole.spec, (0, 1)) == [(0, 1)]
    image = replace(whole.spec.observations["vector"], kind="image", shape=(8, 8, 1))
    assert groups(replace(whole.spec, observations={"image": image}), (0, 1)) == [(0,), (1,)]
