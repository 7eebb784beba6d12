#!/usr/bin/env python3
"""The cost of learning nested loops: random ones, on the simulated GPU's virtual clock.

    Usage: nested_loops.py BUILD_FOLDER [--seeds FIRST-LAST] [--shares 30,60] [--steps N]

For each seed and share of the peak it runs build/workloads/nested_loops with and without
learning. It prints both times relative to a run with all memory, the moved bytes, and the fate of
plans. It exits with 1 when a run with learning took more than 2 % longer than without, or its
output differs.
"""
import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import simulated_gpu  # noqa: E402

MIB = 1 << 20
MOST_PERCENT = 102


def run(build, options, budget_bytes=None, learn="off"):
    """One run under the preload library; its report and the simulator's statistics."""
    env = simulated_gpu.environment(build, build / "lib" / "libspillway.so", budget_bytes, "a100")
    with tempfile.TemporaryDirectory(prefix="spillway-loops-") as folder:
        report = pathlib.Path(folder) / "report.json"
        env.update(SPILLWAY_REPORT=str(report), SPILLWAY_LEARN=learn, SPILLWAY_SIM_COMPUTE="tags")
        result = simulated_gpu.run([build / "workloads" / "nested_loops", *options], env, quiet_s=600)
        result.report = json.loads(report.read_text()) if report.exists() else {}
    if result.exit_code != 0:
        raise RuntimeError(f"{options} ended with {result.exit_code}: {result.errors}")
    return result


def moved_mib(result):
    return (result.report["offloaded_bytes"] + result.report["restored_bytes"]) // MIB


def compare(build, options, share):
    """Whether learning stayed within its allowed cost, and a line that reports it."""
    bare = run(build, options)
    budget_bytes = bare.report["wanted_peak_bytes"] * share // 100 // (2 * MIB) * (2 * MIB)
    off, on = (run(build, options, budget_bytes, learn) for learn in ("off", "wait"))
    bare_ns, off_ns, on_ns = (each.statistics["simulated_ns"] for each in (bare, off, on))
    is_same = on.output == off.output == bare.output
    learning = on.report["learning"]
    line = (f"{' '.join(options):45} {share:3} % of {bare.report['wanted_peak_bytes'] // MIB:4} MiB: "
            f"off {off_ns / bare_ns:6.3f} x bare, on/off {on_ns / off_ns:5.3f}, "
            f"moved {moved_mib(off):6} and {moved_mib(on):6} MiB; {learning['plans_adopted']} plans, "
            f"{learning['plans_dropped']} dropped; {learning['not_planned_because']}")
    return is_same and 100 * on_ns <= MOST_PERCENT * off_ns, line if is_same else line + " DIFFERENT OUTPUT"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seeds", default="1-20")
    parser.add_argument("--shares", default="30,60")
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    first, last = (int(seed) for seed in arguments.seeds.split("-"))
    failures = 0
    for seed in range(first, last + 1):
        options = ["--program=random", f"--seed={seed}", f"--steps={arguments.steps}"]
        for share in (int(share) for share in arguments.shares.split(",")):
            holds, line = compare(arguments.build.resolve(), options, share)
            failures += not holds
            print(line if holds else line + " <<<", flush=True)
    print(f"{failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
