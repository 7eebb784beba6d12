#!/usr/bin/env python3
"""Shows Spillway on the simulated GPU: a small network on real data, and ResNet-50 at real size, in less memory than they want.

usage: try.py BUILD_DIR

The exit code is 0 if every run printed the same as the bare run and held no more device memory than its budget. Times are
those of the simulated GPU's clock.
"""
import argparse
import pathlib
import re
import statistics
import sys
import tempfile

from main_job import Run, RunFailed, execute, faults, moved_bytes, print_table

GIB = 1 << 30
STEADY_STEPS = 6
DIGITS = ["digits_cnn", "--epochs=5"]
RESNET = ["convnet", "--model=resnet50", "--image=224", "--batch=128", "--images=128", "--steps=22", "--times"]
# At this size kernels do not compute: each writes a hash of its inputs, so a wrong byte changes all later output. The job and
# the simulated clock wait for the plan.
AT_REAL_SIZE = {"SPILLWAY_SIM_COMPUTE": "tags", "SPILLWAY_LEARN": "wait"}


def make(runs, build_dir, command, settings, note):
    command = [str(build_dir / "workloads" / command[0]), *command[1:]]
    with tempfile.TemporaryDirectory(prefix="spillway-try-") as folder:
        for run in runs:
            print(f"  {run.label} ...", end="", flush=True)
            execute(run, build_dir, "h200", command, pathlib.Path(folder), settings, ["--host", "32GiB"])
            print(f" {note(run)} ({run.wall_seconds:.0f} s here)", flush=True)
    return [f"{run.label}: {fault}" for run in runs for fault in faults(run, runs[0])]


def last_line(run, name):
    return [line for line in run.output.splitlines() if line.startswith(name)][-1].removeprefix(name).strip()


def step_ms(run):
    """The median of the last steps, which follow the plan if there is one."""
    times = re.findall(r"^step \d+ took (\S+) ms$", run.errors, re.M)
    return statistics.median(float(text) for text in times[-STEADY_STEPS:])


def show_digits(build_dir):
    print("\n1. A small network learns handwritten digits (real data, real arithmetic)\n")
    runs = [Run("bare", ""), Run("under Spillway", ""), Run("half its memory", "50%peak"), Run("a quarter", "25%peak")]
    found = make(runs, build_dir, DIGITS, {}, lambda run: "test accuracy " + last_line(run, "test accuracy").split()[0])
    print()
    print_table(["", "loss of epoch 5", "checksum of the weights", "all lines as bare"],
                [[run.label, last_line(run, "epoch 5 mean loss"), last_line(run, "checksum"),
                  "yes" if run.output == runs[0].output else "NO"] for run in runs])
    return found


def resnet_row(run, bare):
    slower = "-" if run is bare else f"{100 * (step_ms(run) / step_ms(bare) - 1):+.1f} %"
    moved = "-" if run is bare else f"{moved_bytes(run) / GIB:.1f}"
    return [run.label, f"{run.statistics['device_bytes_peak'] / GIB:.2f}", f"{step_ms(run):.1f}", slower, moved,
            last_line(run, "checksum"), "yes" if run.output == bare.output else "NO"]


def show_resnet(build_dir):
    print("\n2. ResNet-50, 128 images of 224 x 224 a step, on a simulated H200\n")
    runs = [Run("bare", ""), Run("under Spillway", ""), *(Run(f"{share} % of it", f"{share}%peak") for share in (100, 50, 25))]
    found = make(runs, build_dir, RESNET, AT_REAL_SIZE, lambda run: f"{step_ms(run):.1f} ms a step")
    print()
    print_table(["", "GiB held at most", "ms a step", "slower", "GiB moved in all", "checksum", "all lines as bare"],
                [resnet_row(run, runs[0]) for run in runs])
    print("\n  Simulated: the memory is what the simulated GPU says it held, the times are those of its clock.")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build_dir", type=pathlib.Path)
    build_dir = parser.parse_args().build_dir.resolve()
    try:
        found = show_digits(build_dir) + show_resnet(build_dir)
    except RunFailed as failure:
        print(f"\nFAILED: {failure}")
        return 1
    print()
    for fault in found:
        print(fault)
    print("FAILED" if found else "Every run printed what the bare run printed, line for line, and kept its budget.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
