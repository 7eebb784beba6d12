#!/usr/bin/env python3
"""Four jobs under one node agent, on one simulated GPU with 40 % of the memory that they want
together. One command, one table.

Each job first runs alone and bare, on a device that fits it, for its time and output. Then all
four begin together on the small device under a real spillwayd. All times are the simulator's
(virtual clock). Every job must print its output from the run alone, must never hold more than the
agent has budgeted it (by the simulator's statistics), and must cause no violation. Otherwise the
exit code is 1. Further goals (issue 6) are printed as met or missed, with the figure.

    tenants.py                         equal weights, K40c            (up to half an hour on two cores)
    tenants.py --weights 2,1,1,1
    tenants.py --profile h200          a device whose link is slow beside its arithmetic
    tenants.py --quick                 small jobs: shows that all of it works
"""
import argparse
import dataclasses
import pathlib
import shutil
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "support"))

import node_agent  # noqa: E402  (path set above)

MIB = 1 << 20
# A job cannot run without the floor. Evicted memory is sparse here, so the host is no limit.
TERMS = '[defaults]\nfloor = "{floor}"\n[host]\nmemory = "64GiB"\n'
LARGEST = 1 << 40  # larger than every job
# Of about equal length alone: 10 s on a K40c. The digits take longer on a slow device, the others
# on a fast one.
JOBS = {
    "resnet50": "convnet --model=resnet50 --image=224 --batch=32 --images=32 --steps=27",
    "vgg16": "convnet --model=vgg16 --image=224 --batch=16 --images=16 --steps=19",
    "gpt": "gpt --layers=12 --width=1024 --heads=16 --sequence=512 --vocabulary=16384 --batch=4 --steps=14",
    "digits": "digits_cnn --epochs=110 --batch=1024 --blocks=8 --width=128",
}
QUICK_JOBS = {
    "resnet18": "convnet --model=resnet18 --image=64 --batch=16 --images=16 --steps=12",
    "vgg11": "convnet --model=vgg11 --image=64 --batch=4 --images=4 --steps=8",
    "gpt": "gpt --layers=2 --width=512 --steps=12",
    "digits": "digits_cnn --epochs=4",
}
MOST_SLOWER = 1.15  # all together, relative to one after another
MOST_UNEVEN = 0.10


@dataclasses.dataclass
class Alone:
    time_ns: int
    peak_bytes: int
    output: list


@dataclasses.dataclass
class Tenant:
    name: str
    weight: float
    alone: Alone
    process: object = None
    time_ns: int = 0
    peak_bytes: int = 0
    report: dict = dataclasses.field(default_factory=dict)
    output: list = dataclasses.field(default_factory=list)
    errors: str = ""
    budgeted: list = dataclasses.field(default_factory=list)  # bytes, at each reading
    beyond: list = dataclasses.field(default_factory=list)  # (held, budgeted) where more was held than budgeted

    @property
    def slow_down(self):
        return self.time_ns / self.alone.time_ns


def run_alone(options, folder, name, workload):
    place = folder / f"alone-{name}"
    place.mkdir()
    machine = node_agent.Machine(options.build, place, options.profile, LARGEST)
    code = machine.begin(name, 0, workload.split(), "--off").wait()
    if code != 0:
        raise SystemExit(f"tenants: {name} fails alone: {machine.errors(name)}")
    statistics = machine.process_statistics(name)
    return Alone(statistics["simulated_ns"], statistics["device_bytes_peak"], machine.output(name).splitlines())


class Watcher:
    """Compares, while jobs run, their held memory (by the simulator) with the agent's budgets."""

    def __init__(self, agent, machine, tenants):
        self.agent, self.machine, self.tenants = agent, machine, tenants
        self.looks = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        before = self.agent.tenancies()
        while not self.over.is_set():
            statistics = self.machine.statistics()
            after = self.agent.tenancies()
            if statistics is not None:
                self.look({one["pid"]: one for one in statistics["processes"] if "pid" in one}, before, after)
            before = after
            time.sleep(0.02)

    def look(self, processes, before, after):
        """A budget that was equal before and after the statistics were read applies to them;
        otherwise the larger one may."""
        self.looks += 1
        for tenant in self.tenants:
            job, pid = f"local-{tenant.process.pid}", tenant.process.pid
            if pid not in processes or job not in before or job not in after:
                continue  # it has just joined, or is leaving
            budgeted = max(known[job]["budgeted_bytes"] for known in (before, after))
            held = processes[pid]["device_bytes_now"][0]
            tenant.budgeted.append(budgeted)
            if held > budgeted:
                tenant.beyond.append((held, budgeted))

    def end(self):
        self.over.set()
        self.thread.join()


