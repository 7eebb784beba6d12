#!/usr/bin/env python3
"""docs/slurm.md, its commands executed line by line: as an operator who installs the plugin, and as a user without rights.

    usage: page_test.py --build BUILD

Runs in a mount namespace of its own, where /etc, /usr/lib, /run and /var/log are this test's. `python3 train.py` is a trainer on the
simulated GPU. Skipped where the namespace or Slurm cannot be had.
"""
import argparse
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import slurm_cluster
from slurm_cluster import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/support"))
import node_agent  # noqa: E402
import skips  # noqa: E402

BUILD = None
NEW_NAMESPACE = 0x00020000  # CLONE_NEWNS
GIB = 1 << 30
LOG = pathlib.Path("/var/log/spillway-slurm.log")


def enter_own_mounts(folder):
    """False: this machine does not let root do that."""
    if ctypes.CDLL(None).unshare(NEW_NAMESPACE) != 0:
        return False

    def mount(*words):
        return subprocess.run(["mount", *words], capture_output=True, check=False).returncode == 0

    ok = mount("--make-rprivate", "/") and mount("-t", "tmpfs", "none", str(folder))
    for covered in "/etc", "/usr/lib":
        upper, work = (folder / f"{covered.replace('/', '_')}.{kind}" for kind in ("upper", "work"))
        upper.mkdir()
        work.mkdir()
        ok = ok and mount("-t", "overlay", "overlay", "-o", f"lowerdir={covered},upperdir={upper},workdir={work}", covered)
    return ok and all(mount("-t", "tmpfs", "none", empty) for empty in ("/run", "/var/log"))


def commands_of(section):
    """The lines of the page's indented blocks in that section."""
    page = (ROOT / "docs/slurm.md").read_text()
    text = re.search(rf"^## {section}\n(.*?)(?=^##)", page, re.DOTALL | re.MULTILINE)[1]
    lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    return [line for line in lines if not line.startswith("time=")]


class PageTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="spillway-page."))
        if not enter_own_mounts(self.folder):
            self.skipTest("mounts of its own are denied")
        self.folder.chmod(0o755)
        self.environment = None
        self.work = self.folder / "work"
        self.work.mkdir()
        self.work.chmod(0o777)
        python = self.work / "python3"
        python.write_text(f"""#!/bin/sh
export LD_LIBRARY_PATH={BUILD}/simulator SPILLWAY_SIM_PROFILE=h200 SPILLWAY_SIM_COMPUTE=tags
exec {BUILD}/workloads/gpt --layers=2 --width=256 --steps=3
""")
        python.chmod(0o755)

    def start_node(self):
        """The agent where the page expects it, and Slurm."""
        self.agent = node_agent.NodeAgent(BUILD, self.folder, node_agent.configuration("h200", 140 * GIB))
        pathlib.Path("/run/spillway").mkdir()
        self.agent.socket = pathlib.Path("/run/spillway/agent.sock")
        self.agent.start()
        self.addCleanup(self.agent.stop)
        self.cluster = slurm_cluster.SlurmCluster(self.folder, "include /etc/slurm/plugstack.conf")
        self.cluster.environment["PATH"] = f"{self.work}:{BUILD}/bin:{self.cluster.environment['PATH']}"
        self.addCleanup(self.cluster.close)
        self.cluster.start()

    def run_line(self, line, user):
        """Its output."""
        process = self.cluster.popen("sh", "-c", line, user=user) if user else subprocess.Popen(
            ["sh", "-c", line], cwd=ROOT, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, f"{line}: {errors}")
        return output

    def test_the_page_says_what_works(self):
        for line in commands_of("Install"):
            self.assertTrue(line.startswith("install "), line)
            self.run_line(line, None)
        self.start_node()
        os.chmod(self.folder, 0o777)  # sbatch writes its output into the current folder

        trained = 0
        for line in commands_of("Use"):
            output = self.run_line(line, "nobody")
            for written in self.folder.glob("slurm-*.out"):
                output += written.read_text()
            self.assertIn("--gpu-mem=SIZE" if "--help" in line else "checksum ", output, line)
            trained += "--help" not in line

        self.environment = self.cluster.environment
        wait_for(lambda: LOG.read_text().splitlines() if LOG.exists() else [], lambda lines: len(lines) == trained)
        watched = {line.split()[0]: self.run_line(line, None) for line in commands_of("Watch")}
        self.assertEqual(watched["tail"].count(" refused_allocations=0\n"), trained)
        limits = re.findall(r"expect_job job=slurm-\d+ limit_bytes=(\d+)", self.agent.log())
        self.assertEqual([int(limit) // GIB for limit in limits], [8, 8, 8, 6, 8, 8])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    known, rest = parser.parse_known_args()
    BUILD = known.build
    reason = slurm_cluster.why_not(BUILD)
    if reason:
        skips.leave_out(reason)
    skips.main(rest, verbosity=2)
