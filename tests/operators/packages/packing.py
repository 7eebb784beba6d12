#!/usr/bin/env python3
"""What the packages' tests share: the packages of a build folder, the fresh root's archive, and a trainer on the simulated GPU.

    usage: packing.py --build BUILD

fills BUILD/packages for these tests.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import fresh_root

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import skips  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = None
PACKAGES = None  # the folder that tools/package.sh filled
INSIDE = "--in-own-namespaces"
NAMES = "spillway", "spillway-agent", "spillway-kubernetes", "spillway-slurm"
PRODUCTS = "bin/spillwayd", "bin/spillway-plan", "bin/spillway-kubernetes", "lib/spillway_spank.so", "workloads/gpt"
MIB = 1 << 20
BUDGET = 64 * MIB  # the trainer wants twice as much
TRAINER = "gpt", "--layers=2", "--width=256"


def use(build):
    global BUILD, PACKAGES
    BUILD = build.resolve()
    PACKAGES = BUILD / "packages"


def why_not():
    programs = "dh", "dpkg-deb", "lintian", "mmdebstrap", "unshare"
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: debhelper, dpkg-dev, lintian, mmdebstrap)"
    unbuilt = [product for product in PRODUCTS if not (BUILD / product).exists()]
    if unbuilt:
        return f"not built: {', '.join(unbuilt)}"
    if os.getuid() != 0:
        return "a fresh root needs root"
    if subprocess.run([*fresh_root.OWN_NAMESPACES, "true"], capture_output=True).returncode != 0:
        return "this machine forbids namespaces"
    return ""


def pack(folder):
    environment = dict(os.environ, BUILD_DIR=str(BUILD), DEB_BUILD_OPTIONS="noautodbgsym")
    ran = subprocess.run([ROOT / "tools/package.sh", "--built", "--output", folder], env=environment, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(ran.stdout + ran.stderr)


def packed(folder, names=NAMES):
    return [next(path for path in folder.glob("*.deb") if path.name.startswith(f"{name}_")) for name in names]


def simulated():
    return {"LD_LIBRARY_PATH": f"{BUILD}/simulator:{fresh_root.LIBRARIES}", "SPILLWAY_SIM_PROFILE": "h200", "SPILLWAY_SIM_COMPUTE": "tags"}


def simulating():
    return {**os.environ, **simulated()}


def trainer(*more):
    return [str(BUILD / "workloads" / TRAINER[0]), *TRAINER[1:], *more]


def bare(steps):
    """What the trainer prints without Spillway."""
    return subprocess.run(trainer(f"--steps={steps}"), env=simulating(), capture_output=True, text=True, check=True).stdout


def steps_in(output):
    return len(re.findall("(?m)^step ", output))


def fill():
    """Packs anew; the archive of the root stays."""
    for path in PACKAGES.glob("spillway*"):
        path.unlink()
    pack(PACKAGES)
    print(fresh_root.make_base(PACKAGES, packed(PACKAGES)), flush=True)


def main(run):
    """Calls `run` with unittest's arguments, in namespaces of its own, once the packages are there; --packed: they are."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--packed", action="store_true")
    parser.add_argument(INSIDE, action="store_true", dest="inside")
    options, rest = parser.parse_known_args()
    use(options.build)
    reason = why_not() if not options.inside else ""
    if reason:
        skips.leave_out(reason)
    if not options.inside:
        if not options.packed:
            fill()
        os.execvp(fresh_root.OWN_NAMESPACES[0], [*fresh_root.OWN_NAMESPACES, sys.executable, *sys.argv, INSIDE])
    fresh_root.raise_loopback()
    return run(rest)


def run_tests(arguments):
    """Each test goes on where the one before it ended."""
    return skips.run(arguments, failfast=True, verbosity=2)


if __name__ == "__main__":
    sys.exit(main(lambda _: 0))
