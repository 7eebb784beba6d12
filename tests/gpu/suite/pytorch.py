"""docs/gpu, item 6: the programs of tests/pytorch, with the options that ./check pytorch gives them.

A real device runs them with deterministic algorithms (programs/deterministic.py), the simulated one as ./check pytorch does. So the
figures of both stand side by side: the time of a late step against the bare run's.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

from .session import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))

from pytorch_parts import environment, runs, trials  # noqa: E402  (path set above)

LIMIT_S = 150  # for all programs: what does not fit is left out, by name
RUN_LIMIT_S = 90
SCRIPTS = pathlib.Path(ROOT) / "tests" / "pytorch"
WRAPPER = pathlib.Path(ROOT) / "tests" / "gpu" / "programs" / "deterministic.py"
ALLOCATOR = "async"


def _load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


class Machine:
    """Which Python runs the programs, behind which words and with which variables."""

    def __init__(self, session):
        if session.simulated:
            made = environment.Environment(pathlib.Path(session.build) / "pytorch", SCRIPTS / "requirements.txt")
            self.python, self.words = str(made.python), []
            self.settings = runs.simulated_settings(made, ALLOCATOR, devices=1)
            self.missing = None if made.is_made() else "./try pytorch has not made its environment yet"
        else:
            self.python, self.words = sys.executable, [str(WRAPPER)]
            conf = trials.ALLOCATORS[ALLOCATOR]
            self.settings = {"PYTORCH_ALLOC_CONF": conf, "PYTORCH_CUDA_ALLOC_CONF": conf, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
            self.missing = None if self.has("torch") else "PyTorch is not installed"

    def has(self, module):
        found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        return subprocess.run([self.python, "-c", found], check=False).returncode == 0

    def command(self, trial):
        return [self.python, *self.words, str(SCRIPTS / trial.script), *trial.arguments]


class Program:
    """One trial: its bare run, and those under Spillway."""

    def __init__(self, session, machine, trial):
        self._session, self._machine, self._trial = session, machine, trial
        self._bare = None
        self.runs = []

    def run(self, end):
        """Leaves out the runs that would begin after `end`."""
        self._bare = self._call(["--off"])
        self._add("bare", self._bare, None)
        if self._bare.code != 0:
            return
        peak_bytes = self._below("no budget", [])
        for share in self._trial.shares[ALLOCATOR]:
            if peak_bytes and share != trials.AS_BARE and time.monotonic() < end:
                self._below(f"{share} %", ["--budget", str(peak_bytes * share // 100)])

    def _call(self, options):
        settings = {**self._machine.settings, "SPILLWAY_LEARN": "wait"}
        return self._session.call(self._session.spillway("--quiet", *options) + self._machine.command(self._trial), RUN_LIMIT_S, settings)

    def _below(self, label, options):
        """Returns what the program wanted at its peak; None if it failed."""
        path = self._session.path("pytorch-report.json")
        if os.path.exists(path):
            os.unlink(path)
        output = self._call(["--report", path, *options])
        self._add(label, output, _load(path))
        report = self.runs[-1]["report"]
        return report["wanted_peak_bytes"] if report and output.code == 0 else None

    def _add(self, label, output, report):
        run = {"budget": label, "seconds": round(output.seconds, 2), "late_step_ms": runs.late_step_ms(output.stderr), "report": report,
               "same_output": output.code == 0 and output.stdout == self._bare.stdout}
        if output.code != 0:
            run["why"] = output.why()
        self.runs.append(run)

    def faults(self):
        return [f"{self._trial.name}, {run['budget']}: {run.get('why', 'prints something else than bare')}"
                for run in self.runs if not run["same_output"]] + self._unsteady()

    def _unsteady(self):
        """A program that differs from itself bare says nothing of Spillway."""
        if all(run["same_output"] for run in self.runs) or self._bare.code != 0:
            return []
        again = self._call(["--off"])
        return [] if again.stdout == self._bare.stdout else [f"{self._trial.name}: two bare runs differ, too"]


def _trials(machine):
    """Those of one device that allocate each tensor; without torchvision none that needs it."""
    has_vision = machine.has("torchvision")
    every = {(trial.script, trial.arguments): trial for trial in [*trials.FIRST, *trials.ALL]}.values()
    return [trial for trial in every if trial.devices == 1 and not trial.small_device and ALLOCATOR in trial.shares
            and (has_vision or trial.script != "images.py")]


def step(session):
    """The programs of tests/pytorch bare and under budgets, each tensor allocated by itself: the same bits, and the time of a step."""
    machine = Machine(session)
    if machine.missing:
        return {"verdict": "skipped", "summary": machine.missing}
    end = time.monotonic() + LIMIT_S
    programs, faults, left_out = [], [], []
    for trial in _trials(machine):
        if time.monotonic() > end:
            left_out.append(trial.name)
            continue
        program = Program(session, machine, trial)
        program.run(end)
        faults += program.faults()
        programs.append({"name": trial.name, "runs": program.runs})
    words = f"{len(programs)} programs, {sum(len(each['runs']) for each in programs)} runs: " + ("; ".join(faults) or "the same")
    return {"verdict": "failed" if faults or not programs else "passed", "programs": programs, "left_out": left_out,
            "summary": words + (f"; no time for {', '.join(left_out)}" if left_out else "")}
