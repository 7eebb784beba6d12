#!/usr/bin/env python3
"""kernel_rules counts a library's kernels that have a rule, wherever its modules lie in the file.

    Usage: kernel_rules_test.py KERNEL_RULES [unittest's options]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

MODULES = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "modules"
KERNEL_RULES = ""
SCALE = "void fixture::scale<float>(float*, float const*, int, float)"


class KernelRulesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.rules, self.library = (pathlib.Path(self.folder.name) / name for name in ("rules", "library"))
        # Two modules with the same kernels, between other bytes.
        modules = [(MODULES / name).read_bytes() for name in ("plain.fatbin", "zstd.fatbin")]
        self.library.write_bytes(b"\177ELF" + b"x" * 60 + modules[0] + b"y" * (-len(modules[0]) % 8 + 24) + modules[1] + b"z" * 5)

    def run_with(self, rules, *words):
        self.rules.write_text(rules, encoding="utf-8")
        return subprocess.run([KERNEL_RULES, self.rules, self.library, *words], capture_output=True, text=True, check=False)

    def test_counts_each_kernel_once(self):
        total = self.run_with("").stdout
        self.assertRegex(total, r"^2 modules, \d+ kernels, 0 with a rule\n$")
        self.assertRegex(self.run_with('"*" write(p0, 4)').stdout, r"^2 modules, (\d+) kernels, \1 with a rule\n$")
        self.assertEqual(self.run_with('"*scale<float>*" write(p0, 4)').stdout, total.replace(" 0 with", " 1 with"))

    def test_lists_the_others_with_the_sizes_of_their_parameters(self):
        self.assertIn(f"8,8,4,4\t{SCALE}\n", self.run_with('"add*" write(p0, 4)', "without").stdout)
        self.assertNotIn(SCALE, self.run_with('"*scale<float>*" write(p0, 4)', "without").stdout)

    def test_names_what_is_wrong(self):
        broken = self.run_with("scale writes(p0, 4)")
        self.assertEqual(broken.returncode, 1)
        self.assertIn(f"{self.rules}:1", broken.stderr)
        self.library.unlink()
        self.assertIn("cannot read", self.run_with("").stderr)
        self.assertEqual(self.run_with("", "without", "more").returncode, 2)


if __name__ == "__main__":
    KERNEL_RULES = sys.argv.pop(1)
    unittest.main()
