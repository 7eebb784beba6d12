#!/usr/bin/env python3
"""Runs random CUDA programs bare and under Spillway at several budgets, and compares what they computed.

  run_differential.py --build BUILD                      1,000 seeds, spread over the budgets
  run_differential.py --build BUILD --iterations 10      programs that repeat themselves, so that plans are followed
  run_differential.py --build BUILD --mutants            each rule of ordering_rules.h, left out, must be noticed
  run_differential.py --build BUILD --schedules 1..1000  programs of three threads, of which a number says which goes on
  run_differential.py --build BUILD --self-check         the fuzzer itself: steady, and able to notice
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import shlex
import sys
import tempfile
import threading
import time

from seed_runs import BATCH_SEEDS, TOO_LONG, Bench, Verdict, batches
from shrink import shrink

MIB = 1 << 20
ORDERING_RULES = pathlib.Path(__file__).resolve().parents[2] / "interposer" / "execute" / "state" / "ordering_rules.h"
BUDGETS_MIB = [64, 96, 128, None]  # None: the whole device
MUTANT_BUDGET_MIB = 64
NARROW_BUDGET_MIB = 32  # as much as the widest operations name; some of it cannot move
SCHEDULED_BUDGET_MIB = 96
HOLDING_BUDGET_MIB = 64
ARENA_BUDGET_MIB = 12  # less than many allocations
NAP_BUDGET_MIB = 4  # the least
ASSUMED_SAFE_FEATURES = "graphs,guests,pointers,tensor_maps,textures"
STRATEGIES = ("spillway", "capuchin", "spillway", "autoswap")
SCHEDULED_SEEDS = 5  # of each schedule
SCHEDULED_WAYS = [  # what takes turns, schedule by schedule: options of programs, settings
    (["--features", "graphs,pointers,structures,tensor_maps,textures"], {}),
    (["--features", "graphs,pointers,tensor_maps,textures"], {"SPILLWAY_PARK": "off"}),
    (["--features", "", "--iterations", "12"], {"SPILLWAY_PARK": "off", "SPILLWAY_LEARN": "wait"}),
    (["--features", "graphs,structures,pointers"], {"SPILLWAY_PARK": "host"}),
]
PLANNED_SEEDS = [seed for seed in range(1, 301) if (seed - 1) % BATCH_SEEDS < 5]  # some of each way to plan
LONG_SEEDS = 3  # of a batch, where a seed takes seconds
MUTANT_BATCH_SEEDS = 5  # most rules are missed at once
MUTANT_QUIET_S = 8  # a broken build may hang in many seeds


def budget_text(budget_bytes):
    return "the whole device" if budget_bytes is None else f"{budget_bytes // MIB} MiB"


def parse_seeds(text):
    first, _, last = text.partition("..")
    return range(int(first), int(last or first) + 1)


def compare_batch(bench, library, seeds, budget_bytes, settings=None, bare=None):
    """What differs between the bare run and the run under `library`: per seed, and in the statistics of the whole batch."""
    bare = bare or bench.run(seeds)
    below = bench.run(seeds, library=library, budget_bytes=budget_bytes, settings=settings)
    differing = {seed: (bare.lines[seed], below.lines[seed]) for seed in seeds if bare.lines[seed] != below.lines[seed]}
    complaints = bare.complaints(None, "bare") + below.complaints(budget_bytes, budget_text(budget_bytes))
    return Verdict(seeds, budget_bytes, differing, complaints, below.reports, below.moved_bytes())


def compare_planned_batch(bench, library, seeds, budget_bytes):
    """The same for programs that repeat themselves; also what plans did ahead of need."""
    with tempfile.TemporaryDirectory(prefix="spillway-fuzz-") as folder:
        report = pathlib.Path(folder) / "report.json"
        verdict = compare_batch(bench, library, seeds, budget_bytes, {"SPILLWAY_REPORT": str(report)})
        figures = json.loads(report.read_text()) if report.exists() else {}
        verdict.prefetches, verdict.held_inputs = figures.get("prefetches", 0), figures.get("held_inputs", 0)
        verdict.checked_recomputes, verdict.arenas = figures.get("checked_recomputes", 0), figures.get("arenas", 0)
        return verdict


def report_difference(bench, library, seed, verdict):
    bare, below = verdict.differing[seed]
    how = TOO_LONG if verdict.took_too_long(seed) else "differs"
    print(f"seed {seed} {how} with a budget of {budget_text(verdict.budget_bytes)}")
    print(f"  bare:   {bare}\n  budget: {below}")
    before = [s for s in verdict.seeds if s <= seed]
    shortest = shrink(bench, before, library, verdict.budget_bytes)
    if shortest is None:
        print(f"  not again: {bench.command_text(before, library, verdict.budget_bytes)}")
        return
    seeds, kept = shortest
    print(f"  again: {bench.command_text(seeds, library, verdict.budget_bytes, kept)}")
    print(bench.program_text(seed, kept))


def run_all(jobs, tasks):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda task: task(), tasks)


def library_of(bench, arguments):
    return bench.build / "lib" / (f"libspillway_{arguments.sanitizer}.so" if arguments.sanitizer else "libspillway.so")


def breakable_library_of(bench, arguments):
    """A library that leaves out rules and hands its turn over at schedule points, as the sanitized ones do, too."""
    return bench.build / "lib" / f"libspillway_{arguments.sanitizer or 'breakable'}.so"


def compare_all(arguments, library, tasks, compare=compare_batch):
    """Compares each task (a bench, seeds, a budget) and prints what differs; the verdicts, and whether nothing does."""
    if not library.exists():  # a missing one is preloaded without a word
        raise SystemExit(f"run_differential.py: there is no {library}; build it")
    start_s = time.monotonic()
    turns = [lambda task=task: compare(task[0], library, task[1], task[2]) for task in tasks]
    verdicts = list(run_all(arguments.jobs, turns))
    for verdict in verdicts:
        for complaint in verdict.complaints:
            print(f"seeds {verdict.seeds[0]}..{verdict.seeds[-1]}: {complaint}")
    differing = [(seed, verdict, task[0]) for verdict, task in zip(verdicts, tasks) for seed in verdict.differing]
    for seed, verdict, its_bench in differing[:arguments.show]:
        report_difference(its_bench, library, seed, verdict)
    summarise(verdicts, time.monotonic() - start_s)
    return verdicts, not differing and not any(verdict.complaints for verdict in verdicts)


def check_library(bench, arguments):
    """The main check; True when every seed computed the same under every budget and the statistics are clean."""
    budgets = [budget_bytes(b) for b in (arguments.budgets or BUDGETS_MIB)]
    benches = ways_of_parking(bench, arguments)
    parts = batches(arguments.seeds or range(1, 1001))
    tasks = [(benches[i % len(benches)], part, budgets[(i + i // 4) % len(budgets)]) for i, part in enumerate(parts)]
    if arguments.features is None and not arguments.budgets:
        tasks += [narrow_task(bench, part) for part in parts[::6]]
        tasks += [napping_task(bench, part) for part in parts[3::6]]
    _, same = compare_all(arguments, library_of(bench, arguments), tasks)
    return same


def check_plans(bench, arguments):
    """The main check with plans: learned by the calling threads, so that every run is the same."""
    plain = bench.options if arguments.features is not None else bench.options + ["--features", ""]  # objects do not repeat
    parts = batches(arguments.seeds or PLANNED_SEEDS)
    tasks = []
    if arguments.features is None:
        tasks += [holding_task(bench, part[:LONG_SEEDS]) for part in parts[::4]]
        tasks += [own_task(bench, part[:LONG_SEEDS]) for part in parts[1::6]]
        tasks += [arena_task(bench, part[:LONG_SEEDS]) for part in parts[2::6]]
    for i, part in enumerate(parts):
        budget = (64, 80, 96)[i % 3] * MIB
        settings = {"SPILLWAY_LEARN": "wait", "SPILLWAY_STRATEGY": STRATEGIES[i % len(STRATEGIES)]}
        if i % 2 == 0:
            settings["SPILLWAY_PARK"] = "off"
        if i % 4 >= 2 and budget > 64 * MIB:
            settings["SPILLWAY_BUDGET_SCHEDULE"] = changing_budget(budget)
        its_bench = Bench(bench.build, plain + ["--patterns", str(1 + i % 3)], settings)
        tasks.append((its_bench, part, budget))
    verdicts, same = compare_all(arguments, library_of(bench, arguments), tasks, compare_planned_batch)
    prefetches = sum(verdict.prefetches for verdict in verdicts)
    held_inputs = sum(verdict.held_inputs for verdict in verdicts)
    checked = sum(verdict.checked_recomputes for verdict in verdicts)
    arenas = sum(verdict.arenas for verdict in verdicts)
    print(f"{prefetches} allocations brought back by plans, {held_inputs} held beyond their free, {checked} launches of undocumented "
          f"kernels repeated and checked, {arenas} allocations larger than the budget")
    return same and prefetches > 0 and ((held_inputs > 0 and checked > 0 and arenas > 0) or arguments.features is not None)


def holding_task(bench, part):
    """Programs with something large that is made from something small, which they free at once; one thread, so that plans may drop."""
    options = bench.options + ["--features", "gradients", "--hosts", "1", "--contexts", "1", "--iterations", "12"]
    return Bench(bench.build, options, {"SPILLWAY_LEARN": "wait", "SPILLWAY_PARK": "off"}), part, HOLDING_BUDGET_MIB * MIB


def own_task(bench, part):
    """Chains of kernels without documents, in one thread; what experiments prove is dropped as soon as it is made."""
    options = bench.options + ["--features", "own", "--hosts", "1", "--contexts", "1", "--iterations", "8"]
    settings = {"SPILLWAY_LEARN": "wait", "SPILLWAY_PARK": "off", "SPILLWAY_RECOMPUTE": "eager", "SPILLWAY_EXPERIMENTS": "1"}
    return Bench(bench.build, options, settings), part, HOLDING_BUDGET_MIB * MIB


def arena_task(bench, part):
    """Programs whose allocations are often larger than the budget, and so move in parts."""
    options = bench.options + ["--features", "", "--contexts", "1", "--iterations", "6"]
    return Bench(bench.build, options, {"SPILLWAY_LEARN": "wait"}), part, ARENA_BUDGET_MIB * MIB


def check_schedules(bench, arguments):
    """True when programs compute the same and end, whichever of their threads goes on at each point of the library's."""
    tasks = []
    for schedule in arguments.schedules:
        options, settings = SCHEDULED_WAYS[schedule % len(SCHEDULED_WAYS)]
        its_bench = Bench(bench.build, bench.options + options + ["--hosts", "3", "--schedule", str(schedule)], settings)
        first = 1 + schedule * SCHEDULED_SEEDS % 1000
        tasks.append((its_bench, list(range(first, first + SCHEDULED_SEEDS)), SCHEDULED_BUDGET_MIB * MIB))
    _, same = compare_all(arguments, breakable_library_of(bench, arguments), tasks)
    print(f"{len(tasks)} schedules")
    return same


