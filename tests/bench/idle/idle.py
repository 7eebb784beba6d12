#!/usr/bin/env python3
"""How fast an idle job of 20 GiB gives a simulated GPU to another job, and gets it back, for ordinary
memory and for a pool of mappings next to each other. One command, one table. All times are the
simulator's (virtual clock), from its timeline of each process.

A model (tests/workloads/sleeper.cu) answers and sleeps, until host memory for all of it is ready. Then
a second one, with a pool of the same size, begins on the device, which holds one of them, under a real
node agent; it answers and sleeps likewise. Then the first one wakes. Leaving is the time from the first one's first copy to the host to its last. Returning is
the time from its first copy to the device to its last. The floor is what it keeps while it sleeps, by
the simulator; `unmovable`, by the agent, what cannot leave. Both must print their output from a run
alone, and never hold more than the agent has budgeted them. Otherwise the exit code is 1. The goals
(0.6 s each, 90 % of the link's rate) are printed as met or missed. While the first one returns, the
second one leaves: the link is busy both ways.

The agent's slabs are real memory. Where the machine has too little free for both jobs', they are
smaller than 20 GiB, and so is the goal's time.

    idle.py                    20 GiB, or less, in pieces of 20 MiB on an H200
    idle.py --quick            small: shows that all of it works
"""
import argparse
import pathlib
import shutil
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "support"))
sys.path.insert(0, str(HERE.parents[1] / "tenants"))

import node_agent  # noqa: E402  (path set above)
import tenants  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
MOST_S, FOR_BYTES, LEAST_SHARE = 0.6, 20 * GIB, 0.9
SLAB_BYTES = 64 * MIB  # the agent's default
OF_FREE_MEMORY = 0.6  # for both jobs' slabs
PATIENCE_S = 300
SETTINGS = """[defaults]
floor = "{floor}"
[host]
memory = "256GiB"
"""


def free_bytes():
    """Of this machine's memory."""
    fields = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


class Model:
    """A sleeper on the machine, with its own timeline."""

    def __init__(self, machine, options, name, slot, memory):
        self.machine, self.name, self.folder = machine, name, machine.folder
        self.workload = ["sleeper", f"--memory={memory}", f"--pieces={options.pieces}", f"--piece-mib={options.piece_mib}"]
        self.timeline = self.folder / f"{name}.timeline"
        self.slot = slot

    def begin(self, agent):
        workload = [*self.workload, f"--until={self.folder}/{self.name}"]
        self.process = self.machine.begin(self.name, self.slot, workload, f"--agent={agent.socket}", "--lend-pools", "--park=off", "--host=64GiB",
                                          more={"SPILLWAY_SIM_TIMELINE": str(self.timeline)})

    def wake(self, nap):
        (self.folder / f"{self.name}.{nap}").touch()

    def await_asleep(self, nap):
        await_that(lambda: f"asleep {nap}" in self.machine.errors(self.name) or self.process.poll() is not None, f"sleep of {self.name}")
        if self.process.poll() is not None:
            raise SystemExit(f"idle: {self.name} fails: {self.machine.errors(self.name)}")

    def copies(self, lane):
        """(start, end, bytes) of its copies in that direction, in the virtual time."""
        copies = []
        for line in self.timeline.read_text().splitlines():
            fields = line.split(",")
            if fields[0] == lane:
                copies.append((int(fields[3]), int(fields[4]), int(fields[5])))
        return copies


def await_that(is_so, what):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"idle: the {what} did not come")
        time.sleep(0.05)


def seconds_and_rate(copies):
    """From the first copy to the last; the bytes in between per second; of the seconds, those with a copy."""
    if not copies:
        return 0.0, 0.0, 0.0
    seconds = (max(copy[1] for copy in copies) - min(copy[0] for copy in copies)) / 1e9
    return seconds, sum(copy[2] for copy in copies) / seconds, sum(copy[1] - copy[0] for copy in copies) / 1e9


