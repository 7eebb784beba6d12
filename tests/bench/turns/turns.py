#!/usr/bin/env python3
"""Two trainings of which one simulated GPU holds only one, under one node agent: what the agent
chooses by itself, turns, and shares. One command, one table. All times are the simulator's (virtual
clock).

Two GPT-2 that need 95 % of the device each, and two ResNet-50 that need 60 %. A training first runs
alone and bare, for its time and output. Then two of it begin together, with `turns` = "auto",
"always" and "never". Every training must print its output from the run alone, and must never hold
more than the agent has budgeted it. Otherwise the exit code is 1. The goals are printed as met or
missed: for two GPT-2 the agent chooses turns, and they take at most 1.15 times the sum of their times
alone; for two ResNet-50 it chooses shares. It says why.

The agent's clock is the real one, while the jobs' time is simulated. So that a turn lasts two simulated
seconds, and a swap costs what it costs, the agent's quantum and link are stretched by how much longer
than its simulated time a short first run takes. Figures differ a little between runs: by 0.01, and more
while the machine is busy with something else, because jobs then learn for longer.

    turns.py                   on an H200
    turns.py --only gpt        one of the two pairs
    turns.py --quick           small: shows that all of it works; its figures say nothing, because
                               the trainings end before turns settle
"""
import argparse
import dataclasses
import pathlib
import re
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "support"))
sys.path.insert(0, str(HERE.parents[1] / "tenants"))

import node_agent  # noqa: E402  (path set above)
import tenants  # noqa: E402

MOST_SLOWER = 1.15
QUANTUM_S = 2  # the agent's default, of simulated time here
CALIBRATING_STEPS = 16


@dataclasses.dataclass
class Pair:
    """Two of a training: the part of the device that each wants, the standing that the agent should
    choose, and the steps that it has by default."""
    workload: str
    quick: str
    share: float
    should: str
    steps: int


PAIRS = {
    "gpt": Pair("gpt --layers=12 --width=768 --heads=12 --sequence=512 --vocabulary=16384 --batch=8", "gpt --layers=2 --width=512 --batch=4",
                0.95, "turns", 150),
    "resnet50": Pair("convnet --model=resnet50 --image=224 --batch=64 --images=64", "convnet --model=resnet18 --image=64 --batch=16 --images=16",
                     0.6, "shares", 60),
}
SETTINGS = """turns = "{turns}"
[defaults]
floor = "{floor}"
turns = "{turns}"
[host]
memory = "256GiB"
[turns]
quantum_ms = {quantum_ms}
[link]
to_device = {link_bytes}
to_host = {link_bytes}
"""


def run_together(options, folder, pair, alone, turns, words, stretch):
    place = folder / f"{turns}-{len(words)}-{stretch}"
    place.mkdir()
    capacity_bytes = int(alone.peak_bytes / pair.share) >> 21 << 21
    more = SETTINGS.format(turns=turns, floor=options.floor, quantum_ms=int(QUANTUM_S * 1000 * stretch), link_bytes=int(options.link_gb * 1e9 / stretch))
    config = node_agent.configuration(options.profile, capacity_bytes, more).replace("find = false", "find = true")
    agent = node_agent.NodeAgent(options.build, place, config)
    machine = node_agent.Machine(options.build, place, options.profile, capacity_bytes, slots=2)
    # The simulated NVML says how idle the device is.
    agent.start(SPILLWAY_SIM_NODE=str(place / "node"), SPILLWAY_SIM_PROFILE=options.profile, SPILLWAY_SIM_CAPACITY=str(capacity_bytes),
                LD_LIBRARY_PATH=str(options.build / "simulator"))
    jobs = [tenants.Tenant(name, 1, alone) for name in ("first", "second")]
    for slot, job in enumerate(jobs, 1):
        job.process = machine.begin(job.name, slot, words, f"--agent={agent.socket}")
    tenants.await_end(jobs, tenants.Watcher(agent, machine, jobs))
    if options.verbose:
        print(agent.log())
        for job in jobs:
            print(job.errors)
    return jobs, agent.log()