def changing_budget(budget_bytes):
    """Less and as much again, every 120 launches."""
    low_bytes = 64 * MIB
    return ",".join(f"{120 * i}:{low_bytes if i % 2 else budget_bytes}" for i in range(1, 200))


def narrow_budget():
    """So little that calls name more than there is, and half of the time enough, every seven launches."""
    return ",".join(f"{7 * i}:{(NARROW_BUDGET_MIB if i % 2 else MUTANT_BUDGET_MIB) * MIB}" for i in range(1, 1000))


def napping_budget(budget_bytes):
    """As if the program slept before every fifth launch: all that may leave does, and the budget is back before the launch."""
    return ",".join(f"{5 * i}:{NAP_BUDGET_MIB * MIB},{5 * i}:{budget_bytes}" for i in range(1, 1000))


def napping_task(bench, part):
    """Memory that the program maps piece next to piece leaves only in such naps."""
    settings = {"SPILLWAY_BUDGET_SCHEDULE": napping_budget(HOLDING_BUDGET_MIB * MIB), "SPILLWAY_PARK": "off" if part[0] % 2 else "auto"}
    options = bench.options + ["--features", "mappings", "--hosts", "1"]  # other threads would meet the nap's budget
    return Bench(bench.build, options, settings), part, HOLDING_BUDGET_MIB * MIB


