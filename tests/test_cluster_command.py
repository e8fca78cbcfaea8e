"""`cascade run --engine ray`: what the words mean, and what is said without the extra."""

import sys

import pytest

from cascade.cli.main import main, parse


@pytest.mark.parametrize(
    "words", [["--engine", "ray", "--address", "head:6379"], ["--engine=ray", "--address=head:6379"]]
)
def test_engine_and_address_are_settings_of_the_deployment(words: list[str]) -> None:
    deploy = parse(["run", "demo", *words, "--deploy.runners", "7", "--deploy.groups", "4"]).config.deploy
    assert (deploy.engine, deploy.address) == ("ray", "head:6379")
    assert (deploy.runners, deploy.groups) == (7, 4)


def test_without_the_extra_one_line_says_what_to_install(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["--smoke", "--env", "probe:chain", "--env.observation", "auto", "--method", "random"]
    with pytest.raises(SystemExit) as ended:
        main(["run", "demo", *words, "--engine", "ray", "--out", str(tmp_path / "run"), "--quiet"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "deploy.engine ray needs the extra 'ray': pip install 'cascade-rl[ray]'" in " ".join(said.split())
