"""One program's trial: built, run bare twice and under budgets, judged."""
import dataclasses
import math
import pathlib
import time

from . import lacks
from .building import NotBuilt
from .comparing import Baseline
from .running import CannotRun, Run, input_files, smallest_budget_bytes

SAME, DIFFERS, NOT_RUN = "same", "differs", "could not be run"
CANNOT_MOVE = "cannot move"  # a run that was refused memory which cannot move and exceeds the budget


@dataclasses.dataclass
class Row:
    """One run under Spillway, judged."""

    label: str
    budget_bytes: int | None = None
    skipped: str = ""  # why there is no such run
    differences: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)  # what differs on purpose
    offloaded_bytes: int = 0
    restored_bytes: int = 0
    held_bytes: int = 0
    slow_down: float | None = None  # of simulated time
    refused_bytes: int = 0  # of memory that cannot move, in a run that therefore did something else

    def cell(self):
        if self.skipped:
            return "-"
        return DIFFERS if self.differences else CANNOT_MOVE if self.refused_bytes else SAME


@dataclasses.dataclass
class Trial:
    name: str
    verdict: str = NOT_RUN
    reason: str = ""  # why it could not be run
    peak_bytes: int = 0
    simulated_ns: int = 0
    exit_code: int | None = None
    rows: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)  # what is not compared, and why
    lacks: list = dataclasses.field(default_factory=list)


def faults(run, bare):
    """Rules of the driver or of the budget that the run broke, and the bare run did not."""
    found = []
    if bare.statistics and not run.statistics:
        found.append("the simulator's statistics are missing, so the budget is not proved")
    for name in ("illegal_accesses", "unmapped_while_in_use"):
        if run.statistics.get(name, 0) > bare.statistics.get(name, 0):
            found.append(f"{name.replace('_', ' ')}: {run.statistics[name]}")
    if run.budget_bytes and run.held_of_one_device() > run.budget_bytes:
        found.append(f"a device held {run.held_of_one_device()} bytes, more than the budget of {run.budget_bytes}")
    return found


def judged(run, bare, baseline):
    row = Row(run.label, run.budget_bytes, differences=baseline.differences(run), notes=baseline.notes_on(run))
    refused_bytes = run.report.get("refused_unmovable_bytes", 0)
    if row.differences and run.budget_bytes and refused_bytes:
        row.refused_bytes, row.differences = refused_bytes, []
        row.notes.append(f"an allocation of {refused_bytes} bytes was refused: such memory cannot move, and exceeds the budget")
    row.differences += faults(run, bare)
    row.offloaded_bytes = run.report.get("offloaded_bytes", 0)
    row.restored_bytes = run.report.get("restored_bytes", 0)
    row.held_bytes = run.held_bytes()
    before, after = bare.statistics.get("simulated_ns", 0), run.statistics.get("simulated_ns", 0)
    row.slow_down = after / before if before and after else None
    return row


def wait_for_another_second(began):
    """A program that takes the time as its seed repeats itself within a second."""
    time.sleep(max(0, math.floor(began) + 1 - time.time()))


class Trials:
    """Tries programs, one after another or several at once; `say` shows progress."""

    def __init__(self, options, builder, runner, work, say):
        self.options, self.builder, self.runner, self.work, self.say = options, builder, runner, work, say

    def of(self, program, serial):
        trial = Trial(program.name)
        folder = self.work / f"{serial}"
        try:
            self.say(f"{program.name}: building")
            binary = self.builder.make(program, folder)
            if program.sources:
                trial.lacks += lacks.from_binary(program, binary, self.options.build / "simulator")
            self.run_all(trial, program, binary, folder)
        except NotBuilt as problem:
            trial.lacks, trial.reason = problem.lacks, "not built"
        except CannotRun as problem:
            trial.reason = str(problem)
        return trial

    def run_all(self, trial, program, binary, folder):
        inputs = self.inputs(program, folder)

        def run(label, budget_bytes=None):
            self.say(f"{program.name}: {label}")
            made = Run(label, budget_bytes)
            self.runner.execute(made, program, binary, self.options.arguments, folder / "run", inputs)
            return made

        began = time.time()
        bare = run("bare")
        trial.exit_code, trial.peak_bytes = bare.exit_code, bare.held_bytes()
        trial.simulated_ns = bare.statistics.get("simulated_ns", 0)
        trial.lacks += [lack for lack in lacks.from_run(program, bare) if lack.what not in {known.what for known in trial.lacks}]
        if bare.exit_code != self.options.exit_code:
            trial.reason = f"bare: {bare.ending()}: {bare.last_words()}"
            return
        if not bare.statistics:
            trial.reason = "bare: it made no call to the simulated GPU"
            return
        wait_for_another_second(began)
        baseline = Baseline(bare, run("bare again"), self.options.mask)
        trial.notes += baseline.notes()
        self.run_under_spillway(trial, bare, baseline, run)

    def run_under_spillway(self, trial, bare, baseline, run):
        free = run("no budget")
        trial.rows.append(judged(free, bare, baseline))
        wanted_bytes = free.report.get("wanted_peak_bytes", 0) or trial.peak_bytes
        smallest_bytes = smallest_budget_bytes()
        for share in self.options.shares:
            budget_bytes = wanted_bytes * share // 100
            if budget_bytes < smallest_bytes:
                trial.rows.append(Row(f"{share} %", budget_bytes, skipped="below the smallest budget"))
            else:
                trial.rows.append(judged(run(f"{share} %", budget_bytes), bare, baseline))
        trial.rows.append(judged(run("smallest", smallest_bytes), bare, baseline))
        trial.verdict = DIFFERS if any(row.differences for row in trial.rows) else SAME

    def inputs(self, program, folder):
        found = input_files(program, self.options.files)
        modules = folder / "modules"
        if modules.is_dir():
            found |= {path.name: pathlib.Path(path) for path in modules.iterdir()}
        return found