def narrow_task(bench, part):
    """Without features: some hold more memory where it is than such a budget has."""
    settings = {"SPILLWAY_BUDGET_SCHEDULE": narrow_budget()}
    return Bench(bench.build, bench.options + ["--features", ""], settings), part, MUTANT_BUDGET_MIB * MIB


def ways_of_parking(bench, arguments):
    """Benches that take turns: parking as it comes, never (then kernels must not write pointers), always."""
    assumed_safe = bench.options if arguments.features is not None else bench.options + ["--features", ASSUMED_SAFE_FEATURES]
    ways = [bench, Bench(bench.build, assumed_safe, {"SPILLWAY_PARK": "off"}),
            Bench(bench.build, bench.options, {"SPILLWAY_PARK": "host"})]
    written = any(name in (arguments.features or "") for name in ("structures", "hidden", "strays"))
    return [way for way in ways if not (written and way.settings.get("SPILLWAY_PARK") == "off")]


def budget_bytes(budget_mib):
    return None if budget_mib is None else budget_mib * MIB


def summarise(verdicts, elapsed_s):
    per_budget = collections.Counter()
    moved = collections.Counter()
    for verdict in verdicts:
        per_budget[budget_text(verdict.budget_bytes)] += len(verdict.seeds)
        moved[budget_text(verdict.budget_bytes)] += verdict.moved_bytes
    for budget, count in per_budget.items():
        print(f"budget {budget}: {count} seeds, {moved[budget] // MIB} MiB over the simulated link")
    too_long = [verdict.took_too_long(seed) for verdict in verdicts for seed in verdict.differing]
    print(f"{sum(per_budget.values())} seeds, {too_long.count(False)} differ, {too_long.count(True)} took too long, {elapsed_s:.0f} s")