def give_weights(agent, tenants):
    """Sets the weight as an operator does, once the job exists."""
    for tenant in tenants:
        if tenant.weight == 1:
            continue
        while tenant.process.poll() is None:
            changed = agent.command("budget", "set", f"local-{tenant.process.pid}", "--weight", tenant.weight)
            if changed.returncode == 0:
                break


def await_end(tenants, watcher):
    """Fills in what the tenants printed, took and reported. Stops watcher and agent."""
    machine = watcher.machine
    for tenant in tenants:
        code = tenant.process.wait()
        tenant.output = machine.output(tenant.name).splitlines() if code == 0 else [f"ended with {code}"]
        tenant.errors = machine.errors(tenant.name)
    watcher.end()
    watcher.agent.stop()
    for tenant in tenants:
        statistics = machine.process_statistics(tenant.name)
        tenant.time_ns, tenant.peak_bytes = statistics["simulated_ns"], statistics["device_bytes_peak"]
        tenant.report = machine.report(tenant.name)


def run_together(options, folder, tenants, capacity_bytes):
    """Returns the number of readings, and the machine's statistics."""
    place = folder / "together"
    place.mkdir()
    terms = TERMS.format(floor="112MiB" if options.quick else "1GiB")
    agent = node_agent.NodeAgent(options.build, place, node_agent.configuration(options.profile, capacity_bytes, terms))
    machine = node_agent.Machine(options.build, place, options.profile, capacity_bytes, slots=len(tenants))
    agent.start()
    for slot, tenant in enumerate(tenants, 1):
        tenant.process = machine.begin(tenant.name, slot, options.jobs[tenant.name].split(), f"--agent={agent.socket}")
    watcher = Watcher(agent, machine, tenants)
    give_weights(agent, tenants)
    await_end(tenants, watcher)
    return watcher.looks, machine.statistics()


def profile_value(options, key):
    text = (options.build / "simulator/profiles" / f"{options.profile}.profile").read_text()
    return next(int(line.split("=")[1]) for line in text.splitlines() if line.split("=")[0].strip() == key)


def print_table(tenants):
    names = ("job", "weight", "wanted MiB", "held peak MiB", "budgeted MiB", "alone s", "together s", "slow-down", "out GiB", "back GiB",
             "dropped GiB", "stalled s", "planned at", "plans", "budget changes", "output", "beyond its budget")
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for tenant in tenants:
        budgeted = [value for value in tenant.budgeted if value > 0] or [0]
        report, learning = tenant.report, tenant.report.get("learning", {})
        out, back, dropped = (f"{report[key] / 2**30:.1f}" for key in ("offloaded_bytes", "restored_bytes", "recompute_dropped_bytes"))
        print("| " + " | ".join(map(str, (
            tenant.name, tenant.weight, report["wanted_peak_bytes"] // MIB, tenant.peak_bytes // MIB,
            f"{min(budgeted) // MIB} to {max(budgeted) // MIB}", f"{tenant.alone.time_ns / 1e9:.2f}", f"{tenant.time_ns / 1e9:.2f}",
            f"{tenant.slow_down:.2f}", out, back, dropped, stalls_of(report), learning.get("planned_at_iteration") or "never",
            learning.get("plans_adopted", 0), report["budget_changes"], "same" if tenant.output == tenant.alone.output else "DIFFERS",
            f"{len(tenant.beyond)} of {len(tenant.budgeted)} looks"))) + " |")


def stalls_of(report):
    """By cause, the longest first."""
    seconds = {cause.removesuffix("_ns"): ns / 1e9 for cause, ns in report["stalls"].items()}
    return ", ".join(f"{cause} {seconds[cause]:.1f}" for cause in sorted(seconds, key=seconds.get, reverse=True) if seconds[cause] >= 0.05)


