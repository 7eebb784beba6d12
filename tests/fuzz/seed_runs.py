"""Runs ranges of seeds of the `differential` program and keeps what each seed printed."""

import dataclasses
import pathlib
import re
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import simulated_gpu  # noqa: E402

BATCH_SEEDS = 25
QUIET_S = 20  # a seed takes a fraction of a second; one that takes this long never ends
TOO_LONG = "took too long"
FIRST_ALONE = {"early", "gradients"}  # features of which only the first program of a process has anything to show


@dataclasses.dataclass
class Verdict:
    seeds: list
    budget_bytes: int | None
    differing: dict  # seed: (bare line, line under the budget)
    complaints: list
    reports: list  # of a sanitizer: of the whole batch
    moved_bytes: int
    prefetches: int = 0  # allocations that plans brought back
    held_inputs: int = 0  # allocations that plans needed beyond their free
    checked_recomputes: int = 0  # launches of undocumented kernels that were repeated
    arenas: int = 0  # allocations larger than the budget

    def took_too_long(self, seed):
        return any(line.startswith(TOO_LONG) for line in self.differing[seed])

    def noticed(self):
        """The seeds that tell of a fault; a sanitizer's report counts for the first of its batch."""
        return sorted(self.differing) or (self.seeds[:1] if self.reports else [])


@dataclasses.dataclass
class SeedRuns:
    """What the seeds printed, one line each, and the simulator's statistics of every process that it took."""

    lines: dict
    statistics: list
    reports: list  # of a sanitizer, in its own words

    def differences(self, other):
        return sum(line != other.lines[seed] for seed, line in self.lines.items())

    def moved_bytes(self):
        return sum(statistics.get("h2d_bytes", 0) + statistics.get("d2h_bytes", 0) for statistics in self.statistics)

    def complaints(self, budget_bytes, who):
        """What the simulated driver holds against these runs."""
        found = [f"{who}: {line}" for line in self.lines.values() if " digest " not in line]
        found += [f"{who}: {report}" for report in self.reports]
        if not self.statistics:
            found.append(f"{who}: no process lived to write the simulator's statistics")
        for statistics in self.statistics:
            found += [f"{who}: {text}" for text in statistics["violations"]]
            found += [f"{who}: {name} is {statistics[name]}" for name in ("unmapped_while_in_use", "illegal_accesses")
                      if statistics[name] != 0]
            if budget_bytes is not None and statistics["device_bytes_peak"] > budget_bytes:
                found.append(f"{who}: held {statistics['device_bytes_peak']} device bytes, budget {budget_bytes}")
        return found


def batches(seeds, size=BATCH_SEEDS):
    """Parts of a range of seeds that are run by one process each: the same seeds always by the same program."""
    parts = {}
    for seed in seeds:
        parts.setdefault((seed - 1) // size, []).append(seed)
    return list(parts.values())


class Bench:
    """The built products under test."""

    def __init__(self, build, options, settings=None):
        self.build = build
        self.options = options
        self.settings = settings or {}  # environment variables of runs under a library
        self.quiet_s = QUIET_S

    def program(self, seed):
        """Every fourth batch of seeds runs as a program with per-thread default streams."""
        per_thread = (seed - 1) // BATCH_SEEDS % 4 == 3
        return self.build / "tests-bin" / ("differential_per_thread" if per_thread else "differential")

    def run(self, seeds, library=None, budget_bytes=None, options=(), settings=None):
        """Runs all `seeds`, a batch per process; a seed that ends its process is followed by a new one for the rest."""
        env = self.environment(library, budget_bytes) | (settings or {})
        result = SeedRuns({}, [], [])
        for batch in batches(seeds, self.process_seeds()):
            self.run_batch(batch, env, options, result)
        return result

    def process_seeds(self):
        """How many seeds one process runs at most."""
        at = self.options.index("--features") + 1 if "--features" in self.options else None
        return 1 if at and FIRST_ALONE.intersection(self.options[at].split(",")) else BATCH_SEEDS

    def environment(self, library=None, budget_bytes=None):
        return simulated_gpu.environment(self.build, library, budget_bytes) | (self.settings if library else {})

    def run_batch(self, batch, env, options, result):
        remaining = list(batch)
        while remaining:
            command = self.command(remaining[0], remaining[-1], options)
            run = simulated_gpu.run(command, env, self.quiet_s)
            result.reports += re.findall(r"^SUMMARY: \w+Sanitizer: .*$", run.errors, re.MULTILINE)
            if run.statistics:
                result.statistics.append(run.statistics)
            found = self.parse(run.output)
            result.lines.update(found)
            remaining = [seed for seed in remaining if seed not in found]
            if remaining and run.exit_code != 1:
                result.lines[remaining.pop(0)] = self.ending(run)
            elif remaining and not found:
                raise RuntimeError(f"{command[0]} did not start: {run.errors.strip()}")

    @staticmethod
    def parse(output):
        return {int(match[1]): match[0] for match in re.finditer(r"^seed (\d+) .*$", output, re.MULTILINE)}

    @staticmethod
    def ending(run):
        how = TOO_LONG if run.exit_code is None else f"ended with {run.exit_code}"
        return f"{how}: {run.errors.strip()[-500:]}"

    def command(self, first, last, options=()):
        return [self.program(first), "--seeds", f"{first}..{last}", *self.options, *options]

    def line(self, seeds, library=None, budget_bytes=None, kept=None):
        """What the last of `seeds` prints when they run in one process; of its operations only those in `kept`."""
        env = self.environment(library, budget_bytes)
        run = simulated_gpu.run(self.command(seeds[0], seeds[-1], self.keep_options(kept)), env, QUIET_S)
        found = self.parse(run.output)
        return found.get(seeds[-1], self.ending(run))

    @staticmethod
    def keep_options(kept):
        return [] if kept is None else ["--keep", ",".join(str(number) for number in kept)]

    def program_text(self, seed, kept=None):
        env = simulated_gpu.environment(self.build)
        command = self.command(seed, seed, ["--print-program", *self.keep_options(kept)])
        return simulated_gpu.run(command, env, QUIET_S).output

    def command_text(self, seeds, library, budget_bytes, kept=None):
        env = self.environment(library, budget_bytes)
        names = ["LD_LIBRARY_PATH", "LD_PRELOAD", *sorted(name for name in env if name.startswith("SPILLWAY_"))]
        settings = [f"{name}={shlex.quote(env[name])}" for name in names if name in env]
        command = self.command(seeds[0], seeds[-1], self.keep_options(kept))
        return " ".join(settings + [shlex.quote(str(part)) for part in command])
