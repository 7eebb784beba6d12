#!/usr/bin/env python3
"""What is in the Debian packages and the tarball, and how tools/package.sh makes them.

    usage: files_test.py --build BUILD [--packed] [unittest arguments]

--packed: BUILD/packages has what is to be tested.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import packing
from fresh_root import package_field
from packing import BUDGET, NAMES, ROOT, bare, packed, trainer


def listed(path):
    """Paths in a package."""
    rows = subprocess.run(["dpkg-deb", "-c", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {row.split()[5].lstrip(".") for row in rows}


class PackagesTest(unittest.TestCase):
    def test_lintian_finds_nothing(self):
        checked = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", *packed(packing.PACKAGES)],
                                 capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout), (0, ""), checked.stderr)

    def test_version_is_the_changelogs(self):
        released = re.search(r"(?m)^## (\d+\.\d+\.\d+) - ", (ROOT / "CHANGELOG.md").read_text())[1]
        for program in ("spillway", "spillwayd", "spillway-kubernetes"):
            said = subprocess.run([packing.BUILD / "bin" / program, "--version"], capture_output=True, text=True).stdout
            self.assertEqual(said, f"{program} {released}\n")
        for path in packed(packing.PACKAGES):
            self.assertRegex(package_field(path, "Version"), rf"^{re.escape(released)}(\+\d{{8}}\.\d{{6}})?(\+dirty)?$")

    def test_packing_again_gives_the_same_bytes_and_leaves_the_users_files(self):
        with tempfile.TemporaryDirectory(prefix="spillway-packages.") as folder:
            mine = pathlib.Path(folder) / "work/mine"
            mine.parent.mkdir()
            mine.write_text("the user's")
            packing.pack(folder)
            again = sorted(pathlib.Path(folder).glob("spillway*"))
            self.assertEqual([path.name for path in pathlib.Path(folder).glob("work*")], ["work"])
            self.assertEqual(mine.read_text(), "the user's")
            self.assertGreater(len(again), len(NAMES))
            for path in again:
                digests = [hashlib.sha256(one.read_bytes()).hexdigest() for one in (path, packing.PACKAGES / path.name)]
                self.assertEqual(digests[0], digests[1], path.name)

    def test_no_package_has_a_library_where_ldconfig_looks(self):
        for path in packed(packing.PACKAGES):
            self.assertEqual([name for name in listed(path) if re.match(r"/usr/lib(/x86_64-linux-gnu)?/[^/]+\.so", name)], [])


class TarballTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spillway-tarball.")
        self.addCleanup(folder.cleanup)
        archive, = packing.PACKAGES.glob("*.tar.gz")
        subprocess.run(["tar", "-xf", archive, "-C", folder.name], check=True)
        self.unpacked, = pathlib.Path(folder.name).iterdir()

    def test_it_has_the_two_files_and_the_licence(self):
        files = sorted(str(path.relative_to(self.unpacked)) for path in self.unpacked.rglob("*") if path.is_file())
        self.assertEqual(files, ["LICENSE", "bin/spillway", "lib/spillway/libspillway.so"])

    def test_unpacked_anywhere_it_trains_within_a_budget(self):
        report = self.unpacked / "report"
        ran = subprocess.run([self.unpacked / "bin/spillway", "run", "--quiet", f"--budget={BUDGET}", f"--report={report}", "--",
                              *trainer("--steps=8")], env=packing.simulating(), capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertEqual(ran.stdout, bare(8))
        self.assertIn("to_host_bytes", report.read_text())


class VersionTest(unittest.TestCase):
    """In a small tree of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spillway-version.")
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        (self.tree / "tools").mkdir()
        for name in ("package.sh", "prepare.sh"):
            shutil.copy(ROOT / "tools" / name, self.tree / "tools")
        self.write_changelog("")
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-C", self.tree, "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", "m", "--date=2026-11-28T10:38:00Z")

    def write_changelog(self, unreleased):
        (self.tree / "CHANGELOG.md").write_text(f"# Changelog\n\n## Unreleased\n\n{unreleased}\n## 0.2.0 - 2026-11-23\n\n- One.\n\n## 0.1.0 - 2026-10-01\n")

    def version(self):
        ran = subprocess.run([self.tree / "tools/package.sh", "--version"], capture_output=True, text=True, check=True)
        return ran.stdout.strip()

    def test_a_release_has_its_number(self):
        self.assertEqual(self.version(), "0.2.0")

    def test_what_came_after_a_release_has_the_commits_time(self):
        self.write_changelog("- Two.\n")
        self.commit()
        self.assertRegex(self.version(), r"^0\.2\.0\+\d{8}\.\d{6}$")

    def test_a_changed_file_makes_it_dirty(self):
        (self.tree / "tools/prepare.sh").open("a").write("# Changed.\n")
        self.assertEqual(self.version(), "0.2.0+dirty")

    def test_a_new_file_makes_it_dirty(self):
        (self.tree / "new.cpp").touch()
        self.assertEqual(self.version(), "0.2.0+dirty")


if __name__ == "__main__":
    sys.exit(packing.main(packing.run_tests))
