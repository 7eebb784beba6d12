#!/usr/bin/env python3
"""The time of convolutions over the workspace that each may have, live in SuperNeurons' and vDNN's
settings. All simulated.

The trainer (tests/workloads/convnet) takes cuDNN's fastest deterministic algorithm within
`--workspace`. All else in a step is the same at every limit, so the step's time shows that of the
convolutions. Two rows for each setting: with memory for all, and in the paper's memory pool under
Spillway with a plan. In the pool Spillway hides what cannot fit, and workspaces compete with
tensors.

What must hold: with memory for all, more workspace never makes a step slower; the best step in the
pool is at least 1.2 times as fast as the one there without workspaces; every run in the pool keeps
to it and breaks no rule of the driver.

    workspaces.py BUILD            all settings: some minutes
    workspaces.py BUILD --only vgg
"""
import argparse
import os
import sys
import tempfile

import live
from live import GIB

LEAST_SPEED_UP = 1.2
LIMITS_MIB = (0, 1, 4, 16, 64, 256, 1024, 4096)
ROOMY = 64 * GIB
# Title, network, side of an image, card, batch, the paper's pool.
SETTINGS = (
    ("SuperNeurons 3.5, AlexNet, batch 100, 3 GiB", "alexnet", 227, "k40c", 100, 3 * GIB),
    ("SuperNeurons 3.5, AlexNet, batch 300, 3 GiB", "alexnet", 227, "k40c", 300, 3 * GIB),
    ("vDNN, VGG-16, batch 64, 12 GB", "vgg16", 224, "m40", 64, 12079136768),
)


def roomy_card(build, card, folder):
    """The profile of such a card with memory for all."""
    path = os.path.join(folder, card + ".profile")
    with open(os.path.join(build, "simulator", "profiles", card + ".profile"), encoding="utf-8") as source:
        lines = [f"capacity_bytes = {ROOMY}\n" if line.startswith("capacity_bytes") else line for line in source]
    with open(path, "w", encoding="utf-8") as target:
        target.writelines(lines)
    return path


def step_ms(found):
    if "error" in found:
        sys.exit(f"workspaces.py: a run failed: {found['error']}")
    return found["step_ms"][-1]


def judge(setting, build, folder):
    title, model, image, card, batch, pool = setting
    profile, good = roomy_card(build, card, folder), True
    bare, pooled = [], []
    for limit_mib in LIMITS_MIB:
        options = f"--workspace={limit_mib << 20}"
        bare.append(step_ms(live.run(build, profile, None, model, image, batch, 2, options)))
        found = live.run(build, card, pool, model, image, batch, live.STEPS_UNTIL_PLANNED, options)
        pooled.append(step_ms(found))
        good = good and not live.breaks_a_rule(found, pool)
    is_monotone = all(after <= before for before, after in zip(bare, bare[1:]))
    speed_up = pooled[0] / min(pooled)
    print(f"{title}: ms a step (simulated {card})")
    print("  MiB of workspace   " + "".join(f"{limit_mib:9}" for limit_mib in LIMITS_MIB))
    print("  with memory for all" + "".join(f"{each:9.1f}" for each in bare) + ("  never slower" if is_monotone else "  NOT MONOTONE"))
    print("  in the pool        " + "".join(f"{each:9.1f}" for each in pooled)
          + f"  the best is {speed_up:.2f} times as fast as none" + ("" if good else "  BREAKS A RULE"), flush=True)
    return good and is_monotone and speed_up >= LEAST_SPEED_UP


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="", help="settings whose network has this part")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = [judge(setting, os.path.abspath(arguments.build), folder) for setting in SETTINGS if arguments.only in setting[1]]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
