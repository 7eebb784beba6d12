#!/usr/bin/env python3
"""The Debian packages and the tarball: lint, and their life in a fresh root, with the agent and a training job on the simulated GPU.

    usage: packages_test.py --build BUILD [--why-not] [unittest arguments]

--why-not: only says what stands against these tests here.
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import fresh_root
from fresh_root import FreshRoot, package_field

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/support"))
import node_agent  # noqa: E402
from waiting import wait_for  # noqa: E402

BUILD = None
PACKAGES = None  # the folder that tools/package.sh filled
SKIPPED = 77  # the exit code, for ctest
INSIDE = "--in-own-namespaces"
NAMES = "spillway", "spillway-agent", "spillway-kubernetes", "spillway-slurm"
PRODUCTS = "bin/spillwayd", "bin/spillway-plan", "bin/spillway-kubernetes", "lib/spillway_spank.so", "workloads/gpt"
NEXT_VERSION = "99.0.0"
MIB = 1 << 20
BUDGET = 64 * MIB  # the trainer wants twice as much
PATIENCE_S = 240  # its lines come 4 KiB at a time
TRAINER = "gpt", "--layers=2", "--width=256"


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


def pack_next_version(folder):
    """The packages with a higher version."""
    folder.mkdir()
    for path in packed(PACKAGES):
        tree = folder / "tree"
        subprocess.run(["dpkg-deb", "-R", path, tree], check=True)
        control = tree / "DEBIAN/control"
        control.write_text(control.read_text().replace(package_field(path, "Version"), NEXT_VERSION))
        subprocess.run(["dpkg-deb", "-Znone", "-b", tree, folder / f"{package_field(path, 'Package')}_{NEXT_VERSION}_amd64.deb"],
                       check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(tree)


def packed(folder, names=NAMES):
    return [next(path for path in folder.glob("*.deb") if path.name.startswith(f"{name}_")) for name in names]


def simulated():
    return {"LD_LIBRARY_PATH": f"{BUILD}/simulator:{fresh_root.LIBRARIES}", "SPILLWAY_SIM_PROFILE": "h200", "SPILLWAY_SIM_COMPUTE": "tags"}


def trainer(*more):
    return [str(BUILD / "workloads" / TRAINER[0]), *TRAINER[1:], *more]


def bare(steps):
    return subprocess.run(trainer(f"--steps={steps}"), env={**os.environ, **simulated()}, capture_output=True, text=True, check=True).stdout


def steps_in(output):
    return len(re.findall("(?m)^step ", output))


def listed(path):
    """Paths in a package."""
    rows = subprocess.run(["dpkg-deb", "-c", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {row.split()[5].lstrip(".") for row in rows}


class PackagesTest(unittest.TestCase):
    def test_lintian_finds_nothing(self):
        checked = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", *packed(PACKAGES)],
                                 capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout), (0, ""), checked.stderr)

    def test_version_is_the_changelogs(self):
        released = re.search(r"(?m)^## (\d+\.\d+\.\d+) - ", (ROOT / "CHANGELOG.md").read_text())[1]
        for program in ("spillway", "spillwayd", "spillway-kubernetes"):
            said = subprocess.run([BUILD / "bin" / program, "--version"], capture_output=True, text=True).stdout
            self.assertEqual(said, f"{program} {released}\n")
        for path in packed(PACKAGES):
            self.assertRegex(package_field(path, "Version"), rf"^{re.escape(released)}(\+\d{{8}}\.\d{{6}})?$")

    def test_packing_again_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory(prefix="spillway-packages.") as folder:
            pack(folder)
            again = sorted(pathlib.Path(folder).glob("spillway*"))
            self.assertGreater(len(again), len(NAMES))
            for path in again:
                digests = [hashlib.sha256(one.read_bytes()).hexdigest() for one in (path, PACKAGES / path.name)]
                self.assertEqual(digests[0], digests[1], path.name)

    def test_no_package_has_a_library_where_ldconfig_looks(self):
        for path in packed(PACKAGES):
            self.assertEqual([name for name in listed(path) if re.match(r"/usr/lib(/x86_64-linux-gnu)?/[^/]+\.so", name)], [])


class TarballTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spillway-tarball.")
        self.addCleanup(folder.cleanup)
        archive, = PACKAGES.glob("*.tar.gz")
        subprocess.run(["tar", "-xf", archive, "-C", folder.name], check=True)
        self.unpacked, = pathlib.Path(folder.name).iterdir()

    def test_it_has_the_two_files_and_the_licence(self):
        files = sorted(str(path.relative_to(self.unpacked)) for path in self.unpacked.rglob("*") if path.is_file())
        self.assertEqual(files, ["LICENSE", "bin/spillway", "lib/spillway/libspillway.so"])

    def test_unpacked_anywhere_it_trains_within_a_budget(self):
        report = self.unpacked / "report"
        ran = subprocess.run([self.unpacked / "bin/spillway", "run", "--quiet", f"--budget={BUDGET}", f"--report={report}", "--",
                              *trainer("--steps=8")], env={**os.environ, **simulated()}, capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout, bare(8))
        self.assertIn("to_host_bytes", report.read_text())


class NodeTest(unittest.TestCase):
    """In the order of a package's life, in one root."""

    @classmethod
    def setUpClass(cls):
        cls.outside = pathlib.Path(tempfile.mkdtemp(prefix="spillway-root."))
        cls.addClassCleanup(shutil.rmtree, cls.outside, ignore_errors=True)
        archive = fresh_root.base_archive(PACKAGES, packed(PACKAGES))
        if not archive.exists():
            raise unittest.SkipTest("there is no fresh root")
        (cls.outside / "root").mkdir()
        cls.root = FreshRoot(cls.outside / "root", archive, BUILD)
        cls.addClassCleanup(cls.root.shut_down)
        if not cls.root.boot():
            raise unittest.SkipTest("systemd does not run here: " + (cls.outside / "boot.log").read_text()[-300:])
        cls.before = cls.root.files()

    def passes(self, *words, **options):
        ran = self.root.run(*words, **options)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr + self.root.run("journalctl", "-u", "spillwayd").stdout)
        return ran.stdout + ran.stderr

    def state(self, unit):
        return self.root.run("systemctl", "is-active", unit).stdout.strip(), self.root.run("systemctl", "is-enabled", unit).stdout.strip()

    def agent_pid(self):
        return int(self.passes("systemctl", "show", "-P", "MainPID", "spillwayd"))

    def install(self, folder):
        return self.passes("apt-get", "install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confdef",
                           *self.root.copy_in(packed(folder)))

    def test_1_install(self):
        self.install(PACKAGES)
        self.assertIn("Spillway node agent", self.passes("getent", "passwd", "spillway"))
        self.passes("ldconfig")
        self.assertNotIn("libcuda", self.passes("ldconfig", "-p"))

    def test_2_the_agent_runs_without_a_gpu(self):
        self.assertEqual(self.state("spillwayd.service"), ("active", "enabled"))
        self.assertEqual(self.state("spillwayd.socket"), ("active", "enabled"))
        self.assertEqual(self.state("spillwayd-jobs.socket"), ("inactive", "disabled"))
        self.passes("spillway", "status")
        self.passes("systemctl", "reload", "spillwayd")

    def test_3_an_upgrade_while_a_job_trains(self):
        self.configure()
        job, output = self.begin_job()
        agent, kept = self.agent_pid(), self.kept_over_restarts()
        pack_next_version(self.outside / "next")

        self.install(self.outside / "next")
        trained = steps_in(output.read_text())
        wait_for(lambda: steps_in(output.read_text()) > trained + 8, patience_s=PATIENCE_S)
        maps = self.root.run("sh", "-c", "cat /proc/[0-9]*/maps").stdout
        (self.root.path("/srv/end")).touch()

        self.assertEqual(job.wait(60), 0, (self.outside / "errors").read_text())
        self.assertEqual(output.read_text(), bare(steps_in(output.read_text())))
        self.assertRegex(maps, r"/usr/lib/spillway/libspillway\.so\S* \(deleted\)")
        self.assertNotEqual(self.agent_pid(), agent)
        self.assertEqual(self.kept_over_restarts(), kept)
        self.assertEqual(self.state("spillwayd.service"), ("active", "enabled"))
        self.assertIn("A change of the operator's", self.root.path("/etc/spillway/spillway.toml").read_text())
        self.assertEqual(self.passes("dpkg-query", "-W", "-f", "${Version}", "spillway-agent"), NEXT_VERSION)

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
        output = self.outside / "output"
        words = self.root.command("spillway", "run", "--quiet", "--agent=required", f"--budget={BUDGET}", "--", *trainer(
            "--steps=1000000", "--until=/srv/end"), **simulated(), XDG_STATE_HOME="/srv/state")
        with open(output, "wb") as out, open(self.outside / "errors", "wb") as errors:
            job = subprocess.Popen(words, stdout=out, stderr=errors)
        self.addCleanup(job.kill)
        wait_for(lambda: steps_in(output.read_text()) > 8 or job.poll() is not None, patience_s=PATIENCE_S)
        self.assertIsNone(job.poll(), (self.outside / "errors").read_text())
        return job, output

    def test_4_installing_again_changes_nothing(self):
        before = self.root.files()
        self.passes("dpkg", "-i", *self.root.copy_in(packed(self.outside / "next")))
        self.assertEqual(self.root.files(), before)
        self.assertEqual(self.state("spillwayd.service"), ("active", "enabled"))

    def test_5_remove_keeps_configuration_and_state(self):
        self.passes("dpkg", "--remove", *NAMES)
        for kept in ("/etc/spillway/spillway.toml", "/etc/spillway/spillway.d/node.toml", "/var/lib/spillway/plans"):
            self.passes("test", "-e", kept)
        self.assertFalse(self.root.path("/usr/bin/spillwayd").exists())
        self.assertFalse(self.root.path("/usr/lib/spillway").exists())
        self.assertNotIn("spillwayd", self.root.run("sh", "-c", "cat /proc/[0-9]*/comm").stdout)

    def test_6_purge_leaves_nothing(self):
        self.root.path("/etc/spillway/run.toml").write_text('agent = "required"\n')
        self.passes("dpkg", "--purge", *NAMES)
        self.assertEqual(self.root.files() - self.before, set())
        self.assertNotIn("spillway", self.passes("cat", "/etc/passwd", "/etc/group") + self.passes("ls", "/run", "/var/log", "/var/lib/systemd"))
        self.assertNotIn("spillway", self.passes("systemctl", "list-unit-files") + self.passes("systemctl", "list-units", "--all"))


def main():
    global BUILD, PACKAGES
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--why-not", action="store_true")
    parser.add_argument(INSIDE, action="store_true", dest="inside")
    options, rest = parser.parse_known_args()
    BUILD = options.build.resolve()
    PACKAGES = BUILD / "packages"
    reason = why_not() if not options.inside else ""
    if reason:
        print(f"packages' tests: {reason}")
    if reason or options.why_not:
        return SKIPPED if not options.why_not else 0
    if not options.inside:
        pack(PACKAGES)
        print(fresh_root.make_base(PACKAGES, packed(PACKAGES)), flush=True)
        os.execvp(fresh_root.OWN_NAMESPACES[0], [*fresh_root.OWN_NAMESPACES, sys.executable, *sys.argv, INSIDE])
    fresh_root.raise_loopback()
    unittest.main(argv=[sys.argv[0], *rest], failfast=True)  # each test goes on where the one before it ended


if __name__ == "__main__":
    sys.exit(main())
