#!/usr/bin/env python3
"""From four packages and a fresh Debian to the first jobs within budgets, as the pages tell a new operator: under the agent alone, under a
real Slurm, and in a container of podman. Prints a table of the steps with their seconds, and when each kind of job had run.

    usage: first_jobs_test.py --build BUILD [--packed]

The steps are the pages' own lines. apt has its downloads already. The GPU is simulated, a CDI specification stands for that of NVIDIA's
toolkit, and `python3 train.py` for a trainer; sizes are divided by 128, so that the small trainer exceeds them.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

import fresh_root
import packing
from packing import BUDGET, ROOT, bare, packed

sys.path.append(str(ROOT / "tests/support"))
import node_agent  # noqa: E402
import skips  # noqa: E402

STEPS = 8
PATIENCE_S = 100
GIB = 1 << 30
USER = "ada"
LARGE, SMALL = ("8G", "8GiB"), "64MiB"
# What python3 is here: it trains on the simulated GPU, and shows Spillway's report; `spillway run` shows one itself.
TRAIN = """#!/bin/sh
export {environment} SPILLWAY_REPORT=/tmp/report.$$
{trainer} || exit
[ ! -e $SPILLWAY_REPORT ] || cat $SPILLWAY_REPORT >&2
"""


def commands_of(page, section):
    """The indented lines of a page's section; a here-document belongs to its command."""
    text = re.search(rf"^##+ {re.escape(section)}\n(.*?)(?=^##|\Z)", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)[1]
    commands, end = [], None
    for line in (line[4:] for line in text.splitlines() if line.startswith("    ")):
        if end is None:
            commands.append(line)
            begun = re.search(r"<<(\w+)", line)
            end = begun and begun[1]
        else:
            commands[-1] += "\n" + line
            end = None if line == end else end
    return commands


def scaled(command):
    for size in LARGE:
        command = re.sub(rf"\b{size}\b", SMALL, command)
    return command


class Failed(Exception):
    pass


