"""Every family of worlds through the whole loop: collect, learn, explore, measure, transfer and report, all tiny."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import shown

import cascade
from cascade.cli import main
from cascade.metrics.coverage import coverage
from cascade.presets import preset
from cascade.presets.smoke import smoke
from cascade.run.folder import Folder

MEASURED = {
    "episodes",
    "steps",
    "dataset_diversity",
    "deployed_distance",
    "held_out_loss",
    "information_gain",
}


def run_smoke(name, folder, deployments=2):
    """A preset in small, start to end; the test is skipped where its world cannot be had.

    What a second deployment compiles is compiled already, but environments are started again for it, which costs
    seconds: two families have one, with a discrete and a continuous policy.
    """
    config = replace(smoke(preset(name)), deployments=deployments)
    shown(config.env)
    run = cascade.run(config, folder / name)
    assert [d.manifest.steps for d in run.store().deployments] == [config.deploy.steps] * deployments
    assert all(np.isfinite(item["value"]) for item in run.results)
    last = {item["metric"] for item in run.results if item["deployment"] == deployments - 1}
    assert last >= MEASURED
    return run


def measured(run):
    with np.load(Folder(run.path).measures(0, run.deployments[-1])) as stored:
        return dict(stored)


def transferred(run):
    """What `cascade transfer` left behind, by task."""
    main(["transfer", str(run.path)])
    paths = (run.path / "transfer").glob("*/deploy-*/result.json")
    return {document["task"]: document["seeds"]["0"] for document in map(json.loads, map(_text, paths))}


def _text(path):
    return path.read_text(encoding="utf-8")


def reported(run):
    """The names of the figures of `cascade report`."""
    main(["report", str(run.path)])
    page = run.path / "report" / "index.html"
    assert page.stat().st_size > 10_000
    return {path.stem for path in page.parent.glob("figures/**/*.png")}


def test_atari(tmp_path):
    run = run_smoke("atari-montezuma", tmp_path)
    assert run.spec.observations["image"].shape == (64, 64, 1)
    arrays = measured(run)
    assert arrays["films"].shape[:2] == (2, 12)
    assert arrays["positions"].shape == (2, 2, 21, 3)
    assert arrays["rooms"].tolist() == [1], "20 steps lead nowhere else"
    assert arrays["room_pictures"].shape == (1, 210, 160, 3)
    found = transferred(run)["reward"]
    assert not found["learned"], "nobody finds a key in 20 steps"
    assert "nothing to learn" in found["reason"]
    assert {"films", "open-loop", "deployments", "rooms"} <= reported(run)


def test_crafter(tmp_path):
    run = run_smoke("crafter", tmp_path, deployments=1)
    assert {"crafter_score", "unique_skills"} <= {item["metric"] for item in run.results}
    assert len(run.store().info("achievements").read(0, 1)[0]) == 22
    arrays = measured(run)
    assert dict(zip(arrays["skill_names"], arrays["skills"], strict=True))["collect_diamond"] == 0.0
    found = transferred(run)["reward"]
    assert found["learned"] or "nothing to learn" in found["reason"]
    assert {"films", "open-loop", "deployments", "skills"} <= reported(run)


def test_the_walker_from_its_joints(tmp_path):
    run = run_smoke("dmc-walker-state", tmp_path)
    assert run.spec.action.kind == "continuous"
    found = transferred(run)
    assert found.keys() == {"stand", "walk", "run", "flip"}
    assert all(result["learned"] and len(result["returns"]) == 4 for result in found.values())
    assert min(found["stand"]["returns"]) > 0
    assert {"films", "open-loop", "deployments"} <= reported(run)


def test_the_walker_from_pictures(tmp_path):
    """What pictures change: collecting them, and the model of continuous actions on them."""
    config = replace(smoke(preset("dmc-walker")), method="random", deployments=1)
    shown(config.env)
    run = cascade.run(replace(config, measure=replace(config.measure, pictures=0)), tmp_path / "run")
    images = run.store().fields().obs["image"].read()
    assert images.std(0).max() > 0, "it moves"
    assert "held_out_loss" in {item["metric"] for item in run.results}


def test_minigrid_from_pictures(tmp_path):
    """Without explorers: theirs would be the programs of the other discrete worlds again."""
    config = replace(smoke(preset("minigrid-fourrooms-paper")), method="random", deployments=1)
    run = cascade.run(config, tmp_path / "run")
    arrays = measured(run)
    assert arrays["visits"].sum(axis=(2, 3)).min() >= 1
    recorded = {item["metric"]: item["value"] for item in run.results}
    assert recorded["coverage"] == pytest.approx(coverage(arrays["visits"], arrays["reachable"]))
    assert not arrays["visits"].any(axis=0)[~arrays["reachable"]].any(), "nobody walks through walls"
    found = transferred(run)["reward"]
    assert found["learned"] or "nothing to learn" in found["reason"]
    assert {"films", "open-loop", "deployments"} <= reported(run)