def ordering_rules(sanitizer):
    """The rules that the library can leave out and that `sanitizer` (or comparing results, if None) is to notice.

    Pairs of a name and the options of `differential` to look for it with; NAME=VALUE among them is set in the environment.
    The budget schedules `narrow` and `naps` are narrow_budget() and napping_budget(). `--first SEED` and `--first FIRST..LAST` are for seeds_in_order().
    """
    pattern = re.compile(r"^SPILLWAY_ORDERING_RULE\(\s*(\w+)\);(?: *// *([at]san|elsewhere)?(.*))?$", re.MULTILINE)
    rules = pattern.findall(ORDERING_RULES.read_text())
    return [(name, shlex.split(options)) for name, wanted, options in rules if (wanted or None) == sanitizer]


def check_mutants(bench, arguments):
    """True when the absence of every rule is noticed; prints by which seed first, with --count in how many."""
    library = breakable_library_of(bench, arguments)
    if not library.exists():
        print(f"{library} was not built: ninja {library.stem.removeprefix('lib')}")
        return False
    seeds = arguments.seeds or range(1, 101)
    rules = [rule for rule in ordering_rules(arguments.sanitizer) if arguments.rule in (None, rule[0])]
    all_caught = bool(rules)
    bare = BareRuns()
    tasks = [lambda rule=rule: noticing_seeds(bench, library, seeds, rule, bare, arguments.count) for rule in rules]
    for (name, _), caught in zip(rules, run_all(arguments.jobs, tasks)):
        how_many = f"noticed in {len(caught)} of {len(seeds)} seeds" if arguments.count else "noticed" if caught else "not noticed"
        print(f"without {name}: {how_many}" + (f", first {min(caught)}" if caught else ""))
        all_caught = all_caught and bool(caught)
    return all_caught


def settings_among(options):
    return dict(option.split("=", 1) for option in options if "=" in option)


class BareRuns:
    """What programs print bare: one run serves all rules that are looked for by the same programs."""

    def __init__(self):
        self.lock = threading.Lock()
        self.runs = {}

    def of(self, bench, seeds):
        key = (*bench.options, seeds[0], seeds[-1])
        with self.lock:
            if key not in self.runs:
                self.runs[key] = bench.run(seeds)
            return self.runs[key]


def seeds_in_order(seeds, options):
    """The parts of the seeds, first those of `--first`: they noticed the rule's absence before. And the other options."""
    parts = batches(seeds, MUTANT_BATCH_SEEDS)
    if "--first" not in options:
        return parts, options
    at = options.index("--first")
    return [list(parse_seeds(options[at + 1]))] + parts, options[:at] + options[at + 2:]


