#!/usr/bin/env python3
"""What tools/pytorch.py does around PyTorch, on libraries that a C compiler makes here."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
sys.dont_write_bytecode = True

import pytorch  # noqa: E402  (path set above)
from main_job import Run, RunFailed  # noqa: E402
from pytorch_parts import environment, libraries, stand_ins  # noqa: E402
from pytorch_parts.libraries import Symbol  # noqa: E402

COMPILER = os.environ.get("CC") or "cc"


class LibrariesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pytorch-tools-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def library(self, soname, source, *options):
        code = self.folder / "code.c"
        code.write_text(source, encoding="utf-8")
        path = self.folder / soname
        subprocess.run([COMPILER, "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", path, code, *options], check=True)
        return path

    # Given libuser, linked with libfoo (with versions) and libbar_host (without), of which libfoo is then lost
    def user(self):
        versions = self.folder / "versions"
        versions.write_text("FOO_3 { global: *; };\n", encoding="utf-8")
        foo = self.library("libfoo.so.3", "int fooOne(void) { return 1; } int fooTwo(void) { return 2; }", f"-Wl,--version-script={versions}")
        bar = self.library("libbar_host.so.1", "int barCount(void) { return 3; }")
        user = self.library("libuser.so", "int fooOne(void); int barCount(void); int own(void);\n"
                            "__attribute__((weak)) int fooTwo(void);\n"
                            "int use(void) { return fooOne() + barCount() + own() + (fooTwo ? fooTwo() : 0); }", foo, bar)
        foo.unlink()
        bar.unlink()
        return user

    def test_imports_and_exports_are_read_with_their_versions(self):
        read = libraries.read(self.user())
        self.assertEqual(read.needed[:2], ["libfoo.so.3", "libbar_host.so.1"])
        self.assertLessEqual({Symbol("fooOne", "FOO_3"), Symbol("barCount", ""), Symbol("own", "")}, read.imports)
        self.assertNotIn("fooTwo", {symbol.name for symbol in read.imports})
        self.assertIn(Symbol("use", ""), read.exports)

    def test_lacking_libraries_have_the_functions_that_are_imported(self):
        user = self.user()
        own = self.library("libown.so", "int own(void) { return 4; }")
        linked = {path: libraries.read(path) for path in (user, own)}
        self.assertEqual(stand_ins.lacking(linked, {"libc.so.6"}),
                         {"libbar_host.so.1": [Symbol("barCount", "")], "libfoo.so.3": [Symbol("fooOne", "FOO_3")]})
        self.assertEqual(list(stand_ins.lacking(linked, {"libc.so.6", "libfoo.so.3"})), ["libbar_host.so.1"])

    def test_stand_ins_load_answer_errors_and_name_each_function_once(self):
        user = self.user()
        made = stand_ins.make_all([user], {"libc.so.6"}, self.folder / "made")
        self.assertEqual(sorted(made), ["libbar_host.so.1", "libfoo.so.3"])
        self.library("libown.so", "int own(void) { return 4; }")
        call = "import ctypes; ctypes.CDLL('./libown.so', ctypes.RTLD_GLOBAL); use = ctypes.CDLL('./libuser.so').use; print(use(), use())"
        done = subprocess.run([sys.executable, "-c", call], cwd=self.folder, capture_output=True, text=True, check=True,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(self.folder / "made")))
        self.assertEqual(done.stdout.split(), ["6", "6"])
        self.assertEqual(sorted(pytorch.LACKING.findall(done.stderr)), ["barCount", "fooOne"])


class RunsTest(unittest.TestCase):
    def test_what_runs_lacked_is_counted_by_name(self):
        books = pytorch.Books()
        books.add(Run("bare", "", errors="spillway simulator: ncclSend is not simulated\nother\n",
                      statistics={"not_supported": {"cuFoo": 2}, "kernels_without_rule": {"gather": 3}}))
        books.add(Run("50 %", "50%peak", errors="spillway simulator: ncclSend is not simulated\n",
                      statistics={"not_supported": {}, "kernels_without_rule": {"gather": 3}}))
        self.assertEqual(books.lacking, {"ncclSend": 2, "cuFoo": 2})
        self.assertEqual(books.without_rule, {"gather": 6})

    def test_only_pythons_race_at_exit_is_forgiven(self):
        terminate = "terminate called without an active exception"
        self.assertTrue(pytorch.is_race_at_exit(RunFailed(f"exit code -6\nstep 0 loss 1.5\n{terminate}\n")))
        self.assertFalse(pytorch.is_race_at_exit(RunFailed(f"exit code 1\n{terminate}\n")))
        self.assertFalse(pytorch.is_race_at_exit(RunFailed(f"exit code -6\n{terminate}\nstep 1\n")))
        self.assertFalse(pytorch.is_race_at_exit(RunFailed("exit code -6\nterminate called after throwing an instance of 'c10::Error'\n")))

    def test_environment_is_made_again_when_its_requirements_change(self):
        with tempfile.TemporaryDirectory() as folder:
            requirements = pathlib.Path(folder) / "requirements.txt"
            requirements.write_text("torch==1\n", encoding="utf-8")
            made = environment.Environment(pathlib.Path(folder), requirements)
            self.assertFalse(made.is_made())
            (pathlib.Path(folder) / "made_of.txt").write_text("torch==1\n", encoding="utf-8")
            self.assertTrue(made.is_made())
            requirements.write_text("torch==2\n", encoding="utf-8")
            self.assertFalse(made.is_made())


if __name__ == "__main__":
    unittest.main(verbosity=2)
