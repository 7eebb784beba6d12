#!/usr/bin/env python3
"""The papers' largest batches, depths, rates and savings, live on the simulated cards of their time.
All simulated.

Each row is a run of a trainer (tests/workloads/convnet) at the paper's batch or depth under the
preload library, in the compute mode `tags`. The budget is the card, or what the paper's strategy
held. A row holds if the run ends well, keeps to the budget by the simulator's books, breaks no rule
of the driver, and is at least as fast as the paper's figure, where the paper has one.

Of what does not fit the card only memory with tags takes real memory (docs/simulation.md). A row that
needs more of that than is available is left out, and says so: the deepest ResNet's needs some 20 GiB,
DELTA's largest batches 9 and 12.

    reach.py BUILD                 all rows: some 15 minutes
    reach.py BUILD --only vgg16    rows whose name has this part
    reach.py BUILD --markdown      as the table in docs/papers.md
"""
import argparse
import os
import re
import sys

import live
from live import GIB

CAPACITY = {"k40c": 12079136768, "m40": 12079136768, "a100": 42402250752}  # of the profiles
IMAGES = {"alexnet": 227, "inception_v4": 299}  # sides; of other networks 224
PLANNED = live.STEPS_UNTIL_PLANNED


class Row:
    """`host_gib`: of this machine's memory, with some to spare. `rate`: images per second."""

    def __init__(self, source, profile, model, batch, paper, host_gib=1, rate=None, steps=3, options="", budget_bytes=None):
        self.source, self.profile, self.model, self.batch, self.paper = source, profile, model, batch, paper
        self.host_gib, self.rate, self.steps, self.options = host_gib, rate, steps, options
        self.budget_bytes = budget_bytes or CAPACITY[profile]
        self.name = f"{source}, {model}, batch {batch}"


def superneurons_rate(model, rate, options=""):
    """The table's rate with the paper's memory pool; its batch, which it does not state, is taken as 16."""
    return Row("SuperNeurons table 2", "k40c", model, 16, f"{rate} images/s", rate=rate, options=options)


def superneurons_batch(model, batch):
    return Row("SuperNeurons table 5", "k40c", model, batch, f"batch {batch}", host_gib=4)


def accudnn(model, batch, rate, host_gib=4, workspace="1GiB"):
    return Row("AccUDNN table 1", "m40", model, batch, f"batch {batch}, {rate} images/s", host_gib=host_gib, rate=rate,
               steps=PLANNED, options=f"--workspace={workspace}")


def delta_memory(model, batch, before_mb, after_mb):
    """The table does not state the batch. Taken is the largest whose tensors (`--peak`) take at most the paper's baseline."""
    return Row("DELTA table II", "a100", model, batch, f"{before_mb} to {after_mb} MB", host_gib=3, steps=PLANNED,
               budget_bytes=after_mb * 1000000)


def delta_batch(table, model, batch, host_gib):
    """The paper's card has 80 GB; this one has 40."""
    return Row(f"DELTA table {table}", "a100", model, batch, f"batch {batch} in 80 GB", host_gib=host_gib, steps=2)


ROWS = [
    superneurons_rate("alexnet", 401.6, "--workspace=1GiB"),
    superneurons_rate("vgg16", 14.4),
    superneurons_rate("inception_v4", 10.0),
    superneurons_rate("resnet50", 32.9),
    superneurons_rate("resnet101", 18.95),
    superneurons_rate("resnet152", 13.2),
    # Ours are 2 + 3n deep.
    Row("SuperNeurons table 4", "k40c", "resnet:1922", 16, "depth 1920", host_gib=20, steps=2),
    superneurons_batch("alexnet", 1792),
    superneurons_batch("vgg16", 224),
    superneurons_batch("inception_v4", 240),
    superneurons_batch("resnet50", 384),
    superneurons_batch("resnet101", 256),
    superneurons_batch("resnet152", 176),
    accudnn("alexnet", 1032, 853, workspace="2GiB"),
    accudnn("googlenet", 286, 245),
    accudnn("vgg16", 192, 50),
    accudnn("resnet34", 276, 99),
    accudnn("resnet50", 112, 66),
    accudnn("resnet101", 74, 34),
    accudnn("resnet152", 54, 24, host_gib=6),
    delta_memory("resnet101", 87, 16553, 4577),
    delta_memory("resnext50", 88, 14726, 5356),
    delta_batch("III", "resnet50", 1814, host_gib=14),
    delta_batch("IV", "resnet101", 1336, host_gib=10),
]


def available_gib():
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(r"^MemAvailable: +(\d+) kB", file.read(), re.M).group(1)) >> 20


def run(build, row):
    found = live.run(build, row.profile, row.budget_bytes, row.model, IMAGES.get(row.model, 224), row.batch, row.steps, row.options)
    if "error" not in found:
        found["rate"] = row.batch * 1000 / found["step_ms"][-1]
    return found


def judge(row, found):
    if "error" in found:
        return found["error"]
    if live.breaks_a_rule(found, row.budget_bytes):
        return "breaks a rule"
    if row.rate and found["rate"] < row.rate:
        return "SLOWER"
    return "ok"


def as_text(row, found, verdict):
    if "error" in found:
        return f"{row.name:48} {verdict}"
    return (f"{row.name:48} {found['device_bytes_peak'] / GIB:6.2f} GiB held, wanted {found['report']['wanted_peak_bytes'] / GIB:6.1f}, "
            f"{found['rate']:7.1f} images/s (paper: {row.paper}), {found['host_gib']:.1f} GiB of this machine's  {verdict}")


def as_markdown(row, found, verdict):
    if "error" in found:
        return f"| {row.source} | {row.model}, {row.batch} | {row.paper} | - | - | - | {verdict} |"
    return (f"| {row.source} | {row.model}, {row.batch} | {row.paper} | {found['report']['wanted_peak_bytes'] / GIB:.1f} | "
            f"{found['device_bytes_peak'] / GIB:.2f} | {found['rate']:.1f} | {verdict} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    build, good = os.path.abspath(arguments.build), True
    for row in ROWS:
        if arguments.only not in row.name:
            continue
        if row.host_gib > available_gib():
            print(f"{row.name:48} left out: needs {row.host_gib} GiB of host memory", flush=True)
            continue
        found = run(build, row)
        verdict = judge(row, found)
        good = good and verdict == "ok"
        print((as_markdown if arguments.markdown else as_text)(row, found, verdict), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
