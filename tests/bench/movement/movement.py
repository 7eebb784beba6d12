#!/usr/bin/env python3
"""How much slower training is below its memory peak, live on the simulated GPU. One command, one table; all simulated.

Every cell is a whole run of a trainer (tests/workloads) at real size, in the compute mode `tags`: bare, or under the preload
library at a part of the peak that the job wants. A figure is the steady time of a step on the virtual clock over the
bare one's: the median of the last steps, two by two, so that a census (the job is stopped and its memory looked through, each
time after twice as many launches) does not count as if it came in every sixth step. Every run's losses and checksum are compared with the bare run's: `!` marks a run whose bytes differ,
`-` one that ended with an error.

  movement.py                                          everything (about half an hour on two cores)
  movement.py --networks resnet50 --profiles h200      a part
  movement.py --policies reactive,spillway --json FILE
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "support"))

import simulated_gpu  # noqa: E402  (path set above)

# The smaller batch is for devices of 12 GB, so that the bare run fits.
NETWORKS = {
    "vgg16": ("convnet --model=vgg16 --image=224 --batch={0} --images={0}", 128, 64),
    "resnet50": ("convnet --model=resnet50 --image=224 --batch={0} --images={0}", 128, 64),
    "resnet152": ("convnet --model=resnet152 --image=224 --batch={0} --images={0}", 64, 32),
    "gpt2": ("gpt --layers=12 --width=768 --heads=12 --sequence=1024 --vocabulary=50257 --batch={0}", 8, 4),
}
SMALL_PROFILES = ("1080ti", "k40c", "m40")
PROFILES = ("h200", "a100", "1080ti")
BUDGETS = (100, 90, 75, 50, 35, 25)
# Who decides what moves: the learned plan of a strategy, or `reactive`, which learns nothing.
POLICIES = ("reactive", "vdnn-all", "autoswap", "delta", "spillway")
STEADY_STEPS = 12  # by twos: some trainers repeat themselves every two steps only, since they feed from two buffers
UNLIMITED = 1 << 40
HOST_BYTES = 128 << 30  # as a GPU node has; in `tags` only what holds tags takes real memory


@dataclasses.dataclass
class Measured:
    step_ns: int  # steady, on the virtual clock; 0: the run failed
    times_ms: list  # of all steps but the first
    output: str  # losses and checksum
    report: dict
    books: dict
    why: str  # the last line of a failed run's errors

    @property
    def runs(self):
        return self.step_ns > 0


def command_of(network, profile):
    template, large, small = NETWORKS[network]
    return template.format(small if profile in SMALL_PROFILES else large).split()


def run(options, network, profile, budget_bytes=None, policy=None, **settings):
    """One run; bare when there is no budget. `settings` are SPILLWAY_ variables."""
    build = pathlib.Path(options.build)
    library = build / "lib" / "libspillway.so" if budget_bytes else None
    env = simulated_gpu.environment(build, library, budget_bytes, profile)
    program, *arguments = command_of(network, profile)
    with tempfile.TemporaryDirectory(prefix="movement-") as folder:
        report, books = (pathlib.Path(folder) / name for name in ("report.json", "books.json"))
        env.update(SPILLWAY_SIM_COMPUTE="tags", SPILLWAY_SIM_STATS=str(books), SPILLWAY_REPORT=str(report),
                   SPILLWAY_HOST_LIMIT=str(HOST_BYTES))
        if policy == "reactive":
            env["SPILLWAY_LEARN"] = "off"
        elif policy:
            env.update(SPILLWAY_LEARN="wait", SPILLWAY_STRATEGY=policy)
        env.update({f"SPILLWAY_{name}": str(value) for name, value in settings.items()})
        command = [build / "workloads" / program, *arguments, f"--steps={options.steps}", "--times"]
        try:
            ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=options.limit_s, check=False)
        except subprocess.TimeoutExpired:
            return Measured(0, [], "", {}, {}, f"not done after {options.limit_s} s")
        return measured(ended, *(json.loads(file.read_text()) if file.exists() else {} for file in (report, books)))


def measured(ended, report, books):
    times_ms = [float(text) for text in re.findall(r"^step \d+ took (\S+) ms$", ended.stderr, re.M)]
    if ended.returncode != 0 or len(times_ms) < STEADY_STEPS:
        lines = [line for line in ended.stderr.splitlines() if not line.startswith("step ")]
        return Measured(0, times_ms, ended.stdout, report, books, lines[-1] if lines else f"ended with {ended.returncode}")
    steady_ms = times_ms[-STEADY_STEPS:]
    step_ns = round(statistics.median(map(sum, zip(steady_ms[::2], steady_ms[1::2]))) / 2 * 1e6)
    return Measured(step_ns, times_ms, ended.stdout, report, books, "")


class Series:
    """All runs of one network on one profile."""

    def __init__(self, options, pool, network, profile):
        self.network, self.profile = network, profile
        self.bare = run(options, network, profile)
        if not self.bare.runs:
            raise SystemExit(f"movement: {network} on {profile} fails bare: {self.bare.why}")
        self.fits = run(options, network, profile, UNLIMITED, LEARN="always")
        self.peak_bytes = self.fits.report["wanted_peak_bytes"]
        self.cells = {
            (percent, policy): pool.submit(run, options, network, profile, self.peak_bytes * percent // 100, policy)
            for percent in options.budgets for policy in options.policies
        }

    def slow_down(self, cell):
        """In per cent."""
        return 100.0 * (cell.step_ns / self.bare.step_ns - 1)

    def text(self, cell):
        if not cell.runs:
            return "-"
        return f"{self.slow_down(cell):.1f}{'' if cell.output == self.bare.output else ' !'}"

    def steps_per_iteration(self):
        """What was learned as one iteration: a job that fits is predicted as it runs."""
        predicted_ns = self.fits.report.get("learning", {}).get("predicted_iteration_ns", 0)
        return max(1, round(predicted_ns / self.bare.step_ns))

    def learned(self, cell, name):
        """A figure in nanoseconds that the report states of the plan, as a slow-down."""
        value = cell.report.get("learning", {}).get(name, 0) / self.steps_per_iteration()
        return f"{100.0 * (value / self.bare.step_ns - 1):.1f}" if value else ""


def print_series(options, series):
    columns = list(options.policies) + ["predicted", "bound", "planned at", "calls per step", "GiB out / in per step"]
    print(f"\n### {series.network}, {series.profile}: {series.bare.step_ns / 1e6:.1f} ms per step bare, peak "
          f"{series.peak_bytes / 2**30:.2f} GiB (simulated)\n")
    print("| budget | " + " | ".join(columns) + " |\n|---" * 1 + "|---" * len(columns) + "|")
    print(f"| unlimited, always learning | {series.text(series.fits)}, {moved_bytes(series.fits)} bytes moved |" + " |" * (len(columns) - 1))
    for percent in options.budgets:
        cells = {policy: series.cells[percent, policy].result() for policy in options.policies}
        own = cells[options.policies[-1]]
        plan = own.report.get("learning", {})
        print(f"| {percent} % | " + " | ".join([
            *(series.text(cell) for cell in cells.values()), series.learned(own, "predicted_iteration_ns"),
            series.learned(own, "lower_bound_ns"), planned_at(plan), calls_per_step(own), gibibytes_per_step(own)
        ]) + " |", flush=True)


def print_learning(options, series):
    """What learning costs while it lasts, and when the plan is there: the first time, and with the first run's plan kept."""
    half = series.peak_bytes // 2
    slowest_ms = max(series.fits.times_ms, default=0.0)
    with tempfile.TemporaryDirectory(prefix="movement-") as store:
        first, second = (run(options, series.network, series.profile, half, "spillway", PLAN_STORE=store)
                         for _ in range(2))
    planned = [run.report.get("learning", {}).get("planned_at_iteration", 0) or "never" for run in (first, second)]
    print(f"\nLearning: the slowest step of a job that fits is {100 * (1e6 * slowest_ms / series.bare.step_ns - 1):.1f} % "
          f"slower than bare. At 50 %: planned at iteration {planned[0]}, in a second run at iteration {planned[1]}; an "
          f"iteration is {series.steps_per_iteration()} step(s).")


