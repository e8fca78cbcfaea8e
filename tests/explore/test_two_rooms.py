"""The paper's Figure 2, with the example a user would run."""

import json
import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_rooms.py"


def test_pp2e_gathers_in_the_richer_room_and_cascade_reaches_both():
    """Five seeds that no setting of the example was chosen on (that was 0 to 29), with shorter training.

    A process of its own, with the optimised code that a user gets.
    """
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    shorter = ["--model-steps", "400", "--explorer-steps", "100"]
    run = subprocess.run(
        [sys.executable, EXAMPLE, "--seeds", "100-104", *shorter],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(run.stdout)
    assert result["pp2e"]["all_in_the_richer"] == 5, result["pp2e"]
    assert result["cascade"]["both_rooms"] == 5, result["cascade"]
