"""Runs one PyTorch program bare or under Spillway, and reads what its processes left: reports and the simulator's statistics."""
import collections
import dataclasses
import json
import os
import re
import subprocess
import tempfile
import time
import pathlib

from pytorch_parts import trials

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEP = re.compile(r"^step \d+ took ([\d.]+) ms$", re.M)
TRIES = 3
RACE_AT_EXIT = "terminate called without an active exception"


class RunFailed(Exception):
    pass


def late_step_ms(errors):
    """Of the last half of the steps, the middle one's time; None where the program does not say."""
    times = [float(text) for text in STEP.findall(errors)]
    later = sorted(times[len(times) // 2:])
    return later[len(later) // 2] if later else None


def simulated_settings(environment, allocator, devices):
    """The variables of a program on the simulated GPU."""
    conf = trials.ALLOCATORS[allocator]
    return {"SPILLWAY_SIM_COMPUTE": "tags", "SPILLWAY_SIM_RULES": str(ROOT / "simulator" / "rules" / "pytorch.rules"),
            "SPILLWAY_SIM_DEVICES": str(devices), "LD_LIBRARY_PATH": str(environment.stand_ins), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTORCH_ALLOC_CONF": conf, "PYTORCH_CUDA_ALLOC_CONF": conf, "OMP_NUM_THREADS": "1"}


@dataclasses.dataclass
class Run:
    label: str
    output: str = ""
    errors: str = ""
    budget_bytes: int = 0  # 0: none
    wall_seconds: float = 0.0
    reports: list = dataclasses.field(default_factory=list)  # Spillway's, of each process that used the device
    statistics: list = dataclasses.field(default_factory=list)  # the simulator's, likewise

    def peak_bytes(self):
        """The most that any one process wanted at once."""
        return max((report["wanted_peak_bytes"] for report in self.reports), default=0)

    def held_bytes(self):
        """The most that any one process held, by the simulated device."""
        return max((each["device_bytes_peak"] for each in self.statistics), default=0)

    def moved(self, key):
        return sum(report[key] for report in self.reports)

    def step_ms(self):
        return late_step_ms(self.errors)

    def steps(self):
        return len(STEP.findall(self.errors))

    def gib_a_step(self, key):
        """Moved by all processes, on average over all steps; None where the program does not count them."""
        return self.moved(key) / self.steps() / 2**30 if self.steps() else None

    def learning(self):
        """Of the process that followed a plan for most iterations."""
        return max((report["learning"] for report in self.reports), key=lambda each: each["iterations_followed"], default=None)

    def simulated_ms(self):
        return max((each["simulated_ns"] for each in self.statistics), default=0) / 1e6

    def counted(self, key):
        return sum((collections.Counter(each.get(key, {})) for each in self.statistics), collections.Counter())


def read_all(folder, pattern):
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(pattern))]


def is_race_at_exit(code, errors):
    """Python's own: a thread of autograd that wants the interpreter's lock while Python ends is ended within code that must not throw.

    In the process itself, or in one that torchrun started.
    """
    lines = errors.rstrip().splitlines()
    return (code == -6 and lines[-1:] == [RACE_AT_EXIT]) or (code == 1 and RACE_AT_EXIT in lines and "ChildFailedError" in errors)


class Runner:
    """Of one program with one allocator. `settings` go into its environment. What `may_differ` matches in its output is left out."""

    def __init__(self, build_dir, profile, command, settings, may_differ=None):
        self._spillway = [str(build_dir / "bin" / "spillway"), "run", f"--simulate={profile}", "--quiet"]
        # The launcher clears a caller's settings; plans come at the same step in every run.
        self._command = ["env", "SPILLWAY_LEARN=wait", *command]
        self._settings = settings
        self._may_differ = re.compile(may_differ) if may_differ else None

    def run(self, label, budget_bytes=None, bare=None, options=(), **settings):
        """`budget_bytes`: None runs bare, 0 without a budget. `options` are the launcher's, `settings` join the environment.

        A program that met the race at Python's end runs again, as its statistics are lost; but only if it had printed all that `bare` did.
        """
        for _ in range(TRIES):
            run, code = self._once(label, budget_bytes, options, settings)
            if code == 0:
                return run
            if not is_race_at_exit(code, run.errors) or (bare and run.output != bare.output):
                break
        raise RunFailed(f"{label}: exit code {code}\n{run.output[-1000:]}{run.errors[-3000:]}")

    def _once(self, label, budget_bytes, options, settings):
        with tempfile.TemporaryDirectory(prefix="spillway-pytorch-") as name:
            folder = pathlib.Path(name)
            if budget_bytes is None:
                options = [*options, "--off"]
            else:
                options = [*options, "--report", str(folder / "report.json"), *(["--budget", str(budget_bytes)] if budget_bytes else [])]
            environment = dict(os.environ, XDG_STATE_HOME=str(folder / "state"), SPILLWAY_SIM_STATS=str(folder / "statistics.%p"),
                               **self._settings, **settings)
            begin = time.monotonic()
            done = subprocess.run([*self._spillway, *options, "--", *self._command], env=environment, capture_output=True, text=True,
                                  check=False)
            output = self._may_differ.sub("...", done.stdout) if self._may_differ else done.stdout
            return Run(label, output, done.stderr, budget_bytes or 0, time.monotonic() - begin, read_all(folder, "report.json*"),
                       read_all(folder, "statistics.*")), done.returncode


def faults(run, bare):
    """The rules that `run` broke; empty if it passed."""
    found = []
    if run.output != bare.output:
        found.append("printed something else than the bare run")
    broken = [text for each in run.statistics for text in each["violations"]]
    if broken or any(each["illegal_accesses"] or each["unmapped_while_in_use"] for each in run.statistics):
        found.append(f"broke the driver's rules: {broken[:3]}")
    if not run.statistics:
        found.append("no process used the device")
    if run.budget_bytes and run.held_bytes() > run.budget_bytes:
        found.append(f"held {run.held_bytes()} bytes, more than its budget of {run.budget_bytes}")
    if run.budget_bytes and run.budget_bytes < run.peak_bytes() and run.moved("offloaded_bytes") + run.moved("dropped_bytes") == 0:
        found.append("moved nothing, though the budget was below its peak")
    return found
