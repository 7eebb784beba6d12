"""One run of a trainer on the simulated GPU, and the folder that keeps the results of runs.

A run is a function of its files (library, simulator, trainer, device profile), its command and
its settings. Its result is kept under a hash of these. So an interrupted table continues where it
stopped, and after a change only the affected runs are repeated.
"""
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "support"))

import simulated_gpu  # noqa: E402  (path set above)

STEADY_STEPS = 6
STEADY = 0.02
HOST_BYTES = 128 << 30  # as on a GPU node; in `tags`, only memory that holds tags takes real memory
SIMULATOR_FILES = ("libcuda.so.1", "libcudart.so.13", "libcudnn.so.9", "libcublas.so.13",
                   "plugins/fingerprint.kernels.so")


def pairs_ms(times_ms):
    """The last steps in pairs: some trainers repeat only every two steps, because they alternate
    two buffers."""
    last = times_ms[-STEADY_STEPS:]
    return [sum(pair) / 2 for pair in zip(last[::2], last[1::2])]


@dataclasses.dataclass
class Result:
    times_ms: list  # of all steps except the first, on the virtual clock
    output: str  # losses and checksum
    report: dict
    statistics: dict
    why: str  # the error of a failed run
    cost_s: float  # of real time

    @property
    def ended_well(self):
        return not self.why

    @property
    def step_ns(self):
        """Steady time: the median of the last pairs, so that one full scan does not count as one
        every few steps."""
        return round(statistics.median(pairs_ms(self.times_ms)) * 1e6)

    @property
    def is_steady(self):
        """All of the last pairs except one, which may contain a full scan, take the same time."""
        alike = [pair for pair in pairs_ms(self.times_ms) if abs(pair * 1e6 / self.step_ns - 1) <= STEADY]
        return len(alike) >= STEADY_STEPS // 2 - 1

    @property
    def learning(self):
        return self.report.get("learning", {})

    @property
    def steps(self):
        return len(self.times_ms) + 1


@dataclasses.dataclass(frozen=True)
class Run:
    """The run's specification; bare without a budget. `settings` are pairs of a SPILLWAY_
    variable and its value."""
    command: tuple
    profile: str
    budget_bytes: int = 0
    settings: tuple = ()
    is_second: bool = False  # with the plans that an equal run has left


class Runner:
    """Runs trainers of one build folder, or returns kept results of equal runs."""

    def __init__(self, build, kept, limit_s):
        self.build, self.kept, self.limit_s = pathlib.Path(build).resolve(), pathlib.Path(kept), limit_s
        self.hashes = {}
        self.kept.mkdir(parents=True, exist_ok=True)

    def find(self, run):
        """The kept result, or None."""
        file = self._file(run)
        return Result(**json.loads(file.read_text())) if file.exists() else None

    def result_of(self, run):
        found = self.find(run)
        if found:
            return found
        with tempfile.TemporaryDirectory(prefix="movement-") as folder:
            if run.is_second:
                self._start(run, pathlib.Path(folder))
            result = self._start(run, pathlib.Path(folder))
        file = self._file(run)
        partial = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        partial.write_text(json.dumps(dataclasses.asdict(result)))
        partial.rename(file)
        return result

    def _start(self, run, folder):
        library = self.build / "lib" / "libspillway.so" if run.budget_bytes else None
        env = simulated_gpu.environment(self.build, library, run.budget_bytes or None, run.profile)
        report, statistics = folder / "report.json", folder / "statistics.json"
        env.update(SPILLWAY_SIM_COMPUTE="tags", SPILLWAY_SIM_STATS=str(statistics), SPILLWAY_REPORT=str(report),
                   SPILLWAY_HOST_LIMIT=str(HOST_BYTES))
        env.update({f"SPILLWAY_{name}": value for name, value in run.settings})
        if run.is_second:
            env["SPILLWAY_PLAN_STORE"] = str(folder)
        program, *arguments = run.command
        began_s = time.monotonic()
        try:
            ended = subprocess.run([self.build / "workloads" / program, *arguments, "--times"], env=env,
                                   capture_output=True, text=True, timeout=self.limit_s, check=False)
        except subprocess.TimeoutExpired:
            return Result([], "", {}, {}, f"not done after {self.limit_s} s", self.limit_s)
        cost_s = time.monotonic() - began_s
        told = [json.loads(file.read_text()) if file.exists() else {} for file in (report, statistics)]
        times_ms = [float(text) for text in re.findall(r"^step \d+ took (\S+) ms$", ended.stderr, re.M)]
        return Result(times_ms, ended.stdout, *told, why_it_failed(ended, times_ms), cost_s)

    def _file(self, run):
        files = [self.build / "simulator" / name for name in SIMULATOR_FILES]
        files += [self.build / "simulator" / "profiles" / f"{run.profile}.profile"]
        files += [self.build / "workloads" / (run.command[0] + ending) for ending in ("", ".kernels.so", ".uses")]
        if run.budget_bytes:
            files += [self.build / "lib" / "libspillway.so"]
        told = json.dumps([[self._hash(file) for file in files], dataclasses.astuple(run), HOST_BYTES])
        return self.kept / (hashlib.sha256(told.encode()).hexdigest()[:32] + ".json")

    def _hash(self, file):
        state = file.stat()
        key = (file, state.st_mtime_ns, state.st_size)  # the file may be rebuilt meanwhile
        if key not in self.hashes:
            self.hashes[key] = hashlib.sha256(file.read_bytes()).hexdigest()
        return self.hashes[key]


def why_it_failed(ended, times_ms):
    if ended.returncode == 0 and len(times_ms) >= STEADY_STEPS:
        return ""
    lines = [line for line in ended.stderr.splitlines() if not line.startswith("step ")]
    return lines[-1] if lines else f"ended with {ended.returncode}"
