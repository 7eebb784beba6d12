#!/usr/bin/env python3
"""Trains real PyTorch, unmodified, on the simulated GPU: bare, under Spillway, and in less memory than it wants.

Without a SCRIPT a ResNet-50 and a GPT-2 of tests/pytorch run; --all runs all trials. Kernels do not compute: each writes a hash of what
it read, so equal output means that every byte was in its place. The exit code is 0 if every run printed the same as the bare run and
held no more device memory than its budget. --start-up N measures what Spillway adds to `import torch` and a first kernel, by N starts
each on this machine's clocks. Other times are those of the simulated GPU's clock. docs/pytorch.md says what holds and what does
not.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from main_job import mib, print_table  # noqa: E402
from pytorch_parts import recordings, start_up, trials  # noqa: E402
from pytorch_parts.environment import CannotDownload, CannotMake, Environment  # noqa: E402
from pytorch_parts.runs import RunFailed, Runner, faults, simulated_settings  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "tests" / "pytorch"
GRANULE = 2 << 20
LACKING = re.compile(r"^spillway simulator: (\S+) is not simulated$", re.M)


class Books:
    """What the simulator lacked and what had no rule, over all runs."""

    def __init__(self):
        self.lacking = collections.Counter()
        self.without_rule = collections.Counter()

    def add(self, run):
        self.lacking.update(LACKING.findall(run.errors))
        self.lacking.update(run.counted("not_supported"))
        self.without_rule.update(run.counted("kernels_without_rule"))

    def show(self):
        for title, counter in (("Called and lacking", self.lacking), ("Kernels without a rule", self.without_rule)):
            print(f"\n{title}: {sum(counter.values()) or 'none'}")
            for name, count in counter.most_common():
                print(f"  {count:6} {name[:150]}")


def slow_down(run, bare):
    """Of a late step where the program times its steps; else of the whole run."""
    if run.step_ms() and bare.step_ms():
        return f"{run.step_ms() / bare.step_ms():.2f}x a step"
    return f"{run.simulated_ms() / bare.simulated_ms():.2f}x" if bare.simulated_ms() else "-"


def moved(run, key):
    """GiB a step where the program counts its steps; else MiB in all."""
    a_step = run.gib_a_step(key)
    return f"{mib(run.moved(key))} MiB" if a_step is None else f"{a_step:.2f} GiB"


def prediction(run, bare):
    """What the plan said of a step, and from which iteration on it was followed."""
    learning = run.learning()
    if not learning or not learning["planned_at_iteration"] or not bare.step_ms():
        return "-", "-"
    return f"{learning['predicted_iteration_ns'] / 1e6 / bare.step_ms():.2f}x", str(learning["planned_at_iteration"])


def row(name, allocator, run, bare):
    if run is bare:
        return [name, allocator, run.label, mib(run.held_bytes()), "-", "-", "1.00x", "-", "-", "-"]
    return [name, allocator, run.label, mib(run.held_bytes()), moved(run, "offloaded_bytes"), moved(run, "restored_bytes"),
            slow_down(run, bare), *prediction(run, bare), "yes" if run.output == bare.output else "NO"]


def runs_on_small(runner, device):
    capacity = device.capacity_mib << 20
    bare = runner.run("bare", SPILLWAY_SIM_CAPACITY=str(capacity))
    return [bare, runner.run(f"{device.capacity_mib} MiB", capacity, bare, ["--host", f"{device.host_mib}MiB"])]


def runner_of(trial, build_dir, environment, profile, allocator, *before):
    """`before`: words before the program's."""
    script = SCRIPTS / trial.script  # an absolute path stays as it is
    return Runner(build_dir, profile, [*before, str(environment.python), str(script), *trial.arguments],
                  simulated_settings(environment, allocator, trial.devices), trial.may_differ.get(allocator))


