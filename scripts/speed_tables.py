"""Tables of step times and rates, from the records under benchmarks/."""

from typing import Any

from cascade.cli.bench import rows


def where(machine: dict[str, Any]) -> str:
    """The machine and the versions, in a line."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    cores = "1 core" if machine["cores"] == 1 else f"{machine['cores']} cores"
    hardware = {"cpu": cores}.get(machine["devices"][0], machine["devices"][0])
    return f"{hardware}, {machine['platform']}, Python {machine['python']}, {versions}."


def cpu_table(document: dict[str, Any]) -> str:
    """What `cascade bench` measured, under its command and its machine."""
    lines = [
        "```console",
        document["command"],
        "```",
        "",
        where(document["machine"]),
        "",
        "| what | median | best | notes |",
        "|---|---:|---:|---|",
        *(f"| {' | '.join(row)} |" for row in rows(document)),
    ]
    return "\n".join(lines) + "\n"


def gpu_table(document: dict[str, Any]) -> str:
    """Step times of the full-size and the compact model."""
    lines = [
        where(document["machine"]),
        "",
        "| step | ms | GFLOP | TFLOP/s | first call, s |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, step in document["steps"].items():
        cells = (
            f"{step['ms']:.2f}",
            f"{step['gflop']:,.0f}",
            f"{step['tflop_per_s']:.0f}",
            f"{step['first_call_s']:.0f}",
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def graphs_table(document: dict[str, Any]) -> str:
    """Step times by what goes into CUDA graphs."""
    settings = document["settings"]
    (first, *_) = settings.values()
    lines = [
        where(first["machine"]),
        "",
        f"| ms | {' | '.join(settings)} |",
        "|---|" + "---:|" * len(settings),
    ]
    for name in first["steps"]:
        cells = (f"{own['steps'][name]['ms']:.2f}" for own in settings.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def roofline_table(document: dict[str, Any]) -> str:
    """Lower bounds of the full-size steps, and of the parts of one of them."""
    lines = [
        f"{document['rate_tflop_per_s']:.0f} TFLOP/s, {document['bandwidth_tb_per_s']} TB/s.",
        "",
        "| | GFLOP | GB | products | arithmetic, ms | at least, ms | measured, ms |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    named = [*document["steps"].items(), *((f"*{name}*", part) for name, part in document["parts"].items())]
    for name, found in named:
        measured = f"{found['measured_ms']:.2f}" if "measured_ms" in found else ""
        cells = (
            f"{found['gflop']:,.0f}",
            f"{found['gigabytes']:.1f}",
            f"{found['products']}",
            f"{found['arithmetic_ms']:.2f}",
            f"{found['roofline_ms']:.2f}",
            measured,
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def families_table(document: dict[str, Any]) -> str:
    """Environments and steps of the other families' small presets."""
    settings = document["settings"]
    lines = [
        where(document["machine"]),
        "",
        f"| preset | environment steps/s, {settings['workers']} workers | world model, ms | explorers, ms |",
        "|---|---:|---:|---:|",
    ]
    for name, found in document["presets"].items():
        steps = (
            f"{found[part]['ms']:.2f}" if part in found else "not measured" for part in ("world", "explorers")
        )
        lines.append(f"| `{name}` | {found['vectoriser']['steps_per_s']:,} | {' | '.join(steps)} |")
    return "\n".join(lines) + "\n"
