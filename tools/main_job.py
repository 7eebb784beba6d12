#!/usr/bin/env python3
"""Runs one training command on the simulated GPU, bare and under budgets, and compares all it printed and moved.

usage: main_job.py BUILD_DIR [--profile NAME] [--shares 100,50,25] [--json FILE] [-- COMMAND...]

The command (default: BUILD_DIR/workloads/digits_cnn) runs bare, then without a budget to measure its peak, then with
each share of that peak. The exit code is 0 if every run printed the same lines as the bare run and kept its budget. The
simulator's own statistics prove the budget. Times are simulated.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


@dataclasses.dataclass
class Run:
    label: str
    budget: str  # as given to --budget; empty: none
    output: str = ""
    errors: str = ""  # standard error
    report: dict = dataclasses.field(default_factory=dict)  # Spillway's report; empty for the bare run
    statistics: dict = dataclasses.field(default_factory=dict)  # of the simulator
    wall_seconds: float = 0.0


class RunFailed(Exception):
    pass


def read_json(path, writer):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFailed(f"{writer} left no readable JSON: {error}") from error


def execute(run, build_dir, profile, command, folder, settings=None, options=()):
    """Fills in the output, reports and wall time of `run`.

    `settings` go into the command's environment, `options` to `spillway run`, except for the bare run.
    """
    # Behind `spillway run`, which forgets what an outer job may have set.
    command = ["env", *(f"{name}={value}" for name, value in (settings or {}).items()), *command] if settings else command
    spillway = [str(build_dir / "bin" / "spillway"), "run", f"--simulate={profile}", "--quiet"]
    report, statistics = folder / "report.json", folder / "statistics.json"
    for stale in (report, statistics):
        stale.unlink(missing_ok=True)
    if run.label == "bare":
        spillway += ["--off"]
    else:
        spillway += ["--report", str(report), *options]
        spillway += ["--budget", run.budget] if run.budget else []
    environment = dict(os.environ, XDG_STATE_HOME=str(folder / "state"), SPILLWAY_SIM_STATS=str(statistics))
    begin = time.monotonic()
    result = subprocess.run([*spillway, "--", *command], env=environment, capture_output=True, text=True)
    run.wall_seconds = time.monotonic() - begin
    if result.returncode != 0:
        raise RunFailed(f"exit code {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-4000:]}")
    run.output, run.errors = result.stdout, result.stderr
    run.statistics = read_json(statistics, "the simulator")
    if run.label != "bare":
        run.report = read_json(report, "Spillway")


def mib(size_bytes):
    return f"{size_bytes / 2**20:,.1f}"


def moved_bytes(run):
    return run.report["offloaded_bytes"] + run.report["restored_bytes"]


def faults(run, bare):
    """The rules that `run` broke; empty if it passed."""
    found = []
    if run.output != bare.output:
        found.append("printed something else than the bare run")
    if run.statistics["violations"] or run.statistics["illegal_accesses"] or run.statistics["unmapped_while_in_use"]:
        found.append(f"broke the driver's rules: {run.statistics['violations'][:3]}")
    if not run.budget:
        return found
    budget_bytes = run.report["budget_bytes"]
    if run.statistics["device_bytes_peak"] > budget_bytes:
        found.append(f"held {run.statistics['device_bytes_peak']} bytes, more than its budget of {budget_bytes}")
    if budget_bytes < run.report["wanted_peak_bytes"] and moved_bytes(run) + run.report["dropped_bytes"] == 0:
        found.append("moved nothing, though the budget was below its peak")
    return found


def print_table(header, rows):
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  " + "  ".join(f"{str(cell):<{w}}" if i == 0 else f"{str(cell):>{w}}"
                               for i, (cell, w) in enumerate(zip(row, widths))))


def print_training(runs):
    """Prints the jobs' summary lines side by side, without their single steps."""
    lines = [[line for line in run.output.splitlines() if not line.startswith("step ")] for run in runs]
    if len({len(column) for column in lines}) != 1:
        return
    print("\nWhat the job says (all digits; the steps' losses are compared too)\n")
    print_table(["", *[run.label for run in runs]], [split_row(row) for row in zip(*lines)])


def split_row(cells):
    """("epoch 1 mean loss 0.5", "epoch 1 mean loss 0.6") -> ["epoch 1 mean loss", "0.5", "0.6"]"""
    words = [cell.split(" ") for cell in cells]
    named = 0  # the label ends with the last alphabetic word; the value follows
    for i, word in enumerate(words[0]):
        if word.isalpha() and word != "of":
            named = i + 1
    return [" ".join(words[0][:named]), *[" ".join(row[named:]) for row in words]]


def memory_row(run, bare):
    slow_down = run.statistics["simulated_ns"] / bare.statistics["simulated_ns"]
    same = "yes" if run.output == bare.output else "NO"
    if not run.report:
        return [run.label, "-", "-", "-", mib(run.statistics["device_bytes_peak"]), "-", "-", f"{slow_down:.2f}x", same]
    return [run.label, mib(run.report["wanted_peak_bytes"]), mib(run.report["budget_bytes"]) if run.budget else "-",
            mib(run.report["resident_peak_bytes"]), mib(run.statistics["device_bytes_peak"]),
            mib(run.report["offloaded_bytes"]), mib(run.report["restored_bytes"]), f"{slow_down:.2f}x", same]


def print_results(runs):
    print_training([run for run in runs if run.budget or run.label == "bare"])
    print("\nMemory (MiB) and simulated time\n")
    print_table(["", "wanted", "budget", "peak, Spillway", "peak, simulator", "moved out", "moved in", "slow-down",
                 "same output"], [memory_row(run, runs[0]) for run in runs])
    print("\n  slow-down is of simulated time against the bare run; 'peak, simulator' is what the simulated device says it held")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build_dir", type=pathlib.Path)
    parser.add_argument("--profile", default="h200")
    parser.add_argument("--shares", default="100,50,25", help="percent of the peak, by commas")
    parser.add_argument("--json", type=pathlib.Path, help="write reports and statistics of all runs there")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    options.build_dir = options.build_dir.resolve()
    options.command = words[split + 1:] or [str(options.build_dir / "workloads" / "digits_cnn")]
    return options


def main():
    options = parse_options()
    runs = [Run("bare", ""), Run("no budget", "")]
    runs += [Run(f"{share} %", f"{share}%peak") for share in options.shares.split(",")]
    with tempfile.TemporaryDirectory(prefix="spillway-main-job-") as folder:
        for run in runs:
            print(f"running {run.label:<10} {' '.join(options.command)}", flush=True)
            try:
                execute(run, options.build_dir, options.profile, options.command, pathlib.Path(folder))
            except RunFailed as failure:
                print(f"{run.label}: failed: {failure}")
                return 1
            print(f"        took {run.wall_seconds:.1f} s here, {run.statistics['simulated_ns'] / 1e6:.1f} ms simulated",
                  flush=True)
    print_results(runs)
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(run) for run in runs], indent=1), encoding="utf-8")
    found = [f"{run.label}: {fault}" for run in runs for fault in faults(run, runs[0])]
    print()
    for fault in found:
        print(fault)
    print("FAILED" if found else "every run printed the same, line for line, and kept its budget")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