def runs_of(trial, build_dir, environment, profile, allocator):
    runner = runner_of(trial, build_dir, environment, profile, allocator)
    if trial.small_device:
        return runs_on_small(runner, trial.small_device)
    bare = runner.run("bare")
    runs = [bare, runner.run("no budget", 0, bare)]
    for share in trial.shares[allocator]:
        as_bare = share == trials.AS_BARE
        wanted_bytes = bare.held_bytes() if as_bare else runs[1].peak_bytes() * share // 100
        runs.append(runner.run(share if as_bare else f"{share} %", max(wanted_bytes // GRANULE, 2) * GRANULE, bare))
    return runs


class Session:
    """All trials of one call, two side by side: PyTorch's processes leave a processor idle now and then."""

    def __init__(self, build_dir, environment, profile):
        self._of = (build_dir, environment, profile)
        self.books, self.rows, self.found = Books(), [], []

    def run(self, chosen):
        with concurrent.futures.ThreadPoolExecutor(max_workers=min(len(os.sched_getaffinity(0)), 4)) as pool:
            jobs = [(trial, allocator, pool.submit(runs_of, trial, *self._of, allocator)) for trial in chosen for allocator in trial.shares]
            for trial, allocator, job in jobs:
                self._take(trial.name, allocator, job)

    def _take(self, name, allocator, job):
        try:
            runs = job.result()
        except RunFailed as problem:
            print(f"  {name}, {allocator}: FAILED", flush=True)
            self.found.append(f"{name}, {allocator}, {problem}")
            return
        own = [f"{name}, {allocator}, {run.label}: {fault}" for run in runs for fault in faults(run, runs[0])]
        seconds = sum(run.wall_seconds for run in runs)
        print(f"  {name}, {allocator}: {'FAILED' if own else 'same'} ({len(runs)} runs, {seconds:.0f} s here)", flush=True)
        for run in runs:
            self.books.add(run)
        self.rows += [row(name, allocator, run, runs[0]) for run in runs]
        self.found += own

    def show(self, profile):
        print(f"\nOn a simulated {profile} (MiB of one process; moved by all, a step on average or in all; simulated time against the bare "
              "run; planned: what the plan predicted, and the iteration from which it was followed)\n")
        print_table(["program", "allocator", "budget", "held at most", "out", "in", "time", "planned", "from", "as bare"], self.rows)
        self.books.show()
        print("".join(f"\nFAILED: {fault}" for fault in self.found), end="\n" if self.found else "")


def choose(options):
    if options.arguments and not options.script:
        raise CannotMake(f"{options.arguments[0]} must come before the build folder")
    if options.all:
        return trials.ALL
    if not options.script:
        return trials.FIRST
    if not options.script.is_file():
        raise CannotMake(f"there is no script {options.script}")
    return [trials.Trial(options.script.stem, str(options.script.resolve()), tuple(options.arguments))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage="pytorch.py [--all | --start-up N | --record FOLDER] [--profile NAME] [--patience S] BUILD_DIR [SCRIPT [ARGUMENT...]]")
    parser.add_argument("build_dir", type=pathlib.Path)
    parser.add_argument("--all", action="store_true", help="all trials of tools/pytorch_parts/trials.py")
    parser.add_argument("--start-up", type=int, default=0, metavar="N", help="measure the start, N times bare and under Spillway")
    parser.add_argument("--record", type=pathlib.Path, metavar="FOLDER", help="record allocations and launches: tests/fixtures/pytorch")
    parser.add_argument("--profile", default="h200", help="the simulated GPU (default h200)")
    parser.add_argument("--patience", type=float, default=None, help="seconds that the packages may take; then exit with 75")
    parser.add_argument("script", nargs="?", type=pathlib.Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    chosen = choose(options)
    build_dir = options.build_dir.resolve()
    environment = Environment(build_dir / "pytorch", SCRIPTS / "requirements.txt")
    try:
        environment.make(build_dir / "simulator", options.patience)
    except (subprocess.TimeoutExpired, CannotDownload) as problem:
        if not options.patience:
            raise
        print(f"pytorch: not run, as the packages could not be had within {options.patience:.0f} s: {str(problem).splitlines()[0]}")
        return 75
    if options.start_up:
        own = simulated_settings(environment, "async", 1)
        return 0 if start_up.run(build_dir, options.profile, environment.python, own, options.start_up) else 1
    if options.record:
        for trial in recordings.RECORDED:
            path = recordings.record(lambda *before: runner_of(trial, build_dir, environment, options.profile, "async", *before),
                                     trial, options.record)
            print(f"  {path}: {path.stat().st_size / 1024:.0f} KiB", flush=True)
        return 0
    session = Session(build_dir, environment, options.profile)
    session.run(chosen)
    session.show(options.profile)
    return 1 if session.found else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (CannotMake, RunFailed) as problem:
        sys.exit(f"pytorch: {problem}")
