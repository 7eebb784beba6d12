#!/usr/bin/env python3
"""One trainer with one allocator: bare, then under budgets; equal lines, a budget that holds, bytes that move.

usage: main_job_test.py BUILD_DIR WORKLOAD ALLOCATOR
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Default sizes (at least 256 MiB wanted), few steps: a step is what the promise is about.
LENGTH = {"digits_cnn": ["--epochs=1"], "convnet": ["--steps=2"], "gpt": ["--steps=2"]}
SHARES = ["100%peak", "50%peak", "25%peak", "15%peak"]
MIB = 1 << 20


def fail(message):
    sys.exit(f"main_job_test: {message}")


class Job:
    def __init__(self, build, workload, allocator, folder):
        self.build, self.folder = build, folder
        self.command = [str(build / "workloads" / workload), *LENGTH[workload], f"--allocator={allocator}"]

    def run(self, *options):
        """Output, the simulator's books and Spillway's report (empty without it) of one run."""
        books, report = self.folder / "books.json", self.folder / "report.json"
        for file in (books, report):
            file.unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        environment.update(XDG_STATE_HOME=str(self.folder), SPILLWAY_SIM_STATS=str(books))
        launcher = [str(self.build / "bin" / "spillway"), "run", "--quiet", "--simulate=h200", *options]
        run = subprocess.run([*launcher, "--", *self.command], env=environment, capture_output=True, text=True)
        if run.returncode != 0:
            fail(f"{' '.join(launcher)}: exit {run.returncode}\n{run.stderr[-2000:]}")
        return run.stdout, json.loads(books.read_text()), json.loads(report.read_text()) if report.exists() else {}


def check(condition, what):
    if not condition:
        fail(what)


def check_books(books, budget_bytes):
    check(books["device_bytes_peak"] <= budget_bytes, f"held {books['device_bytes_peak']} of {budget_bytes} bytes")
    check(books["unmapped_while_in_use"] == 0, f"unmapped in use: {books['violations']}")
    check(books["illegal_accesses"] == 0, f"illegal accesses: {books['violations']}")
    check(not books["violations"], f"violations: {books['violations']}")


def main():
    build, workload, allocator = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory(prefix="spillway-main-job-") as folder:
        job = Job(build, workload, allocator, pathlib.Path(folder))
        bare, bare_books, _ = job.run("--off")
        check(bare.count("\n") > 2, f"the bare run printed too little:\n{bare}")
        report_option = f"--report={folder}/report.json"
        free, _, report = job.run(report_option)
        check(free == bare, "without a budget the output differs from the bare run's")
        peak = report["wanted_peak_bytes"]
        check(peak >= 256 * MIB, f"wants only {peak} bytes")
        for share in SHARES:
            output, books, report = job.run(f"--budget={share}", report_option)
            check(output == bare, f"at {share} the output differs from the bare run's")
            check_books(books, report["budget_bytes"])
            moved = report["offloaded_bytes"] + report["restored_bytes"]
            check((moved > 0) == (share != "100%peak"), f"at {share} {moved} bytes moved")
            slower = books["simulated_ns"] / bare_books["simulated_ns"]
            print(f"{workload} {allocator} {share}: budget {report['budget_bytes'] // MIB} MiB, held "
                  f"{books['device_bytes_peak'] // MIB} MiB, moved {moved // MIB} MiB, simulated time x{slower:.2f}")


main()
