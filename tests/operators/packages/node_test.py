#!/usr/bin/env python3
"""The Debian packages' life in a fresh root, with the agent and a job that trains on the simulated GPU all along.

    usage: node_test.py --build BUILD [--packed] [unittest arguments]

--packed: BUILD/packages has what is to be tested.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import fresh_root
import packing
from fresh_root import FreshRoot, package_field
from packing import BUDGET, NAMES, bare, packed, steps_in, trainer

sys.path.append(str(packing.ROOT / "tests/support"))
import node_agent  # noqa: E402
from waiting import wait_for  # noqa: E402

NEXT_VERSION = "99.0.0"
PATIENCE_S = 240  # the trainer's lines come 4 KiB at a time
SOCKET = "/run/spillway/agent.sock"
PLANS = "/var/lib/spillway/plans"


def pack_next_version(folder):
    """The packages with a higher version."""
    folder.mkdir()
    for path in packed(packing.PACKAGES):
        tree = folder / "tree"
        subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
        control = tree / "DEBIAN/control"
        control.write_text(control.read_text().replace(package_field(path, "Version"), NEXT_VERSION))
        subprocess.run(["dpkg-deb", "-Znone", "-b", tree, folder / f"{package_field(path, 'Package')}_{NEXT_VERSION}_amd64.deb"],
                       check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)


class NodeTest(unittest.TestCase):
    """In the order of a package's life, in one root."""

    @classmethod
    def setUpClass(cls):
        cls.outside = pathlib.Path(tempfile.mkdtemp(prefix="spillway-root."))
        cls.addClassCleanup(shutil.rmtree, cls.outside, ignore_errors=True)
        archive = fresh_root.base_archive(packing.PACKAGES, packed(packing.PACKAGES))
        if not archive.exists():
            raise unittest.SkipTest("there is no fresh root")
        (cls.outside / "root").mkdir()
        cls.root = FreshRoot(cls.outside / "root", archive, packing.BUILD)
        cls.addClassCleanup(cls.root.shut_down)
        if not cls.root.boot():
            raise unittest.SkipTest("systemd does not run here: " + (cls.outside / "boot.log").read_text()[-300:])
        cls.root.run("apt-get", "install", "-y", "--no-install-recommends", "logrotate")
        cls.before = cls.root.files()
        cls.output, cls.errors = cls.outside / "output", cls.outside / "errors"
        cls.job = None

    def passes(self, *words, **options):
        ran = self.root.run(*words, **options)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr + self.root.run("journalctl", "-u", "spillwayd").stdout)
        return ran.stdout + ran.stderr

    def state(self, unit):
        return self.root.run("systemctl", "is-active", unit).stdout.strip(), self.root.run("systemctl", "is-enabled", unit).stdout.strip()

    def agent_pid(self):
        return int(self.passes("systemctl", "show", "-P", "MainPID", "spillwayd"))

    def install(self, folder, *options):
        return self.passes("apt-get", "install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confdef", *options,
                           *self.root.copy_in(packed(folder)))

    def test_1_install(self):
        self.install(packing.PACKAGES)
        self.assertIn("Spillway node agent", self.passes("getent", "passwd", "spillway"))
        self.passes("ldconfig")
        self.assertNotIn("libcuda", self.passes("ldconfig", "-p"))

    def test_2_the_agent_runs_without_a_gpu(self):
        self.assertEqual(self.state("spillwayd.service"), ("active", "enabled"))
        self.assertEqual(self.state("spillwayd.socket"), ("active", "enabled"))
        self.assertEqual(self.state("spillwayd-jobs.socket"), ("inactive", "disabled"))
        self.passes("spillway", "status")
        self.passes("systemctl", "reload", "spillwayd")

    def test_2_the_slurm_plugins_log_is_rotated(self):
        log = self.root.path("/var/log/spillway-slurm.log")
        log.write_text("time=2026-11-26T01:02:03Z job=1\n")
        self.passes("logrotate", "--force", "--state", "/srv/rotated", "/etc/logrotate.d/spillway-slurm")
        self.assertFalse(log.exists())
        self.assertTrue(log.with_name("spillway-slurm.log.1.gz").exists())

    def test_3_an_upgrade_while_a_job_trains(self):
        self.configure()
        self.begin_job()
        pack_next_version(self.outside / "next")

        self.replace(self.outside / "next")

        maps = self.root.run("sh", "-c", "cat /proc/[0-9]*/maps").stdout
        self.assertRegex(maps, r"/usr/lib/spillway/libspillway\.so\S* \(deleted\)")
        self.assertEqual(self.passes("dpkg-query", "-W", "-f", "${Version}", "spillway-agent"), NEXT_VERSION)

    def test_4_a_downgrade_while_the_job_trains(self):
        self.replace(packing.PACKAGES, "--allow-downgrades")
        self.assertNotEqual(self.passes("dpkg-query", "-W", "-f", "${Version}", "spillway-agent"), NEXT_VERSION)

    def replace(self, folder, *options):
        """Installs these packages, of another version; the job goes on under the next agent."""
        agent, kept = self.agent_pid(), self.kept_over_restarts()
        self.install(folder, *options)
        self.assert_job_goes_on()
        self.assertNotEqual(self.agent_pid(), agent)
        self.assertEqual(self.kept_over_restarts(), kept)
        self.assertEqual(self.state("spillwayd.service"), ("active", "enabled"))
        self.assertIn("A change of the operator's", self.root.path("/etc/spillway/spillway.toml").read_text())
        wait_for(lambda: self.passes("spillway", "jobs"), lambda jobs: "gpt" in jobs)

    def kept_over_restarts(self):
        """The socket, by the time since which it listens, and the file of the slabs' records, by its inode."""
        listens_since = self.passes("systemctl", "show", "-P", "ActiveEnterTimestampMonotonic", "spillwayd.socket")
        records = re.search(r" (\d+) +/memfd:spillway-slab-records", self.passes("cat", f"/proc/{self.agent_pid()}/maps"))
        return listens_since, records[1]

    def configure(self):
        drop_in = self.root.path("/etc/spillway/spillway.d/node.toml")
        drop_in.parent.mkdir()
        drop_in.write_text(node_agent.configuration("h200", 1 << 30))
        with open(self.root.path("/etc/spillway/spillway.toml"), "a") as changed:
            changed.write("# A change of the operator's.\n")
        self.passes("systemctl", "restart", "spillwayd")

    def begin_job(self):
        """A job under the agent that trains until /srv/end exists; it has printed steps."""
        words = self.root.command("spillway", "run", "--quiet", "--agent=required", f"--budget={BUDGET}", "--", *trainer(
            "--steps=1000000", "--until=/srv/end"), **packing.simulated(), XDG_STATE_HOME="/srv/state")
        with open(self.output, "wb") as out, open(self.errors, "wb") as errors:
            type(self).job = subprocess.Popen(words, stdout=out, stderr=errors)
        self.addClassCleanup(self.job.kill)
        self.assert_job_goes_on()

    def assert_job_goes_on(self):
        trained = steps_in(self.output.read_text())
        wait_for(lambda: steps_in(self.output.read_text()) > trained + 8 or self.job.poll() is not None, patience_s=PATIENCE_S)
        self.assertIsNone(self.job.poll(), self.errors.read_text())

    def test_5_installing_again_changes_nothing(self):
        before = self.root.files()
        self.passes("dpkg", "-i", *self.root.copy_in(packed(packing.PACKAGES)))
        self.assertEqual(self.root.files(), before)
        self.assertEqual(self.state("spillwayd.service"), ("active", "enabled"))

    def test_6_removed_while_the_job_trains_the_agent_stays_away(self):
        """Whoever connected to a socket that was still there, between the stops of one unit and the next, started the agent anew."""
        self.begin(f"while [ ! -e /srv/end ]; do {packing.BUILD}/bin/spillway status; done")
        self.passes("dpkg", "--remove", *NAMES)
        self.assert_job_goes_on()
        self.assertNotIn("spillwayd", self.root.run("sh", "-c", "cat /proc/[0-9]*/comm").stdout)

        self.root.path("/srv/end").touch()
        self.assertEqual(self.job.wait(60), 0, self.errors.read_text())
        output = self.output.read_text()
        self.assertEqual(output, bare(steps_in(output)))

    def begin(self, script):
        """A script in the root. nsenter would get its signals, so it ends by itself, at /srv/end or with the root."""
        started = subprocess.Popen(self.root.command("sh", "-c", script), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addClassCleanup(started.wait)
        self.addClassCleanup(started.kill)
        return started

    def test_7_remove_keeps_configuration_and_state(self):
        for kept in ("/etc/spillway/spillway.toml", "/etc/spillway/spillway.d/node.toml", PLANS):
            self.passes("test", "-e", kept)
        self.assertFalse(self.root.path("/usr/bin/spillwayd").exists())
        self.assertFalse(self.root.path("/usr/lib/spillway").exists())

    def test_8_purge_beside_an_agent_of_others_leaves_what_it_uses(self):
        """A DaemonSet's agent has root's /run/spillway and /var/lib/spillway from the host."""
        self.root.path("/srv/spillwayd.toml").write_text(node_agent.configuration("h200", 1 << 30))
        self.root.path("/run/spillway").mkdir(exist_ok=True)
        driver_library = self.root.path("/var/lib/spillway/lib/libspillway.so")
        driver_library.parent.mkdir()
        driver_library.touch()
        plan = self.root.path(f"{PLANS}/plan")
        plan.touch()
        # systemd gives the whole folder to the agent's user.
        self.passes("chown", "-R", "spillway:spillway", "/var/lib/spillway")
        self.root.path("/etc/spillway/run.toml").write_text('agent = "required"\n')
        agent = self.begin(f"echo $$ > /srv/pid; exec {packing.BUILD}/bin/spillwayd --config /srv/spillwayd.toml --socket {SOCKET}")
        asked = packing.BUILD / "bin/spillway", "status", "--socket", SOCKET
        wait_for(lambda: self.root.run(*asked).returncode == 0)

        self.passes("dpkg", "--purge", *NAMES)

        self.passes(*asked)
        self.passes("sh", "-c", "kill $(cat /srv/pid)")
        agent.wait()
        for kept in (plan, driver_library):
            self.assertTrue(kept.exists(), kept)
        self.assertNotIn("spillway", self.passes("cat", "/etc/passwd", "/etc/group"))
        self.assertEqual(self.passes("find", "/", "-xdev", "(", "-nouser", "-o", "-nogroup", ")", "-print"), "")

    def test_9_purge_leaves_nothing(self):
        shutil.rmtree(self.root.path("/var/lib/spillway"))
        self.install(packing.PACKAGES)
        self.root.path("/etc/spillway/spillway.d").mkdir()
        self.root.path("/etc/spillway/spillway.d/node.toml").touch()
        self.root.path("/etc/spillway/run.toml").write_text('agent = "required"\n')
        self.passes("dpkg", "--purge", *NAMES)
        self.assertEqual(self.root.files() - self.before, set())
        self.assertNotIn("spillway", self.passes("cat", "/etc/passwd", "/etc/group") + self.passes("ls", "/run", "/var/log", "/var/lib/systemd"))
        self.assertNotIn("spillway", self.passes("systemctl", "list-unit-files") + self.passes("systemctl", "list-units", "--all"))


if __name__ == "__main__":
    sys.exit(packing.main(packing.run_tests))
