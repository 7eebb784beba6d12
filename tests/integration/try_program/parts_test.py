#!/usr/bin/env python3
"""The parts of tools/try_program on literals: masks, comparisons, compilers' messages, programs of a folder."""
import pathlib
import re
import sys
import tempfile
import time
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
from try_program_parts import building, comparing, lacks, programs, running, trial  # noqa: E402

PID = 4711


def run(output, errors="", exit_code=0, files=None, budget_bytes=None):
    return running.Run("run", budget_bytes, output=output.encode(), errors=errors, exit_code=exit_code, files=files or {}, pid=PID)


def differences(first, second, third, **other):
    return comparing.Baseline(run(first), run(second)).differences(run(third, **other))


class MaskTest(unittest.TestCase):
    def expect_masked(self, one, other):
        self.assertEqual(comparing.mask(one, PID), comparing.mask(other, PID))

    def test_masks_times_with_their_units(self):
        self.expect_masked("kernel: 0.0023 ms", "kernel: 12.7 ms")
        self.expect_masked("Processing time: 0.104000 (ms)", "Processing time: 11.1 (ms)")
        self.expect_masked("Elapsed 1.5", "Elapsed 2.25")

    def test_masks_rates(self):
        self.expect_masked("Bandwidth: 2400.5 GB/s", "Bandwidth: 12.1 GB/s")
        self.expect_masked("Performance= 41.2 GFlop/s, Time= 3 msec", "Performance= 7.0 GFlop/s, Time= 20 msec")
        self.expect_masked("Throughput = 0.34 GElements/s", "Throughput = 123.4 GElements/s")
        self.expect_masked("12.1 Mpixels/s", "7 Mpixels/s")
        self.expect_masked("step 3/4 (2 ms, 20 tok/s)", "step 3/4 (2 ms, 23 tok/s)")
        self.expect_masked("Fetches (Mpix/s) of pitch 2.38e+05; of array 2.4e+05", "Fetches (Mpix/s) of pitch 5.43e+03; of array 1.0")

    def test_masks_addresses_process_ids_and_times_of_day(self):
        self.expect_masked("at 0x7fff00, pid 17", "at 0x11, pid 23")
        self.expect_masked(f"I am {PID}", "I am <id>")
        self.expect_masked("began 12:00:01", "began 23:59:59")

    def test_masks_polls(self):
        self.expect_masked("the host made 67 iterations while it waited", "the host made 65 iterations while it waited")

    def test_keeps_results(self):
        for one, other in (("error 0.001", "error 0.002"), ("sum 17", "sum 18"), ("L1-norm 1.5e-07", "L1-norm 2.5e-07"),
                           ("4096 bytes", "8192 bytes"), ("16 streams", "17 streams"), ("3 samples", "4 samples"),
                           ("Time step 3", "Time step 4"), ("x = 5 m", "x = 6 m")):
            self.assertNotEqual(comparing.mask(one, PID), comparing.mask(other, PID))

    def test_keeps_whole_numbers_beside_times(self):
        self.assertNotEqual(comparing.mask("40 rows took 0.1 ms", PID), comparing.mask("41 rows took 0.1 ms", PID))

    def test_keeps_losses_beside_times(self):
        line = "step 3/4: train loss 10.941 (2032.4 ms, 62 tok/s) norm {} scale 0.1"
        self.assertNotEqual(comparing.mask(line.format(1.25), PID), comparing.mask(line.format(1.5), PID))
        self.assertIn("train loss 10.941 (<time>, <rate>) norm 1.25 scale <number>", comparing.mask(line.format(1.25), PID))

    def test_masks_what_the_user_names(self):
        own = [re.compile("seed [0-9]+")]
        self.assertEqual(comparing.mask("seed 4", PID, own), comparing.mask("seed 5", PID, own))


