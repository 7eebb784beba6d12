#!/usr/bin/env python3
"""What tools/exports.py says of a plugin that needs a newer C library, and of files that it does not know.

    usage: exports_test.py C_COMPILER
"""
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMPILER = sys.argv[1] if len(sys.argv) > 1 else "cc"
sys.path += [str(ROOT / "tools"), str(ROOT / "tests/support")]
import exports  # noqa: E402
import skips  # noqa: E402


class ExportsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, file):
        return subprocess.run([sys.executable, ROOT / "tools/exports.py", "--glibc", file], capture_output=True, text=True)

    def built(self, source):
        plugin = self.folder / "spillway_spank.so"
        subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c", "-", "-o", plugin], input=source, text=True, check=True)
        return plugin

    def test_a_plugin_with_old_symbols_passes(self):
        ran = self.check(self.built("int getpid(void); int f(void) { return getpid(); }"))
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    @unittest.skipUnless(platform.libc_ver()[1] == exports.CHECKED_GLIBC, "another C library than the checked one")
    def test_a_symbol_that_older_systems_lack_is_named(self):
        ran = self.check(self.built("unsigned arc4random(void); unsigned f(void) { return arc4random(); }"))
        self.assertEqual(ran.returncode, 1)
        self.assertIn("spillway_spank.so: arc4random needs glibc 2.36, newer than 2.28", ran.stderr)

    def test_an_unknown_file_is_refused_in_a_line(self):
        ran = self.check("/bin/true")
        self.assertEqual(ran.returncode, 2)
        self.assertEqual(ran.stderr, "/bin/true: no limit is known for this file, only for libspillway.so, spillway, spillway_spank.so\n")

    def test_so_is_one_that_is_not_there(self):
        ran = self.check(self.folder / "spillway")
        self.assertEqual((ran.returncode, ran.stderr), (2, f"{self.folder}/spillway: there is no such file\n"))


if __name__ == "__main__":
    skips.main()