def planned_at(plan):
    """`none fits`: what one operation names exceeds the budget, or no plan within it was found."""
    if plan.get("planned_at_iteration"):
        return str(plan["planned_at_iteration"])
    return "none fits" if plan.get("plans_refused") else ""


def moved_bytes(cell):
    return sum(cell.report.get(name, 0) for name in ("offloaded_bytes", "restored_bytes"))


def calls_per_step(cell):
    """Of cuMemMap, cuMemUnmap, cuMemSetAccess, cuMemCreate and cuMemRelease, over the whole run."""
    names = ("vmm_creates", "vmm_maps", "vmm_set_accesses", "vmm_unmaps", "vmm_releases")
    steps = steps_of(cell)
    return str(round(sum(cell.books.get(name, 0) for name in names) / steps)) if steps else ""


def gibibytes_per_step(cell):
    """Copied out of the device and back into it, over the whole run."""
    steps = steps_of(cell)
    names = ("offloaded_bytes", "restored_bytes")
    return " / ".join(f"{cell.report.get(name, 0) / steps / 2**30:.2f}" for name in names) if steps else ""


def steps_of(cell):
    return len(re.findall(r"^step \d+ loss", cell.output, re.M))


def differing(series_list):
    """Texts for runs whose bytes differ."""
    for series in series_list:
        for (percent, policy), future in series.cells.items():
            cell = future.result()
            if not cell.runs:
                yield f"{series.network} on {series.profile} at {percent} % with {policy} fails: {cell.why}"
            elif cell.output != series.bare.output:
                yield f"{series.network} on {series.profile} at {percent} % with {policy} computes other bytes"