def measure(options, folder, memory, alone):
    place = folder / memory
    place.mkdir()
    size_bytes = options.pieces * options.piece_mib * MIB
    capacity_bytes = size_bytes + size_bytes // 8
    more = SETTINGS.format(floor=options.floor)
    agent = node_agent.NodeAgent(options.build, place, node_agent.configuration(options.profile, capacity_bytes, more))
    machine = node_agent.Machine(options.build, place, options.profile, capacity_bytes)
    agent.start()
    first, second = Model(machine, options, "first", 1, memory), Model(machine, options, "second", 2, "pool")
    first.begin(agent)
    first.await_asleep(1)
    await_ready(agent, first, size_bytes)
    jobs = [tenants.Tenant("first", 1, alone[memory], process=first.process)]
    second.begin(agent)
    jobs.append(tenants.Tenant("second", 1, alone["pool"], process=second.process))
    watcher = tenants.Watcher(agent, machine, jobs)
    second.await_asleep(1)
    await_ready(agent, second, size_bytes)
    asleep = agent.tenancies()[f"local-{first.process.pid}"]
    held = {one["pid"]: one["device_bytes_now"][0] for one in machine.statistics()["processes"] if "pid" in one}
    first.wake(1)
    first.await_asleep(2)
    first.wake(2)
    await_that(lambda: first.process.poll() is not None, "end of the first model")
    for nap in (1, 2):
        second.wake(nap)
    tenants.await_end(jobs, watcher)
    same = all(job.output == job.alone.output for job in jobs)
    for job in jobs:
        if job.output != job.alone.output:
            print(f"{job.name}: {job.output[-3:]} {job.errors}", file=sys.stderr)
    back = copies_of_weights(first, "h2d")
    # Later ones are of ranges that evict each other while the budget returns in parts.
    first_back = min((copy[0] for copy in back), default=float("inf"))
    out = [copy for copy in copies_of_weights(first, "d2h") if copy[0] < first_back]
    return {"leaves": seconds_and_rate(out), "returns": seconds_and_rate(back),
            "floor_bytes": held[first.process.pid], "unmovable_bytes": asleep["unmovable_bytes"], "same": same,
            "beyond": sum(len(job.beyond) for job in jobs), "looks": sum(len(job.budgeted) for job in jobs)}


def await_ready(agent, model, size_bytes):
    """Until host memory for its weights is pinned, as far as whole slabs hold it."""
    least_bytes = size_bytes - 2 * SLAB_BYTES
    await_that(lambda: agent.tenancies()[f"local-{model.process.pid}"]["host_bytes"] >= least_bytes or model.process.poll() is not None,
               f"host memory of {model.name}")


def copies_of_weights(model, lane):
    """Not those of tokens. Of its second sleep: none, because it ends before the other one wakes."""
    return [copy for copy in model.copies(lane) if copy[2] >= MIB]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[3] / "build")
    parser.add_argument("--profile", default="h200")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pieces", type=int, help="16 if quick, else 1024 or as many as there is memory for")
    parser.add_argument("--piece-mib", type=int, default=20)
    parser.add_argument("--floor", help="of each job; 16MiB if quick, else 64MiB")
    parser.add_argument("--link-gb", type=float, default=54, help="the link's rate to the host, in GB/s")
    parser.add_argument("--both-gb", type=float, default=45, help="its rate to the device while it is busy the other way, in GB/s")
    options = parser.parse_args()
    most = int(free_bytes() * OF_FREE_MEMORY) // (2 * options.piece_mib * MIB)
    options.floor = options.floor or ("16MiB" if options.quick else "64MiB")
    options.pieces = options.pieces or (16 if options.quick else min(1024, most))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="idle."))
    try:
        return compare(options, folder)
    finally:
        shutil.rmtree(folder)


def compare(options, folder):
    size = f"--pieces={options.pieces} --piece-mib={options.piece_mib}"
    alone = {memory: tenants.run_alone(options, folder, memory, f"sleeper --memory={memory} {size}") for memory in ("plain", "pool")}
    print(f"{options.pieces * options.piece_mib / 1024:.1f} GiB in {options.pieces} pieces, simulated, {options.profile}\n")
    print("| memory | leaves in s | of it copying | GB/s | returns in s | of it copying | GiB | GB/s | floor MiB | unmovable MiB | output | beyond its budget |")
    print("|---" * 12 + "|")
    wrong, missed = False, []
    most_s = MOST_S * options.pieces * options.piece_mib * MIB / FOR_BYTES
    for memory, name in (("plain", "ordinary"), ("pool", "a run of mappings")):
        found = measure(options, folder, memory, alone)
        wrong = wrong or not found["same"] or found["beyond"] > 0 or not found["leaves"][1] or not found["returns"][1]
        for what, link_gb in (("leaves", options.link_gb), ("returns", options.both_gb)):
            seconds, rate, _ = found[what]
            if seconds > most_s or rate < LEAST_SHARE * link_gb * 1e9:
                missed.append(f"{name} {what}")
        print(f"| {name} | {found['leaves'][0]:.3f} | {found['leaves'][2]:.3f} | {found['leaves'][1] / 1e9:.1f} | {found['returns'][0]:.3f} | {found['returns'][2]:.3f} | {found['returns'][0] * found['returns'][1] / GIB:.2f} | {found['returns'][1] / 1e9:.1f} "
              f"| {found['floor_bytes'] / MIB:.0f} | {found['unmovable_bytes'] / MIB:.0f} | {'same' if found['same'] else 'DIFFERS'} "
              f"| {found['beyond']} of {found['looks']} looks |")
    goal = "missed: " + ", ".join(missed) if missed else "met"
    print(f"\nGoal, {most_s:.3f} s and {LEAST_SHARE:.0%} of {options.link_gb:g} GB/s out and {options.both_gb:g} GB/s back: {goal}. All figures are simulated.")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
