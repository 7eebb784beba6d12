#!/usr/bin/env python3
"""Two GPT-2 trainings that each need 95 % of one simulated GPU, under one node agent: with turns,
and with shares forced. One command, one table. All times are the simulator's (virtual clock).

Each training first runs alone and bare, for its time and output. Then both begin together on a
device of which each wants 95 %, once with `turns = "always"` and once with "never". Every training
must print its output from the run alone, and must never hold more than the agent has budgeted it.
Otherwise the exit code is 1. The goal of at most 1.15 times the sum of their times alone is printed
as met or missed. The agent's turns last by the real clock, so figures differ a little between runs.

    turns.py                   GPT-2 of 12 layers on an H200
    turns.py --quick           small: shows that all of it works; its figures say nothing, because
                               the trainings end before turns settle
"""
import argparse
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "support"))
sys.path.insert(0, str(HERE.parents[1] / "tenants"))

import node_agent  # noqa: E402  (path set above)
import tenants  # noqa: E402

GPT = "gpt --layers=12 --width=768 --heads=12 --sequence=512 --vocabulary=16384 --batch=8 --steps={steps}"
QUICK = "gpt --layers=2 --width=512 --batch=4 --steps={steps}"
MOST_SLOWER = 1.15
SHARE_OF_DEVICE = 0.95
SETTINGS = """turns = "{turns}"
[defaults]
floor = "{floor}"
turns = "{turns}"
[host]
memory = "256GiB"
[turns]
quantum_ms = {quantum_ms}
"""


def run_together(options, folder, alone, turns):
    place = folder / turns
    place.mkdir()
    capacity_bytes = int(alone.peak_bytes / SHARE_OF_DEVICE) >> 21 << 21
    more = SETTINGS.format(turns=turns, floor=options.floor, quantum_ms=options.quantum_ms)
    agent = node_agent.NodeAgent(options.build, place, node_agent.configuration(options.profile, capacity_bytes, more))
    machine = node_agent.Machine(options.build, place, options.profile, capacity_bytes, slots=2)
    agent.start()
    jobs = [tenants.Tenant(name, 1, alone) for name in ("first", "second")]
    for slot, job in enumerate(jobs, 1):
        job.process = machine.begin(job.name, slot, options.workload.split(), f"--agent={agent.socket}")
    tenants.await_end(jobs, tenants.Watcher(agent, machine, jobs))
    if options.verbose:
        print(agent.log())
        for job in jobs:
            print(job.errors)
    return jobs, agent.log().count("has its turn")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[3] / "build")
    parser.add_argument("--profile", default="h200")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--floor", help="what a waiting job keeps; 16MiB if quick, else 64MiB")
    parser.add_argument("--quantum-ms", type=int, default=2000)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.floor = options.floor or ("16MiB" if options.quick else "64MiB")
    options.workload = (QUICK if options.quick else GPT).format(steps=options.steps)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="turns."))
    try:
        return compare(options, folder)
    finally:
        shutil.rmtree(folder)


def compare(options, folder):
    alone = tenants.run_alone(options, folder, "gpt", options.workload)
    print(f"alone: {alone.time_ns / 1e9:.2f} s (simulated, {options.profile}), {alone.peak_bytes / 2**30:.2f} GiB at most\n")
    print("| together by | total s | of one after another | hand-overs | GiB out | GiB back | waited for turns s | output | beyond its budget |")
    print("|---" * 9 + "|")
    wrong = False
    for turns in ("always", "never"):
        jobs, turns_begun = run_together(options, folder, alone, turns)
        total_ns = max(job.time_ns for job in jobs)
        ratio = total_ns / (2 * alone.time_ns)
        same = all(job.output == alone.output for job in jobs)
        beyond = sum(len(job.beyond) for job in jobs)
        wrong = wrong or not same or beyond > 0
        moved = [sum(job.report.get(key, 0) for job in jobs) / 2**30 for key in ("offloaded_bytes", "restored_bytes")]
        waited = sum(job.report.get("turns", {}).get("waited_ns", 0) for job in jobs) / 1e9
        name = "turns" if turns == "always" else "shares"
        print(f"| {name} | {total_ns / 1e9:.2f} | {ratio:.3f} | {turns_begun} | {moved[0]:.1f} | {moved[1]:.1f} | {waited:.1f} "
              f"| {'same' if same else 'DIFFERS'} | {beyond} of {sum(len(job.budgeted) for job in jobs)} looks |")
        if turns == "always":
            goal = f"at most {MOST_SLOWER} times one after another: {'met' if ratio <= MOST_SLOWER else 'missed'}"
        for job in jobs:
            if job.output != alone.output:
                print(f"{job.name}: {job.output[-3:]} {job.errors}", file=sys.stderr)
    print(f"\nGoal of turns, {goal}. All figures are simulated.")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