class BaselineTest(unittest.TestCase):
    def test_finds_a_changed_line(self):
        self.assertEqual(differences("a 1\nb 2\n", "a 1\nb 2\n", "a 1\nb 3\n"), ["output: line 2: 'b 2' became 'b 3'"])

    def test_finds_missing_and_added_lines(self):
        self.assertEqual(len(differences("a\nb\n", "a\nb\n", "a\n")), 1)
        self.assertEqual(len(differences("a\n", "a\n", "a\nb\n")), 1)

    def test_ignores_what_differs_between_bare_runs_alone(self):
        self.assertEqual(differences("seed 1\nsum 2\n", "seed 7\nsum 2\n", "seed 5\nsum 2\n"), [])
        self.assertEqual(len(differences("seed 1\nsum 2\n", "seed 7\nsum 2\n", "seed 5\nsum 3\n")), 1)

    def test_names_lines_that_say_how_large_the_device_is(self):
        bare = run("memory 144 GiB (154618822656 bytes)\nsum 2\n")
        baseline = comparing.Baseline(bare, bare)
        under = run("memory 8192 GiB (8589934592 bytes)\nsum 2\n", budget_bytes=8 << 30)
        self.assertEqual(baseline.differences(under), [])
        self.assertEqual(baseline.notes_on(under), ["output: line 1: the device's memory, which is the budget"])
        for text in ("memory 8192 GiB (8589934593 bytes)\nsum 2\n", "memory 8192 GiB (8589934592 bytes)\nsum 3\n"):
            self.assertEqual(len(baseline.differences(run(text, budget_bytes=8 << 30))), 1)
        self.assertEqual(len(baseline.differences(run("memory 8192 GiB (8589934592 bytes)\nsum 2\n"))), 1)

    def test_ignores_order_where_bare_runs_differ_in_it(self):
        self.assertEqual(differences("a\nb\nc\n", "b\na\nc\n", "c\nb\na\n"), [])
        self.assertEqual(len(differences("a\nb\nc\n", "b\na\nc\n", "c\nb\nx\n")), 1)

    def test_says_what_is_not_compared(self):
        notes = comparing.Baseline(run("seed 1\nsum 2\n"), run("seed 7\nsum 2\n")).notes()
        self.assertEqual(notes, ["output: 1 of 2 lines differ between two bare runs and are not compared"])

    def test_compares_errors_files_and_exit_codes(self):
        self.assertEqual(len(differences("", "", "", errors="help\n")), 1)
        self.assertEqual(differences("", "", "", exit_code=-11), ["ended by SIGSEGV instead of 0"])
        self.assertEqual(differences("", "", "", files={"new.txt": b""}), ["file new.txt is new"])
        bare = run("", files={"image": b"\0\1"})
        baseline = comparing.Baseline(bare, bare)
        self.assertEqual(baseline.differences(run("")), ["file image is missing"])
        self.assertIn("file image", baseline.differences(run("", files={"image": b"\0\2"}))[0])
        self.assertEqual(baseline.differences(run("", files={"image": b"\0\1"})), [])

    def test_names_exit_codes_where_one_bare_run_did_not_end(self):
        """Regression: a second bare run that took too long ended the tool."""
        baseline = comparing.Baseline(run(""), run("", exit_code=None))
        self.assertIn("the exit code differs between two bare runs: ['0', 'None']", baseline.notes())
        self.assertEqual(len(baseline.differences(run("", exit_code=1))), 1)

    def test_leaves_out_what_the_simulator_says(self):
        self.assertEqual(differences("", "", "", errors="simulated GPU: no kernel 'f' in its plug-ins\n"), [])


class SeededByTheTime:
    """Runs a program that prints the time of day in seconds."""

    def execute(self, made, *_):
        made.exit_code, made.output, made.statistics = 0, str(int(time.time())).encode(), {"simulated_ns": 1}


