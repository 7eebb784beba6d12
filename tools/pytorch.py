#!/usr/bin/env python3
"""Trains real PyTorch, unmodified, on the simulated GPU: bare, under Spillway, and in less memory than it wants.

usage: pytorch.py BUILD_DIR [SCRIPT [ARGUMENT...]]

Without a SCRIPT those of tests/pytorch run. Kernels do not compute: each writes a hash of what it read, so equal output means that
every byte was in its place. The exit code is 0 if every run printed the same as the bare run and held no more device memory than
its budget. Times are those of the simulated GPU's clock. docs/pytorch.md says what holds and what does not.
"""
import argparse
import collections
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from main_job import Run, RunFailed, execute, faults, mib, print_table  # noqa: E402
from pytorch_parts.environment import CannotMake, Environment  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "tests" / "pytorch"
BUDGETS = [("no budget", ""), ("100 %", "100%peak"), ("50 %", "50%peak"), ("25 %", "25%peak")]
ALLOCATORS = {"caching": "backend:native", "async": "backend:cudaMallocAsync"}
LACKING = re.compile(r"^spillway simulator: (\S+) is not simulated$", re.M)


def settings(environment, allocator):
    return {"SPILLWAY_SIM_COMPUTE": "tags", "SPILLWAY_SIM_RULES": str(ROOT / "simulator" / "rules" / "pytorch.rules"),
            "SPILLWAY_LEARN": "wait", "LD_LIBRARY_PATH": str(environment.stand_ins), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTORCH_ALLOC_CONF": allocator, "PYTORCH_CUDA_ALLOC_CONF": allocator}


def is_race_at_exit(problem):
    """Python's own: a thread of autograd that wants the interpreter's lock while Python ends is ended within code that must not throw."""
    return str(problem).startswith("exit code -6") and str(problem).rstrip().endswith("terminate called without an active exception")


def execute_to_the_end(run, *arguments):
    try:
        execute(run, *arguments)
    except RunFailed as problem:
        if not is_race_at_exit(problem):
            raise
        print(" PyTorch's thread met Python's end; again ...", end="", flush=True)
        execute(run, *arguments)


class Books:
    """What the simulator lacked and what had no rule, over all runs."""

    def __init__(self):
        self.lacking = collections.Counter()
        self.without_rule = collections.Counter()

    def add(self, run):
        self.lacking.update(LACKING.findall(run.errors))
        self.lacking.update(run.statistics.get("not_supported", {}))
        self.without_rule.update(run.statistics.get("kernels_without_rule", {}))

    def show(self):
        for title, counter in (("Called and lacking", self.lacking), ("Kernels without a rule", self.without_rule)):
            print(f"\n{title}: {sum(counter.values()) or 'none'}")
            for name, count in counter.most_common():
                print(f"  {count:6} {name[:150]}")


def row(name, allocator, run, bare):
    same = "-" if run is bare else "yes" if run.output == bare.output else "NO"
    cells = [name, allocator, run.label, mib(run.statistics["device_bytes_peak"])]
    if run is bare:
        return cells + ["-", "-", "1.00x", same]
    return cells + [mib(run.report["offloaded_bytes"]), mib(run.report["restored_bytes"]),
                    f"{run.statistics['simulated_ns'] / bare.statistics['simulated_ns']:.2f}x", same]


def trial(build_dir, environment, script, arguments, allocator, books):
    """Rows for the table, and what went wrong."""
    runs = [Run("bare", "")] + [Run(label, budget) for label, budget in BUDGETS]
    command = [str(environment.python), str(script), *arguments]
    with tempfile.TemporaryDirectory(prefix="spillway-pytorch-") as folder:
        for run in runs:
            print(f"  {script.stem}, {allocator}, {run.label} ...", end="", flush=True)
            execute_to_the_end(run, build_dir, "h200", command, pathlib.Path(folder), settings(environment, ALLOCATORS[allocator]))
            books.add(run)
            print(f" {run.output.splitlines()[-1] if run.output else 'no output'} ({run.wall_seconds:.0f} s here)", flush=True)
    found = [f"{script.stem}, {allocator}, {run.label}: {fault}" for run in runs for fault in faults(run, runs[0])]
    return [row(script.stem, allocator, run, runs[0]) for run in runs], found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build_dir", type=pathlib.Path)
    options.add_argument("script", nargs="?", type=pathlib.Path)
    options.add_argument("arguments", nargs=argparse.REMAINDER)
    chosen = options.parse_args()
    build_dir = chosen.build_dir.resolve()
    environment = Environment(build_dir / "pytorch", SCRIPTS / "requirements.txt")
    environment.make(build_dir / "simulator")
    rows, found, books = [], [], Books()
    for script in [chosen.script.resolve()] if chosen.script else sorted(SCRIPTS.glob("*.py")):
        for allocator in ALLOCATORS:
            its_rows, its_faults = trial(build_dir, environment, script, chosen.arguments, allocator, books)
            rows += its_rows
            found += its_faults
    print("\nOn a simulated H200 (MiB; simulated time against the bare run)\n")
    print_table(["script", "allocator", "budget", "held at most", "moved out", "moved in", "time", "as bare"], rows)
    books.show()
    print("".join(f"\nFAILED: {fault}" for fault in found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (CannotMake, RunFailed) as problem:
        sys.exit(f"pytorch: {problem}")
