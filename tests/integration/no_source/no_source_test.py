#!/usr/bin/env python3
"""Programs whose kernels the simulator knows from their modules alone: the same hashes bare and
below their peak, other hashes as soon as one ordering rule is left out.

    Usage: no_source_test.py BUILD_FOLDER NVCC-OR-EMPTY [unittest's options]
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))

import simulated_gpu  # noqa: E402  (path set above)
import skips  # noqa: E402

BUILD = pathlib.Path()
NVCC = ""
MODULES = HERE.parent.parent / "fixtures" / "modules"
QUIET_S = 120
SCALE = "void fixture::scale<float>(float*, float const*, int, float)"
ADD = "add(float*, float const*, float const*, int)"


class NoSourceTest(unittest.TestCase):
    def run_program(self, command, budget_bytes=None, library="spillway", **settings):
        path = BUILD / "lib" / f"lib{library}.so" if budget_bytes else None
        env = simulated_gpu.environment(BUILD, path, budget_bytes)
        env["SPILLWAY_SIM_COMPUTE"] = "tags"
        env.update({f"SPILLWAY_{name}": str(value) for name, value in settings.items()})
        return simulated_gpu.run(command, env, QUIET_S)

    def run_well(self, command, budget_bytes=None, **settings):
        run = self.run_program(command, budget_bytes, **settings)
        self.assertEqual(run.exit_code, 0, run.errors)
        return run

    def program(self, module="zstd.fatbin", buffers=20, mebibytes=6, unused=1):
        return [BUILD / "tests-bin" / "no_source_program", MODULES / module, str(buffers), str(mebibytes), str(unused)]

    def compile(self, folder, *options):
        if not NVCC:
            self.skipTest("there is no nvcc on this machine")
        program = pathlib.Path(folder) / "program"
        subprocess.run([NVCC, *options, HERE / "runtime_program.cu", "-o", program], check=True)
        return program

    def assert_same_at_any_budget(self, command, **settings):
        bare = self.run_well(command, **settings)
        peak_bytes = bare.statistics["device_bytes_peak"]
        for percent in (100, 50, 30):
            for park in ("auto", "host"):
                with self.subTest(command=command, percent=percent, park=park):
                    budget_bytes = peak_bytes * percent // 100
                    run = self.run_well(command, budget_bytes, PARK=park, **settings)
                    self.assertEqual(run.output, bare.output)
                    self.assertEqual(run.statistics["violations"], [])
                    self.assertLessEqual(run.statistics["device_bytes_peak"], budget_bytes)
                    if percent < 100:
                        self.assertGreater(run.statistics["h2d_bytes"], bare.statistics["h2d_bytes"])
        return bare

    def test_hashes_are_the_same_at_any_budget(self):
        bare = self.assert_same_at_any_budget(self.program())
        self.assertEqual(len(set(bare.output.splitlines())), 21, bare.output)

    def test_every_form_of_module_serves(self):
        outputs = {self.run_well(self.program(module, buffers=8)).output
                   for module in ("sm_80.cubin", "sm_90.cubin", "sm_100.cubin", "plain.fatbin", "zstd.fatbin",
                                  "lz4.fatbin", "ptx_only.fatbin")}
        self.assertEqual(len(outputs), 1)

    def test_unused_bytes_of_structs_do_not_matter(self):
        first, second = (self.run_well(self.program(unused=seed)) for seed in (1, 2))
        self.assertEqual(first.output, second.output)

    def test_kernels_without_a_rule_are_listed(self):
        listed = self.run_well(self.program(buffers=8)).statistics["kernels_without_rule"]
        self.assertEqual(sorted(listed), ["take_pair", SCALE])
        self.assertEqual(listed["take_pair"], 7)

    def test_rules_say_what_kernels_do(self):
        with tempfile.TemporaryDirectory(prefix="no-source-test-") as folder:
            rules = pathlib.Path(folder) / "rules"
            rules.write_text('"void fixture::scale<*>(*)"  write(p0, 4*p2) read(p1, all) flops(p2)\n'
                             "take_pair  update(p0[2], all)\n")
            bare = self.assert_same_at_any_budget(self.program(), SIM_RULES=rules)
            self.assertEqual(bare.statistics["kernels_without_rule"], {})
            assumed = self.run_well(self.program())
            self.assertNotEqual(bare.output, assumed.output)
            # What is only read is not moved twice.
            self.assertLess(bare.statistics["simulated_ns"], assumed.statistics["simulated_ns"])
            rules.write_text("take_pair  takes(p0)\n")
            run = self.run_program(self.program(), SIM_RULES=rules)
            self.assertNotEqual(run.exit_code, 0)
            self.assertIn(f"{rules}:1: 'takes' is none of", run.errors)

    def test_leaving_out_an_ordering_rule_changes_the_hashes(self):
        bare = self.run_well(self.program())
        budget_bytes = bare.statistics["device_bytes_peak"] * 30 // 100
        under = {"library": "spillway_breakable", "PARK": "off", "LEARN": "off"}
        if not (BUILD / "lib" / "libspillway_breakable.so").exists():
            self.skipTest("the library that leaves rules out is not built")
        self.assertEqual(self.run_well(self.program(), budget_bytes, **under).output, bare.output)
        for rule in ("kTouchOutdatesHostCopy,kHostCopiesAreVerified", "kUseFollowsRestore"):
            with self.subTest(rule=rule):
                run = self.run_program(self.program(), budget_bytes, BREAK_RULE=rule, **under)
                self.assertNotEqual(run.output, bare.output)

    def test_without_tags_the_kernel_is_missing(self):
        run = self.run_program(self.program(), SIM_COMPUTE="full")
        self.assertNotEqual(run.exit_code, 0)
        self.assertIn("set SPILLWAY_SIM_COMPUTE=tags", run.errors)

    def test_broken_modules_are_refused(self):
        with tempfile.TemporaryDirectory(prefix="no-source-test-") as folder:
            broken = pathlib.Path(folder) / "broken"
            whole = (MODULES / "zstd.fatbin").read_bytes()
            for content in (b"this is no module\0", whole[:16] + bytes(len(whole) - 16), whole[:80] + b"\xff" * 5000):
                broken.write_bytes(content)
                run = self.run_program(self.program(broken))
                self.assertEqual((run.exit_code, run.output), (1, ""), run.errors)
                self.assertIn("CUDA_ERROR_INVALID_IMAGE", run.errors)

    def test_program_of_the_runtime_needs_no_plug_in(self):
        with tempfile.TemporaryDirectory(prefix="no-source-test-") as folder:
            program = self.compile(folder, "-cudart", "shared", "-arch=sm_90")
            bare = self.assert_same_at_any_budget([program])
            self.assertEqual(bare.errors, "")
            # Less than a buffer, so that copies read memory that is parked.
            self.assertEqual(self.run_well([program], 8 << 20).output, bare.output)
            listed = bare.statistics["kernels_without_rule"]
            self.assertEqual((listed.pop(ADD), list(listed.values())), (28, [10]), listed)

    def test_static_runtime_is_named(self):
        with tempfile.TemporaryDirectory(prefix="no-source-test-") as folder:
            program = self.compile(folder, "-cudart", "static", "-arch=sm_90")
            run = self.run_program([program])
            self.assertNotEqual(run.exit_code, 0)
            self.assertIn("-cudart shared", run.errors)


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    NVCC = sys.argv.pop(1)
    skips.main(verbosity=2)