def noticing_seeds(bench, library, seeds, rule, bare, count):
    """The seeds that tell of the rule's absence: those of the first few that do, with `count` all."""
    name, options = rule
    parts, options = seeds_in_order(seeds, options)
    settings = settings_among(options)
    also = settings.get("SPILLWAY_BREAK_RULE")  # a rule that makes up for this one
    settings["SPILLWAY_BREAK_RULE"] = f"{name},{also}" if also else name
    schedules = {"narrow": narrow_budget(), "naps": napping_budget(MUTANT_BUDGET_MIB * MIB)}
    if settings.get("SPILLWAY_BUDGET_SCHEDULE") in schedules:
        settings["SPILLWAY_BUDGET_SCHEDULE"] = schedules[settings["SPILLWAY_BUDGET_SCHEDULE"]]
    bench = Bench(bench.build, bench.options + [option for option in options if "=" not in option])
    bench.quiet_s = MUTANT_QUIET_S
    caught = []
    for part in parts:
        if caught and not count:
            break
        caught += compare_batch(bench, library, part, MUTANT_BUDGET_MIB * MIB, settings, bare.of(bench, part)).noticed()
    return caught


def check_fuzzer(bench, arguments):
    """True when digests are steady for correct programs and change for broken ones."""
    seeds = arguments.seeds or range(1, 101)
    plain = bench.run(seeds)
    complaints = plain.complaints(None, "bare")
    complaints += [f"{count} seeds differ {why}" for why, count in (
        ("when run again", plain.differences(bench.run(seeds))),
        ("when kernels last differently", plain.differences(bench.run(seeds, options=["--timing", "7"]))),
    ) if count]
    for complaint in complaints:
        print(complaint)
    noticed = {
        "a program that forgets stream waits": first_differing(bench, plain, options=["--omit", "event_wait"]),
        "a program that forgets host waits": first_differing(bench, plain, options=["--omit", "event_sync"]),
    }
    for shim in sorted(bench.build.glob("tests-bin/libbroken_*.so")):
        noticed[f"a driver broken by {shim.stem}"] = first_differing(bench, plain, library=shim)
    for what, first in noticed.items():
        print(f"{what}: " + (f"noticed, first {first}" if first else f"not noticed in {len(seeds)} seeds"))
    return not complaints and all(noticed.values())


def first_differing(bench, plain, **how):
    """The first seed that differs from the plain runs when run that way; None: none of them."""
    for part in batches(plain.lines, MUTANT_BATCH_SEEDS):
        run = bench.run(part, **how)
        for seed in part:
            if run.lines[seed] != plain.lines[seed]:
                return seed
    return None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder")
    parser.add_argument("--seeds", type=parse_seeds, help="FIRST..LAST")
    parser.add_argument("--budgets", type=lambda text: [int(b) if b != "all" else None for b in text.split(",")],
                        help="in MiB, comma-separated; 'all' is the whole device")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", type=int, default=3, help="how many differing seeds to shorten and print")
    parser.add_argument("--count", action="store_true", help="with --mutants: all seeds, and how many of them notice")
    parser.add_argument("--rule", help="with --mutants: only this one")
    parser.add_argument("--sanitizer", choices=("asan", "tsan"), help="run libspillway_<sanitizer>.so instead")
    parser.add_argument("--features", help="what programs use, by commas (default: the seed decides)")
    parser.add_argument("--hosts", help="host threads of each program (default: the seed decides)")
    parser.add_argument("--contexts", help="contexts of each program (default: the seed decides)")
    parser.add_argument("--iterations", help="programs repeat themselves so many times, and plans are followed")
    parser.add_argument("--small", action="store_true", help="shorter programs with smaller buffers")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--mutants", action="store_true")
    mode.add_argument("--self-check", action="store_true")
    mode.add_argument("--schedules", type=parse_seeds, help="FIRST..LAST")
    return parser.parse_args()


def program_options(arguments):
    options = ["--small"] if arguments.small else []
    for name in ("features", "hosts", "contexts", "iterations"):
        if getattr(arguments, name) is not None:
            options += [f"--{name}", getattr(arguments, name)]
    return options


def main():
    arguments = parse_arguments()
    bench = Bench(arguments.build.resolve(), program_options(arguments))
    plain = check_schedules if arguments.schedules else check_plans if arguments.iterations else check_library
    check = check_mutants if arguments.mutants else check_fuzzer if arguments.self_check else plain
    return 0 if check(bench, arguments) else 1


if __name__ == "__main__":
    sys.exit(main())