def figures(series_list):
    """Everything for --json."""
    return [{
        "network": series.network, "profile": series.profile, "bare_step_ns": series.bare.step_ns,
        "peak_bytes": series.peak_bytes, "percent": percent, "policy": policy, "step_ns": future.result().step_ns,
        "same_bytes": future.result().output == series.bare.output, "why": future.result().why,
        "report": future.result().report, "books": future.result().books,
    } for series in series_list for (percent, policy), future in series.cells.items()]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: tuple(text.split(","))  # noqa: E731
    parser.add_argument("--build", default=str(HERE.parents[3] / "build"), metavar="FOLDER")
    parser.add_argument("--networks", type=names, default=tuple(NETWORKS), metavar="A,B", help=",".join(NETWORKS))
    parser.add_argument("--profiles", type=names, default=PROFILES, metavar="A,B", help=",".join(PROFILES))
    parser.add_argument("--budgets", type=lambda text: tuple(int(part) for part in text.split(",")), default=BUDGETS,
                        metavar="P,Q", help="per cent of the peak")
    parser.add_argument("--policies", type=names, default=POLICIES, metavar="A,B",
                        help="reactive, or strategies; predictions are the last one's")
    parser.add_argument("--steps", type=int, default=26, help=f"of each run; the last {STEADY_STEPS} count")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--limit-s", type=int, default=600, help="for one run, by the real clock")
    parser.add_argument("--no-learning", dest="learning", action="store_false",
                        help="leave out what learning costs and when the plan is there")
    parser.add_argument("--json", metavar="FILE", help="all figures, reports and books")
    options = parser.parse_args(arguments)
    for name in options.networks:
        if name not in NETWORKS:
            parser.error(f"unknown network '{name}'; known: {' '.join(NETWORKS)}")
    return options


def main():
    options = parse(sys.argv[1:])
    print("Slow-down of a step in per cent, simulated (virtual clock), against the bare run.")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        all_series = []
        for profile in options.profiles:
            for network in options.networks:
                all_series.append(Series(options, pool, network, profile))
                print_series(options, all_series[-1])
                if options.learning:
                    print_learning(options, all_series[-1])
        problems = list(differing(all_series))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures(all_series), indent=1))
    for problem in problems:
        print("movement:", problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