class TrialsTest(unittest.TestCase):
    def test_bare_runs_show_what_depends_on_the_second(self):
        options = types.SimpleNamespace(arguments=[], exit_code=0, mask=[], files=[], shares=[])
        made = trial.Trial("seeded")
        program = programs.Program("seeded", ROOT, binary=ROOT / "README.md")

        trials = trial.Trials(options, None, SeededByTheTime(), ROOT, lambda text: None)
        trials.run_all(made, program, ROOT, ROOT)

        self.assertEqual(made.notes, ["output: 1 of 1 lines differ between two bare runs and are not compared"])
        self.assertEqual(made.verdict, trial.SAME)

    def judge(self, report, statistics):
        bare, under = run("sum 2\n"), run("no memory\n", exit_code=1, budget_bytes=4 << 20)
        bare.statistics, under.report, under.statistics = {"simulated_ns": 1}, report, statistics
        return trial.judged(under, bare, comparing.Baseline(bare, bare))

    def test_memory_that_cannot_move_is_no_difference(self):
        row = self.judge({"refused_unmovable_bytes": 64 << 20}, {"simulated_ns": 1})
        self.assertEqual((row.cell(), row.differences), (trial.CANNOT_MOVE, []))
        self.assertIn("67108864 bytes was refused", row.notes[-1])
        self.assertEqual(self.judge({"refused_unmovable_bytes": 0}, {"simulated_ns": 1}).cell(), trial.DIFFERS)

    def test_a_run_without_statistics_proves_nothing(self):
        """Regression: such a run counted as within its budget."""
        row = self.judge({"refused_unmovable_bytes": 64 << 20}, {})
        self.assertEqual(row.differences, ["the simulator's statistics are missing, so the budget is not proved"])


class LacksTest(unittest.TestCase):
    def setUp(self):
        self.program = programs.Program("p", pathlib.Path("/src"))

    def of(self, messages, by=lacks.SIMULATOR):
        return [(lack.what, lack.place, lack.by) for lack in lacks.from_compiler(self.program, messages, by)]

    def test_reads_simkernels_own_message(self):
        self.assertEqual(self.of("simkernels: /src/a.cu:12: barriers of a whole grid are not simulated"),
                         [("barriers of a whole grid are not simulated", "a.cu:12", "simulator")])

    def test_reads_gccs_message_once_for_each_name(self):
        text = ("simkernels: /src/a.cu: In function ‘void f()’:\n"
                "/src/a.cu:7:3: error: ‘texCubemap’ was not declared in this scope; did you mean ‘tex3D’?\n"
                "    7 |   texCubemap(x);\n"
                "/src/a.cu:9:3: error: ‘texCubemap’ was not declared in this scope\n"
                "/src/b.cu:1:10: fatal error: cub/cub.cuh: No such file or directory\n")
        self.assertEqual(self.of(text), [("texCubemap", "a.cu:7", "simulator"), ("header cub/cub.cuh", "b.cu:1", "simulator")])

    def test_reads_nvccs_message(self):
        self.assertEqual(self.of('/src/a.cu(3): error: identifier "f" is undefined\n', lacks.MACHINE), [("f", "a.cu:3", "machine")])

    def test_reads_the_linkers_message(self):
        self.assertEqual(self.of("/tmp/x.o: in function `main':\na.cu:(.text+0x1): undefined reference to `cudaFoo'\n"),
                         [("cudaFoo", "", "simulator")])

    def test_repeats_the_last_line_of_other_messages(self):
        self.assertEqual(self.of("multiple definition of `f'\ncollect2: error: ld returned 1 exit status"),
                         [("multiple definition of `f'", "", "simulator")])
        self.assertEqual(self.of("simkernels: no kernel was found"), [("no kernel was found", "", "simulator")])