def stretch_of(options, folder, pair, alone, workload):
    """How much longer two together take by the real clock than by the simulated one."""
    if options.quick:
        return 1
    begun_ns = time.monotonic_ns()
    jobs, _ = run_together(options, folder, pair, alone, "always", f"{workload} --steps={CALIBRATING_STEPS}".split(), 2)
    return round((time.monotonic_ns() - begun_ns) / max(job.time_ns for job in jobs), 1)


def reason_in(log):
    """What the agent last says when it begins turns, or decides against them; "shares" if it says neither."""
    found = re.findall(r"jobs (take turns from now on|go on sharing its memory): (.*)", log)
    return ("turns: " if "turns" in found[-1][0] else "shares: ") + found[-1][1] if found else "shares"


def compare(options, folder, name, pair):
    folder = folder / name
    folder.mkdir()
    workload = pair.quick if options.quick else pair.workload
    words = f"{workload} --steps={options.steps or (40 if options.quick else pair.steps)}"
    alone = tenants.run_alone(options, folder, name, words)
    stretch = stretch_of(options, folder, pair, alone, workload)
    print(f"\n{name}, {pair.share:.0%} of the device each; alone: {alone.time_ns / 1e9:.2f} s (simulated, {options.profile}), "
          f"{alone.peak_bytes / 2**30:.2f} GiB at most; stretched by {stretch:.1f}\n")
    print("| setting | total s | of one after another | hand-overs | GiB out | GiB back | waited for turns s | output | beyond its budget | agent says |")
    print("|---" * 10 + "|")
    wrong, goals = False, []
    for turns in options.settings.split(","):
        jobs, log = run_together(options, folder, pair, alone, turns, words.split(), stretch)
        total_ns = max(job.time_ns for job in jobs)
        ratio = total_ns / (2 * alone.time_ns)
        same = all(job.output == alone.output for job in jobs)
        beyond = sum(len(job.beyond) for job in jobs)
        wrong = wrong or not same or beyond > 0
        moved = [sum(job.report.get(key, 0) for job in jobs) / 2**30 for key in ("offloaded_bytes", "restored_bytes")]
        waited = sum(job.report.get("turns", {}).get("waited_ns", 0) for job in jobs) / 1e9
        reason = reason_in(log)
        print(f"| {turns} | {total_ns / 1e9:.2f} | {ratio:.3f} | {log.count('has its turn')} | {moved[0]:.1f} | {moved[1]:.1f} | {waited:.1f} "
              f"| {'same' if same else 'DIFFERS'} | {beyond} of {sum(len(job.budgeted) for job in jobs)} looks | {reason} |",
              flush=True)
        if turns == "auto":
            goals.append((f"the agent chooses {pair.should} by itself", reason.startswith(pair.should)))
        if turns == "auto" and pair.should == "turns":
            goals.append((f"at most {MOST_SLOWER} times one after another", ratio <= MOST_SLOWER))
        for job in jobs:
            if job.output != alone.output:
                print(f"{job.name}: {job.output[-3:]} {job.errors}", file=sys.stderr)
    print("\n" + "; ".join(f"{goal}: {'met' if is_met else 'missed'}" for goal, is_met in goals))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[3] / "build")
    parser.add_argument("--profile", default="h200")
    parser.add_argument("--only", choices=PAIRS)
    parser.add_argument("--settings", default="auto,always,never", help="of `turns`, each run once")
    parser.add_argument("--quick", action="store_true", help="small: shows that all of it works; its figures say nothing")
    parser.add_argument("--steps", type=int, help="of each training")
    parser.add_argument("--floor", help="what a waiting job keeps; 16MiB if quick, else 64MiB")
    parser.add_argument("--link-gb", type=float, default=54, help="the link's rate in GB/s")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.floor = options.floor or ("16MiB" if options.quick else "64MiB")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="turns."))
    try:
        wrong = [compare(options, folder, name, pair) for name, pair in PAIRS.items() if options.only in (None, name)]
    finally:
        shutil.rmtree(folder)
    print("\nAll figures are simulated.")
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
