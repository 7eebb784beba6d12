#!/usr/bin/env python3
"""How much training below its memory peak slows down, live on the simulated GPU. One command, one
table; all simulated.

Every cell is a whole run of a trainer (tests/workloads) at real size, in the compute mode `tags`:
bare, or under the preload library with a share of its peak as budget. A figure is the steady step
time on the virtual clock, relative to the bare run. Every run's losses and checksum are compared
with the bare run's.

    movement.py                                          everything, the table last
    movement.py --networks resnet50 --profiles h200      a part
    movement.py --policies reactive,spillway --json FILE
    movement.py --page docs/movement.md                  the table as a page
    movement.py --kept-only                              what earlier calls have found, nothing new

Results are kept (--keep FOLDER): an interrupted call continues where it stopped.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

import table
from runs import HERE, Run, Runner

# The smaller batch is for devices of 12 GB, so that the bare run fits.
NETWORKS = {
    "vgg16": ("convnet --model=vgg16 --image=224 --batch={0} --images={0}", 128, 64),
    "resnet50": ("convnet --model=resnet50 --image=224 --batch={0} --images={0}", 128, 64),
    "resnet152": ("convnet --model=resnet152 --image=224 --batch={0} --images={0}", 64, 32),
    "gpt2": ("gpt --layers=12 --width=768 --heads=12 --sequence=1024 --vocabulary=50257 --batch={0}", 8, 4),
}
SMALL_PROFILES = ("1080ti", "k40c", "m40")
PROFILES = ("h200", "a100", "1080ti")
BUDGETS = (90, 75, 50, 35, 25)
# The policy that decides movement: the learned plan of a strategy, or `reactive`, which learns
# nothing.
POLICIES = ("reactive", "vdnn-all", "autoswap", "delta", table.OWN)
STEPS = (14, 32)  # the second where a run is not steady after the first
# Of each kernel that experiments have proved, the first 24 outputs that are dropped are copied as well
# (docs/decisions/0011-known-by-content.md). A gpt2 drops some once a step, so it is steady only after those.
STEPS_OF = {"gpt2": (40, 56)}
UNLIMITED = 1 << 40


def command_of(network, profile, steps):
    template, large, small = NETWORKS[network]
    return (*template.format(small if profile in SMALL_PROFILES else large).split(), f"--steps={steps}")


def settings_of(policy):
    if policy == "reactive":
        return (("LEARN", "off"),)
    return (("LEARN", "wait"), ("STRATEGY", policy))


class Work:
    """Makes or finds runs, and reports its progress."""

    def __init__(self, runner, planned, kept_only):
        self.runner, self.planned, self.kept_only = runner, planned, kept_only
        self.began_s, self.done, self.made = time.monotonic(), 0, 0

    def result_of(self, what, run):
        """None where only kept runs are allowed and there is none."""
        found = self.runner.find(run)
        result = found if found or self.kept_only else self.runner.result_of(run)
        if not found and result:
            self.made += 1
            print(f"[{self.done}/{self.planned}] {what}: {result.why or f'{result.step_ns / 1e6:.1f} ms'} in "
                  f"{result.cost_s:.0f} s; about {self.minutes_left()} min left", file=sys.stderr, flush=True)
        return result

    def minutes_left(self):
        """Where all that is left had to be run."""
        took_s = time.monotonic() - self.began_s
        return round(took_s / self.made * max(0, self.planned - self.done) / 60)


class Series:
    """All runs of one network on one profile."""

    def __init__(self, work, network, profile, budgets, policies):
        self.work, self.network, self.profile = work, network, profile
        self.budgets, self.policies = budgets, policies
        self.cells, self.bare_of, self.second = {}, {}, None
        self.steps = STEPS_OF.get(network, STEPS)
        self.fits = self.result_of("unlimited", self.steps[0], UNLIMITED, (("LEARN", "always"),))
        self.bare = self.bare_run(self.steps[0])

    def bare_run(self, steps):
        if steps not in self.bare_of:
            self.bare_of[steps] = self.result_of("bare", steps)
        return self.bare_of[steps]

    def result_of(self, what, steps, budget_bytes=0, settings=(), is_second=False):
        run = Run(command_of(self.network, self.profile, steps), self.profile, budget_bytes, settings, is_second)
        return self.work.result_of(f"{self.network} {self.profile} {what}", run)

    @property
    def bare_command(self):
        return command_of(self.network, self.profile, self.steps[0])

    @property
    def peak_bytes(self):
        return self.fits.report["wanted_peak_bytes"]

    def make_cells(self, pool):
        wanted = [(percent, policy) for percent in self.budgets for policy in self.policies]
        self.cells = dict(zip(wanted, pool.map(lambda cell: self.cell(*cell), wanted)))

    def cell(self, percent, policy):
        budget_bytes = self.peak_bytes * percent // 100
        for steps in self.steps:
            result = self.result_of(f"{percent} % {policy}", steps, budget_bytes, settings_of(policy))
            if result is None or not result.ended_well or result.is_steady:
                break
        self.work.done += 1
        is_compared = result is None or not result.ended_well or self.bare_run(result.steps)
        return result if is_compared else None

    def make_second(self):
        """The run with the plans that an equal run has left."""
        self.second = self.result_of("second run", self.steps[0], self.peak_bytes // 2, settings_of(table.OWN), is_second=True)
        self.work.done += 1

    def same_bytes(self, result):
        bare = self.bare_run(result.steps) if result.ended_well else None
        return bare is not None and result.output == bare.output


def series_of(options, work, pool):
    for profile in options.profiles:
        for network in options.networks:
            series = Series(work, network, profile, options.budgets, options.policies)
            if not series.fits or not series.bare:
                continue
            for result in (series.fits, series.bare):
                if not result.ended_well:
                    raise SystemExit(f"movement: {network} on {profile} fails where all fits: {result.why}")
            series.make_cells(pool)
            if options.learning and table.OWN in options.policies:
                series.make_second()
            yield series


def commit_of(folder):
    told = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: tuple(text.split(","))  # noqa: E731
    root = HERE.parents[3]
    parser.add_argument("--build", default=str(root / "build"), metavar="FOLDER")
    parser.add_argument("--keep", metavar="FOLDER", help="of results; default: movement in the build folder")
    parser.add_argument("--kept-only", action="store_true", help="run nothing: the table of what is kept")
    parser.add_argument("--networks", type=names, default=tuple(NETWORKS), metavar="A,B", help=",".join(NETWORKS))
    parser.add_argument("--profiles", type=names, default=PROFILES, metavar="A,B", help=",".join(PROFILES))
    parser.add_argument("--budgets", type=lambda text: tuple(int(part) for part in text.split(",")), default=BUDGETS,
                        metavar="P,Q", help="per cent of the peak")
    parser.add_argument("--policies", type=names, default=POLICIES, metavar="A,B", help="reactive, or strategies")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--limit-s", type=int, default=600, help="for one run, by the real clock")
    parser.add_argument("--no-learning", dest="learning", action="store_false", help="leave out when a second run has its plan")
    parser.add_argument("--json", metavar="FILE", help="all figures, reports and statistics")
    parser.add_argument("--page", metavar="FILE", help="the table as a page of docs")
    options = parser.parse_args(arguments)
    for name in options.networks:
        if name not in NETWORKS:
            parser.error(f"unknown network '{name}'; known: {' '.join(NETWORKS)}")
    options.commit = commit_of(str(root))
    return options


def main():
    options = parse(sys.argv[1:])
    runner = Runner(options.build, options.keep or pathlib.Path(options.build) / "movement", options.limit_s)
    per_series = len(options.budgets) * len(options.policies) + (1 if options.learning else 0)
    work = Work(runner, per_series * len(options.profiles) * len(options.networks), options.kept_only)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tables = [table.SeriesTable(series) for series in series_of(options, work, pool)]
    text = table.page(tables, options.commit)
    print(text)
    if options.page:
        pathlib.Path(options.page).write_text(text)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps([row for each in tables for row in each.figures()], indent=1))
    problems = [problem for each in tables for problem in each.problems()]
    for problem in problems:
        print("movement:", problem, file=sys.stderr)
    return 1 if problems or not tables else 0


if __name__ == "__main__":
    sys.exit(main())
