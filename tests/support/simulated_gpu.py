"""Runs programs on the simulated GPU, with or without a preload library, and reads the
simulator's statistics afterwards."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time


SANITIZER_OPTIONS = {
    # Uninstrumented code is ignored: the simulated device's kernels race in the memory of programs
    # as a real device's do.
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
    # Objects that live until the process ends are no leak.
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99",
}


@dataclasses.dataclass
class Run:
    exit_code: int | None  # negative: ended by that signal; None: timed out and was killed
    output: str
    errors: str
    statistics: dict  # the simulated driver's counters; empty when the program was killed


def environment(build, library=None, budget_bytes=None, profile="h200"):
    """The environment that makes a program use the simulated driver, under `library` if there is
    one."""
    simulator = pathlib.Path(build) / "simulator"
    result = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
    result["LD_LIBRARY_PATH"] = str(simulator)
    result["SPILLWAY_SIM_PROFILE"] = profile
    if library is not None:
        result["LD_PRELOAD"] = f"{sanitizer_runtime(library)} {library}".strip()
        result.update(SANITIZER_OPTIONS)
        result["SPILLWAY_DRIVER"] = str(simulator / "libcuda.so.1")
    if budget_bytes is not None:
        result["SPILLWAY_BUDGET"] = str(budget_bytes)
    return result


def sanitizer_runtime(library):
    """The runtime that a sanitized library needs preloaded first, or nothing."""
    match = re.search(r"_([at]san)\.so$", str(library))
    if match is None:
        return ""
    name = f"-print-file-name=lib{match[1]}.so"
    return subprocess.run(["g++", name], check=True, capture_output=True, text=True).stdout.strip()


def run(command, env, quiet_s):
    """Runs `command` to its end, or kills it when it has printed nothing for `quiet_s`."""
    with tempfile.TemporaryDirectory(prefix="spillway-test-") as name:
        folder = pathlib.Path(name)
        statistics_file, output_file, errors_file = folder / "statistics.json", folder / "output", folder / "errors"
        settings = dict(env, SPILLWAY_SIM_STATS=str(statistics_file))
        with open(output_file, "wb") as output, open(errors_file, "wb") as errors:
            process = subprocess.Popen([str(part) for part in command], env=settings, stdout=output, stderr=errors)
            exit_code = await_end(process, output_file, quiet_s)
        statistics = json.loads(statistics_file.read_text()) if statistics_file.exists() else {}
        return Run(exit_code, output_file.read_text(errors="replace"), errors_file.read_text(errors="replace"), statistics)


def await_end(process, output_file, quiet_s):
    """The exit code of `process`; None when its output did not grow for `quiet_s` and it was
    killed.

    Time in which the process was ready to run, but other processes had the processors, does not
    count. Its own computing time does.
"""
    size, since_s, spending = 0, time.monotonic(), Spending({})
    while True:
        try:
            return process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            pass
        spending.look(threads_of(process.pid))
        if output_file.stat().st_size != size:
            size, since_s, spending = output_file.stat().st_size, time.monotonic(), Spending(spending.seen)
        elif time.monotonic() - since_s - spending.waiting_s > quiet_s or spending.computing_s > quiet_s:
            process.kill()
            process.wait()
            return None


class Spending:
    """The time that the threads of a process spend from now on: their sum, which may exceed the
    elapsed time, including ended threads."""

    def __init__(self, seen):
        self.seen = seen  # thread: its time so far, as `threads_of` returns it
        self.computing_s = self.waiting_s = 0.0  # waiting: for a processor

    def look(self, threads):
        for thread, (computed_s, waited_s) in threads.items():
            before = self.seen.get(thread, (0.0, 0.0))
            self.computing_s += max(0.0, computed_s - before[0])
            self.waiting_s += max(0.0, waited_s - before[1])
        self.seen = threads


def threads_of(pid):
    """Each thread's computing time and waiting time for a processor so far; empty where the
    system does not tell."""
    threads = {}
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            computed_ns, waited_ns = task.read_text().split()[:2]
            threads[task.parent.name] = int(computed_ns) / 1e9, int(waited_ns) / 1e9
        except (OSError, ValueError):
            pass
    return threads