def print_wishes(options, tenants):
    after_another_ns = sum(tenant.alone.time_ns for tenant in tenants)
    together_ns = max(tenant.time_ns for tenant in tenants)
    ratio = together_ns / after_another_ns
    print(f"\nTotal: {together_ns / 1e9:.2f} s, one after another {after_another_ns / 1e9:.2f} s: {ratio:.2f} times "
          f"({met(ratio <= MOST_SLOWER)}: at most {MOST_SLOWER}).")
    shared = [tenant.slow_down * tenant.weight for tenant in tenants]
    uneven = max(shared) / min(shared) - 1
    print(f"Slow-down times weight: from {min(shared):.2f} to {max(shared):.2f}, {100 * uneven:.0f} % apart "
          f"({met(uneven <= MOST_UNEVEN)}: at most {100 * MOST_UNEVEN:.0f} %).")
    for direction, counter in (("h2d", "restored_bytes"), ("d2h", "offloaded_bytes")):
        moved = sum(tenant.report[counter] for tenant in tenants)
        busy_s = moved / profile_value(options, f"{direction}_both_bytes_per_second")
        print(f"The link alone needs {busy_s:.2f} s for the {moved / 2**30:.0f} GiB moved {direction}.")


def met(holds):
    return "met" if holds else "MISSED"


def difference(tenant):
    pairs = list(zip(tenant.alone.output, tenant.output))
    differing = [number for number, (alone, together) in enumerate(pairs) if alone != together]
    first = f"first '{pairs[differing[0]][1]}' for '{pairs[differing[0]][0]}'" if differing else "it ends too early"
    return f"{len(differing)} of {len(tenant.alone.output)} lines, {first};"


def problems(tenants, capacity_bytes, statistics):
    for tenant in tenants:
        if tenant.output != tenant.alone.output:
            yield f"{tenant.name} printed something else than alone: {difference(tenant)} {tenant.errors[-300:]}"
        if tenant.beyond:
            yield f"{tenant.name} held more than it was budgeted: {tenant.beyond[:3]}"
        if not tenant.budgeted:
            yield f"{tenant.name} was never seen"
    if statistics["devices"][0]["bytes_peak"] > capacity_bytes:
        yield "the device held more than it has"
    if any(one["device_bytes_now"][0] for one in statistics["processes"]):
        yield "memory is left behind"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[3] / "build", metavar="FOLDER")
    parser.add_argument("--profile", default="k40c")
    parser.add_argument("--percent", type=int, default=40, help="of what they want together, on the device")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="where outputs and reports stay")
    parser.add_argument("--weights", type=lambda text: [int(part) for part in text.split(",")], default=[1] * len(JOBS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    options.build = options.build.resolve()
    options.jobs = QUICK_JOBS if options.quick else JOBS
    if len(options.weights) != len(options.jobs):
        parser.error(f"there are {len(options.jobs)} jobs")
    return options


def main():
    options = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="spillway-tenants-") as name:
        folder = pathlib.Path(name)
        tenants = [Tenant(name, weight, run_alone(options, folder, name, workload))
                   for (name, workload), weight in zip(options.jobs.items(), options.weights)]
        capacity_bytes = sum(tenant.alone.peak_bytes for tenant in tenants) * options.percent // 100 // (2 * MIB) * 2 * MIB
        print(f"### Four jobs on a simulated {options.profile} with {capacity_bytes // MIB} MiB, {options.percent} % of what "
              "they want together\n", flush=True)
        looks, statistics = run_together(options, folder, tenants, capacity_bytes)
        print_table(tenants)
        if all(tenant.output == tenant.alone.output for tenant in tenants):
            print_wishes(options, tenants)
        else:
            print("\nTimes say nothing: not all jobs did what they do alone.")
        print(f"Statistics and budgets were compared {looks} times.")
        found = list(problems(tenants, capacity_bytes, statistics))
        if options.keep:
            shutil.copytree(folder / "together", options.keep, ignore=shutil.ignore_patterns("*.sock", "node", "*.state"))
    for problem in found:
        print("tenants:", problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
