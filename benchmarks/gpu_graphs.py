"""What CUDA graphs give: step times with what XLA captures into them by itself, with nothing, and with loops too.

python benchmarks/gpu_graphs.py --out benchmarks/gpu_graphs.json
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = ("world model, full", "world model, minigrid-fourrooms, 5 seeds", "explorers, full, P=10, 80 starts")
LOOPS = "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,WHILE,CONDITIONAL"
SETTINGS = {
    "as XLA has it": "",
    "none": "--xla_gpu_enable_command_buffer=",
    "loops too": f"--xla_gpu_enable_command_buffer={LOOPS}",
}


def measure(flags: str, smoke: bool) -> dict:
    """`gpu_steps.py` in a process of its own, since XLA reads its flags once. What failed is recorded as such."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "steps.json"
        script = Path(__file__).with_name("gpu_steps.py")
        command = [sys.executable, str(script), "--out", str(out), "--only", *CASES, *["--smoke"] * smoke]
        run = subprocess.run(
            command, env=os.environ | {"XLA_FLAGS": flags}, stderr=subprocess.PIPE, text=True
        )
        found = json.loads(out.read_text()) if out.exists() else {}
    if run.returncode:
        found["error"] = run.stderr.strip().splitlines()[-1][:300]
        print(found["error"], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to try the script itself")
    args = parser.parse_args()
    results: dict = {"command": f"python benchmarks/gpu_graphs.py --out {args.out}", "settings": {}}
    for name, flags in SETTINGS.items():
        print(f"{name}: XLA_FLAGS={flags}", flush=True)
        results["settings"][name] = {"flags": flags} | measure(flags, args.smoke)
        args.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
