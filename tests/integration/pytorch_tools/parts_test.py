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
from pytorch_parts import environment, libraries, runs, stand_ins, start_up, trials  # noqa: E402
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


REPORT = {"wanted_peak_bytes": 100, "offloaded_bytes": 0, "restored_bytes": 0, "dropped_bytes": 0}
STATISTICS = {"violations": [], "illegal_accesses": 0, "unmapped_while_in_use": 0, "device_bytes_peak": 50, "simulated_ns": 1000000}


def run_of(output="loss 1\n", report=None, statistics=None, **more):
    return runs.Run("50 %", output, reports=[REPORT | (report or {})], statistics=[STATISTICS | (statistics or {})], **more)


class RunsTest(unittest.TestCase):
    def test_what_runs_lacked_is_counted_by_name(self):
        books = pytorch.Books()
        for functions in ({"cuFoo": 2}, {}):
            books.add(run_of(errors="spillway simulator: ncclSend is not simulated\nother\n",
                             statistics={"not_supported": functions, "kernels_without_rule": {"gather": 3}}))
        self.assertEqual(books.lacking, {"ncclSend": 2, "cuFoo": 2})
        self.assertEqual(books.without_rule, {"gather": 6})

    def test_every_broken_promise_is_a_fault(self):
        bare = run_of()
        self.assertEqual(runs.faults(run_of(budget_bytes=50, report={"offloaded_bytes": 60}), bare), [])
        for broken, word in ((run_of("loss 2\n"), "printed something else"),
                             (run_of(statistics={"violations": ["used freed memory"]}), "broke the driver's rules"),
                             (run_of(statistics={"illegal_accesses": 1}), "broke the driver's rules"),
                             (run_of(budget_bytes=40, report={"offloaded_bytes": 60}), "held 50 bytes"),
                             (run_of(budget_bytes=50), "moved nothing"),
                             (runs.Run("50 %", "loss 1\n"), "no process used the device")):
            found = runs.faults(broken, bare)
            self.assertEqual(len(found), 1, found)
            self.assertIn(word, found[0])

    def test_figures_of_several_processes_are_put_together(self):
        run = run_of()
        run.reports.append(REPORT | {"wanted_peak_bytes": 300, "offloaded_bytes": 7})
        run.statistics.append(STATISTICS | {"device_bytes_peak": 200, "not_supported": {"cuFoo": 1}})
        self.assertEqual((run.peak_bytes(), run.held_bytes(), run.moved("offloaded_bytes")), (300, 200, 7))
        self.assertEqual(run.counted("not_supported"), {"cuFoo": 1})

    def test_late_steps_are_compared_where_the_program_times_them(self):
        slow = run_of(errors="".join(f"step {i} took {ms} ms\n" for i, ms in enumerate((90, 80, 4, 2))))
        fast = run_of(errors="step 0 took 9 ms\nstep 1 took 2.0 ms\n")
        self.assertEqual(slow.step_ms(), 4)
        self.assertEqual(pytorch.slow_down(slow, fast), "2.00x a step")
        self.assertEqual(pytorch.slow_down(slow, run_of()), "1.00x")

    def test_only_pythons_race_at_exit_is_forgiven(self):
        terminate = "terminate called without an active exception"
        self.assertTrue(runs.is_race_at_exit(-6, f"warning\n{terminate}\n"))
        self.assertTrue(runs.is_race_at_exit(1, f"{terminate}\ntorch.distributed.elastic.ChildFailedError:\n"))
        self.assertFalse(runs.is_race_at_exit(1, f"{terminate}\n"))
        self.assertFalse(runs.is_race_at_exit(-6, f"{terminate}\nstep 1\n"))
        self.assertFalse(runs.is_race_at_exit(-6, "terminate called after throwing an instance of 'c10::Error'\n"))

    def runner_of(self, lines, may_differ=None):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        launcher = pathlib.Path(folder.name) / "bin" / "spillway"
        launcher.parent.mkdir()
        launcher.write_text("#!/bin/bash\n" + lines, encoding="utf-8")
        launcher.chmod(0o755)
        return runs.Runner(pathlib.Path(folder.name), "h200", ["train"], {}, may_differ)

    CRASH = "echo loss 1\necho terminate called without an active exception >&2\nkill -ABRT $$\n"

    def test_a_program_that_met_the_race_runs_again(self):
        runner = self.runner_of('if [ -e "$0.ran" ]; then echo loss 1; exit 0; fi\ntouch "$0.ran"\n' + self.CRASH)
        self.assertEqual(runner.run("50 %", 8, run_of()).output, "loss 1\n")
        with self.assertRaises(runs.RunFailed):
            self.runner_of(self.CRASH).run("50 %", 8, run_of())

    def test_a_crash_before_all_output_is_a_failure(self):
        runner = self.runner_of('if [ -e "$0.ran" ]; then echo loss 1; echo loss 2; exit 0; fi\ntouch "$0.ran"\n' + self.CRASH)
        with self.assertRaises(runs.RunFailed):
            runner.run("50 %", 8, run_of("loss 1\nloss 2\n"))

    # The launcher prints its options and what its environment says of the device.
    def test_a_small_device_is_bares_capacity_and_spillways_budget(self):
        runner = self.runner_of('printf "%s " "${SPILLWAY_SIM_CAPACITY:-whole}" "$@"\n')
        bare, small = pytorch.runs_on_small(runner, trials.SmallDevice(256, 64))
        self.assertEqual(bare.output.split()[0], str(256 << 20))
        self.assertIn("--off", bare.output.split())
        self.assertEqual(small.output.split()[0], "whole")
        self.assertIn(f"--budget {256 << 20} ", small.output)
        self.assertIn("--host 64MiB ", small.output)

    def test_only_figures_that_may_differ_are_left_out(self):
        shown = "after training: 98.0 of 256.0 MiB are free, 76 in tensors\n"
        runner = self.runner_of(f"printf '{shown}Free (according to CUDA): 18.00 MiB\n'", trials.POOLS_FIGURES)
        self.assertEqual(runner.run("bare").output, "after training: ... of 256.0 MiB are free, 76 in tensors\n"
                         "Free (according to CUDA): ...\n")

    BUSY = "import time\nwhile time.process_time() < 0.05: pass"

    def test_start_up_counts_the_processor_time_of_children_too(self):
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {self.BUSY!r}])"
        started = start_up.measure([sys.executable, "-c", code], dict(os.environ))
        self.assertGreaterEqual(started.processor_ms, 50)
        with self.assertRaises(runs.RunFailed):
            start_up.measure([sys.executable, "-c", "raise SystemExit(3)"], dict(os.environ))

    def test_start_up_may_add_the_larger_of_a_share_and_a_time(self):
        def starts(*times):
            return [start_up.Start(0, ms) for ms in times]
        self.assertEqual(start_up.added(starts(1000, 900), starts(950, 999)), (50, True))
        self.assertEqual(start_up.added(starts(900), starts(1001)), (101, False))
        self.assertEqual(start_up.added(starts(4000), starts(4150)), (150, True))

    def test_environment_is_made_again_when_its_requirements_change(self):
        with tempfile.TemporaryDirectory() as folder:
            requirements = pathlib.Path(folder) / "requirements.txt"
            requirements.write_text("torch==1\n", encoding="utf-8")
            made = environment.Environment(pathlib.Path(folder), requirements)
            self.assertFalse(made.is_made())
            mark = pathlib.Path(folder) / "made_of.txt"
            mark.write_text("torch==1\n", encoding="utf-8")
            self.assertFalse(made.is_made(), "by which Python, and where?")
            mark.write_text(f"# {sys.version.split()[0]} in {folder}\ntorch==1\n", encoding="utf-8")
            self.assertTrue(made.is_made())
            requirements.write_text("torch==2\n", encoding="utf-8")
            self.assertFalse(made.is_made())

    def test_all_trials_have_their_script(self):
        for trial in (*trials.FIRST, *trials.ALL):
            self.assertTrue((pytorch.SCRIPTS / trial.script).is_file(), trial.script)
            self.assertLessEqual(set(trial.shares), set(trials.ALLOCATORS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
