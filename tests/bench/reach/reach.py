#!/usr/bin/env python3
"""The papers' largest batches, depths and rates, live on the simulated cards of their time. All
simulated.

Each row is a run of a trainer (tests/workloads) at the paper's batch or depth under the preload
library, in the compute mode `tags`. The card is the budget. A row holds if the run ends well, keeps
to the card's memory by the simulator's books, breaks no rule of the driver, and is at least as fast
as the paper's figure, where the paper has one. The trainers have VGG and ResNet alone.

Of what does not fit the card only memory with tags takes real memory (docs/simulation.md). A row that
needs more of that than is available is left out, and says so: the deepest ResNet's needs some 20 GiB.

    reach.py BUILD                 all rows
    reach.py BUILD --only vgg16    rows whose name has this part
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

CAPACITY = 12079136768  # of both profiles
STEP = re.compile(r"^step \d+ took ([0-9.]+) ms$", re.M)


class Row:
    def __init__(self, source, profile, model, batch, host_gib, paper_rate=None, steps=3, options=""):
        self.source, self.profile, self.model, self.batch, self.host_gib = source, profile, model, batch, host_gib
        self.paper_rate, self.steps, self.options = paper_rate, steps, options
        self.name = f"{source}, {model}, batch {batch}"


# Host memory in GiB is what such a run takes of this machine's, with some to spare. Rates are images per second. A plan is
# followed after some ten steps.
ROWS = [
    # The table's rates with the paper's memory pool; its batches, which it does not state, are taken as 16.
    Row("SuperNeurons table 2", "k40c", "vgg16", 16, 1, 14.4),
    Row("SuperNeurons table 2", "k40c", "resnet50", 16, 1, 32.9),
    Row("SuperNeurons table 2", "k40c", "resnet101", 16, 1, 18.95),
    Row("SuperNeurons table 2", "k40c", "resnet152", 16, 1, 13.2),
    Row("SuperNeurons table 4", "k40c", "resnet:1922", 16, 20, steps=2),  # the paper's has 1920 layers; ours are 2 + 3n
    Row("SuperNeurons table 5", "k40c", "vgg16", 224, 4),
    Row("SuperNeurons table 5", "k40c", "resnet50", 384, 4),
    Row("SuperNeurons table 5", "k40c", "resnet101", 256, 4),
    Row("SuperNeurons table 5", "k40c", "resnet152", 176, 4),
    Row("AccUDNN table 1", "m40", "vgg16", 192, 4, 50, steps=14, options="--workspace=1GiB"),
    Row("AccUDNN table 1", "m40", "resnet34", 276, 4, 99, steps=14, options="--workspace=1GiB"),
    Row("AccUDNN table 1", "m40", "resnet50", 112, 4, 66, steps=14, options="--workspace=1GiB"),
    Row("AccUDNN table 1", "m40", "resnet101", 74, 4, 34, steps=14, options="--workspace=1GiB"),
    Row("AccUDNN table 1", "m40", "resnet152", 54, 6, 24, steps=14, options="--workspace=1GiB"),
]


def available_gib():
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(r"^MemAvailable: +(\d+) kB", file.read(), re.M).group(1)) >> 20


def run(build, row):
    with tempfile.TemporaryDirectory() as folder:
        statistics, report = os.path.join(folder, "statistics"), os.path.join(folder, "report")
        simulator = os.path.join(build, "simulator")
        environment = dict(os.environ, LD_LIBRARY_PATH=simulator, SPILLWAY_SIM_PROFILE=row.profile, SPILLWAY_SIM_COMPUTE="tags",
                           SPILLWAY_SIM_STATS=statistics, SPILLWAY_DRIVER=os.path.join(simulator, "libcuda.so.1"),
                           SPILLWAY_HOST_LIMIT=str(1 << 40), SPILLWAY_BUDGET=str(CAPACITY), SPILLWAY_LEARN="wait" if row.steps > 3 else "off",
                           SPILLWAY_REPORT=report, LD_PRELOAD=os.path.join(build, "lib", "libspillway.so"))
        command = [os.path.join(build, "workloads", "convnet"), f"--model={row.model}", "--image=224", f"--batch={row.batch}",
                   f"--images={row.batch}", f"--steps={row.steps}", "--times", *row.options.split()]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            return {"error": result.stderr.strip().splitlines()[-1] if result.stderr.strip() else f"exit code {result.returncode}"}
        with open(statistics, encoding="utf-8") as file:
            found = json.load(file)
        with open(report, encoding="utf-8") as file:
            found["report"] = json.load(file)
        found["rate"] = row.batch * 1000 / float(STEP.findall(result.stderr)[-1])
        return found


def judge(row, found):
    if "error" in found:
        return found["error"]
    if found["device_bytes_peak"] > CAPACITY or found["violations"] or found["illegal_accesses"]:
        return "breaks a rule"
    if row.paper_rate and found["rate"] < row.paper_rate:
        return "SLOWER"
    return "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    build, good = os.path.abspath(arguments.build), True
    for row in ROWS:
        if arguments.only not in row.name:
            continue
        if row.host_gib > available_gib():
            print(f"{row.name:48} left out: needs {row.host_gib} GiB of host memory")
            continue
        found = run(build, row)
        verdict = judge(row, found)
        good = good and verdict == "ok"
        figures = "" if "error" in found else (
            f"{found['device_bytes_peak'] / (1 << 30):6.2f} GiB held, wanted {found['report']['wanted_peak_bytes'] / (1 << 30):6.1f}, "
            f"{found['rate']:7.1f} images/s")
        paper = f" (paper {row.paper_rate})" if row.paper_rate else ""
        print(f"{row.name:48} {figures}{paper}  {verdict}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