class LibrariesTest(unittest.TestCase):
    def test_headers_of_include_folders_name_libraries(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            (folder / "common").mkdir()
            (folder / "common" / "ours.h").write_text("#include <nvrtc.h>\n")
            (folder / "main.cu").write_text('#include <cublas_v2.h>\n#include "ours.h"\n__global__ void f();\n')
            options = types.SimpleNamespace(host=True, include=[str(folder / "common")], library=["m"])
            builder = building.Builder(options, folder)
            program = programs.Program("p", folder, [folder / "main.cu"])
            self.assertEqual(builder.libraries(program), ["cublas", "nvrtc", "m"])
            self.assertTrue(builder.needs_plugin(program))
            for text, needs in (("int main() {}", False), ("__device__ __host__ int f(int x);", False),
                                ("static __device__ F pointer = f;", True), ("__constant__ float table[4];", True)):
                (folder / "main.cu").write_text(text)
                self.assertEqual(builder.needs_plugin(program), needs, text)


class RecordingBuilder(building.Builder):
    """Has an nvcc that refuses launches in device code; records the tools that were called."""

    def __init__(self, folder):
        super().__init__(types.SimpleNamespace(host=True, include=[], define=[], library=[], nvcc=[], std="c++17",
                                               build=folder), folder)
        self.nvcc, self.called = "nvcc", []

    def run(self, command, what):
        self.called.append(what + (" --host" if "--host" in command else ""))
        refused = "error: kernel launch from __device__ or __global__ functions requires separate compilation mode"
        return (1, refused) if what == "nvcc" else (0, "")


class BuilderTest(unittest.TestCase):
    def called_for(self, text):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name).resolve()
            (folder / "main.cu").write_text(text)
            builder = RecordingBuilder(folder)
            builder.make(programs.Program("p", folder, [folder / "main.cu"]), folder / "built")
            return builder.called

    def test_builds_kernels_that_launch_kernels_without_nvcc(self):
        self.assertEqual(self.called_for("__global__ void f() { f<<<1, 1>>>(); }"), ["nvcc", "simkernels --host"])

    def test_builds_programs_with_thrust_without_nvcc(self):
        self.assertEqual(self.called_for("#include <thrust/sort.h>\n"), ["simkernels --host"])


class ProgramsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def found(self, name="", **options):
        return {program.name: [source.name for source in program.sources]
                for program in programs.find([self.root / name], **options)}

    def test_takes_the_sources_of_a_folder_and_of_its_src(self):
        self.write("p/main.cu", "int main() {}")
        self.write("p/src/other.cpp", "")
        self.write("p/notes.txt", "int main()")
        self.assertEqual(self.found("p"), {"p": ["main.cu", "other.cpp"]})

    def test_leaves_out_sources_that_others_include(self):
        self.write("p/main.cu", '#include "part.cu"\nint main() {}')
        self.write("p/part.cu", "")
        self.assertEqual(self.found("p"), {"p": ["main.cu"]})

    def test_makes_one_program_of_each_main(self):
        self.write("p/one.cu", "int main() {}")
        self.write("p/two.cu", "int main() {}")
        self.write("p/part.cpp", "")
        self.assertEqual(self.found("p"), {"p/one": ["one.cu", "part.cpp"], "p/two": ["two.cu", "part.cpp"]})

    def test_finds_programs_in_folders_of_folders(self):
        self.write("a/a.cu", "int main() {}")
        self.write("deep/b/b.cpp", "int main() {}")
        self.assertEqual(self.found(), {"a": ["a.cu"], "b": ["b.cpp"]})

    def test_takes_a_whole_tree_as_one_program(self):
        self.write("main.cu", "int main() {}")
        self.write("deep/down/b.cpp", "")
        self.assertEqual(list(self.found(whole_tree=True).values()), [["b.cpp", "main.cu"]])

    def test_takes_sources_beside_headers_of_include_folders(self):
        self.write("app/main.cu", '#include "helper.h"\n#include "own.h"\nint main() {}\n')
        self.write("app/own.h", "")
        for name in ("helper.h", "helper.cpp", "own.h", "own.cpp", "unused.h", "unused.cpp"):
            self.write(f"common/{name}", "")
        self.assertEqual(self.found("app", include_folders=[self.root / "common"]), {"app": ["main.cu", "helper.cpp"]})

    def test_refuses_what_holds_no_program(self):
        self.write("a/readme", "")
        for name in ("a", "missing"):
            with self.assertRaises(programs.NoProgram):
                self.found(name)


if __name__ == "__main__":
    unittest.main()