class Newcomer:
    """Does one step after the other, and takes their times."""

    def __init__(self, folder):
        self.folder = folder
        self.root = None
        self.times = []
        self.firsts = []  # (what, seconds since the start)

    def step(self, name, action):
        begin = time.monotonic()
        result = action()
        self.times.append((name, time.monotonic() - begin))
        return result

    def reached(self, what):
        self.firsts.append((what, sum(seconds for _, seconds in self.times)))

    def run(self, command, user=None):
        """A line of a page, in the folder with the packages."""
        words = "timeout", str(PATIENCE_S), "sh", "-ec", f"cd {fresh_root.INCOMING}\n{command}"
        ran = self.root.run(*words, user=user, HOME=f"/home/{user}" if user else "/root")
        if ran.returncode != 0:
            raise Failed(f"{command}\n{ran.stdout}{ran.stderr}\n{self.logs()}")
        return ran

    def logs(self):
        return self.root.run("sh", "-c", "journalctl --lines=40 -u 's*' -u munge; tail -n 30 /var/log/slurm/*; sinfo --long; sinfo -R; squeue").stdout

    def type(self, command, user=None):
        name = command.splitlines()[0]
        return self.step(f"{name} ..." if "\n" in command else name, lambda: self.run(scaled(command), user))

    def train(self, command, user=None):
        """A line of a page that trains: within its budget, to the same bytes as without Spillway."""
        ran = self.type(command, user)
        if ran.stdout != bare(STEPS):
            raise Failed(f"{command} computed something else:\n{ran.stdout}")
        if not self.is_within_budget(ran.stderr):
            raise Failed(f"{command} did not train within a budget: {ran.stderr}")

    def is_within_budget(self, errors):
        if "held at most" in errors:
            return "budget 64.0 MiB, held at most 64.0 MiB\nspillway: moved out " in errors
        if "{" not in errors:
            return False
        report = json.loads(errors[errors.index("{"):errors.rindex("}") + 1])
        return report["resident_peak_bytes"] <= BUDGET < report["wanted_peak_bytes"]

    def boot(self):
        (self.folder / "root").mkdir()
        archive = fresh_root.base_archive(packing.PACKAGES, packed(packing.PACKAGES))
        self.root = fresh_root.FreshRoot(self.folder / "root", archive, packing.BUILD)
        if not self.root.boot():
            raise Failed("systemd does not run: " + (self.folder / "boot.log").read_text()[-300:])

    def prepare(self):
        """What a real node has, and a simulated one lacks."""
        self.root.copy_in(packed(packing.PACKAGES))
        self.write("/etc/apt/apt.conf.d/test", 'APT::Get::Assume-Yes "1"; APT::Install-Recommends "0";')
        self.write("/etc/spillway/spillway.d/gpu.toml", node_agent.configuration("h200", 140 * GIB))
        simulated = packing.simulated()
        self.write("/etc/ld.so.conf.d/driver.conf", simulated.pop("LD_LIBRARY_PATH").replace(":", "\n") + "\n")
        environment = " ".join(f"{name}={value}" for name, value in simulated.items())
        self.write("/usr/local/bin/python3", TRAIN.format(environment=environment, trainer=" ".join(packing.trainer(f"--steps={STEPS}"))), 0o755)
        self.run(f"ldconfig\nmknod -m 666 /dev/nvidia0 c 1 3\nuseradd --create-home {USER}")

    def write(self, path, text, mode=0o644):
        place = self.root.path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)

    def make_image(self):
        """An image with a C library and a shell, and the node's `nvidia.com/gpu=all`."""
        mounts = [{"hostPath": path, "containerPath": path, "options": ["ro", "bind"]} for path in (str(packing.BUILD), fresh_root.LIBRARIES)]
        self.write("/etc/cdi/nvidia.json", json.dumps({"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [
            {"name": "all", "containerEdits": {"mounts": mounts, "env": [f"LD_LIBRARY_PATH={packing.simulated()['LD_LIBRARY_PATH']}"]}}]}))
        self.write("/etc/containers/containers.conf", '[containers]\nnetns = "none"\ndefault_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]\n'
                   '[engine]\nruntime = "runc"\n')
        self.run("tar -C / --exclude='tmp/*' -cf - bin lib lib64 tmp usr/lib64 usr/bin/cat usr/bin/dash usr/bin/sh usr/local/bin "
                 "usr/lib/x86_64-linux-gnu | podman import - image")

    def go(self):
        self.step("a fresh Debian boots", self.boot)
        self.prepare()
        for command in commands_of("packages.md", "Install")[:1]:
            self.type(command)
        self.type("spillway status", USER)
        self.train("spillway run --agent=required --budget 8GiB -- python3 train.py", USER)
        self.reached("the first job under the agent")
        slurm = commands_of("slurm.md", "Try it on one node")
        for command in slurm[:-1]:
            self.type(command)
        self.train(slurm[-1], USER)
        self.reached("the first job of Slurm")
        self.type("apt install podman runc")
        self.step("(an image)", self.make_image)
        for command in commands_of("containers.md", "Prepare a node"):
            self.type(command)
        *_, podman = commands_of("containers.md", "Run")
        self.train(podman.replace("IMAGE", "image"))
        self.reached("the first container")


def report(newcomer):
    print("seconds  step")
    for name, seconds in newcomer.times:
        print(f"{seconds:7.1f}  {name}")
    for what, seconds in newcomer.firsts:
        print(f"{seconds:7.1f}  from the start to {what}, without downloads")


def main(_):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="spillway-first."))
    newcomer = Newcomer(folder)
    if not fresh_root.base_archive(packing.PACKAGES, packed(packing.PACKAGES)).exists():
        skips.leave_out("there is no fresh root")
    try:
        newcomer.go()
    except Failed as failure:
        print(failure)
        return 1
    finally:
        report(newcomer)
        if newcomer.root:
            newcomer.root.shut_down()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(packing.main(main))
