#!/usr/bin/env python3
"""A traced trainer's trace agrees with its report and with the simulator's statistics.

    Usage: trace_test.py BUILD_FOLDER [unittest's options]
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import simulated_gpu  # noqa: E402
import skips  # noqa: E402

MIB = 1 << 20
BUILD = pathlib.Path()
# At a width of 256 its tensors are movable ranges. Memory is sparse and kernels leave tags, so the
# run is quick. Without experiments, the GPU runs what the program launches, and nothing else.
GPT = "gpt --steps=12 --layers=2 --width=256"


def settings(folder, budget_bytes, trace=None):
    env = simulated_gpu.environment(BUILD, BUILD / "lib" / "libspillway.so", budget_bytes, "h200")
    env.update(SPILLWAY_REPORT=str(folder / "report.json"), SPILLWAY_LEARN="wait", SPILLWAY_PARK="off",
               SPILLWAY_EXPERIMENTS="0", SPILLWAY_SIM_COMPUTE="tags")
    if trace is not None:
        env["SPILLWAY_TRACE"] = str(trace)
    return env


def words(command):
    name, *options = command.split()
    return [BUILD / "workloads" / name, *options]


def spans(events, category):
    return [event for event in events if event.get("cat") == category and event["ph"] == "X"]


def moments(events, name):
    return [event for event in events if event["name"] == name and event["ph"] == "i"]


class TraceTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="spillway-trace-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.trace = self.folder / "trace.json"

    def run_gpt(self, budget_bytes=None, trace=None, command=GPT, **more):
        run = simulated_gpu.run(words(command), {**settings(self.folder, budget_bytes, trace), **more}, quiet_s=120)
        self.assertEqual(run.exit_code, 0, run.errors)
        run.report = json.loads((self.folder / "report.json").read_text())
        return run

    def half(self):
        peak_bytes = self.run_gpt().report["wanted_peak_bytes"]
        return peak_bytes * 6 // 10 // (2 * MIB) * (2 * MIB)

    def view(self, trace):
        page = self.folder / "page.html"
        if not (BUILD / "bin" / "spillway-plan").exists():
            self.skipTest("spillway view is not built: its libraries are missing")
        command = [BUILD / "bin" / "spillway-plan", "view", trace, "-o", page]
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return page.read_text()

    def test_experiments_and_what_leaves_without_a_copy_are_in_the_trace(self):
        run = self.run_gpt(self.half(), self.trace, SPILLWAY_EXPERIMENTS="1")
        events = json.loads(self.trace.read_text())

        results = [event["args"]["result"] for event in moments(events, "experiment")]
        self.assertLessEqual(len(results), run.report["experiments"])
        self.assertGreater(results.count("proved"), 0)
        self.assertGreaterEqual(results.count("observed"), results.count("proved"))
        self.assertTrue(all("kernel" in event["args"] for event in moments(events, "experiment")))
        dropped = {}
        for event in moments(events, "dropped"):
            dropped[event["args"]["as"]] = dropped.get(event["args"]["as"], 0) + event["args"]["bytes"]
        self.assertEqual(dropped.get("clean", 0) + dropped.get("same content", 0), run.report["dropped_bytes"])
        self.assertGreater(run.report["dropped_bytes"], 0)
        self.assertEqual(dropped.get("recomputable", 0), run.report["recompute_dropped_bytes"])

    def test_a_trace_agrees_with_the_report_and_changes_nothing(self):
        budget_bytes = self.half()
        bare = self.run_gpt(budget_bytes)
        run = self.run_gpt(budget_bytes, self.trace)
        report = run.report

        self.assertEqual(run.output, bare.output)
        self.assertEqual(run.statistics["violations"], [])
        self.assertEqual(run.statistics["kernels"], bare.statistics["kernels"])

        events = json.loads(self.trace.read_text())
        self.assertEqual(events[0]["args"]["command"].split()[1:], GPT.split()[1:])
        self.assertFalse([event for event in events if event["name"] == "events lost"])

        copies = spans(events, "copy")
        for name, field in (("copy out", "offloaded_bytes"), ("copy in", "restored_bytes")):
            self.assertEqual(sum(copy["args"]["bytes"] for copy in copies if copy["name"] == name), report[field])
        self.assertGreater(report["offloaded_bytes"], 0)
        self.assertLessEqual({copy["args"]["cause"] for copy in copies},
                             {"plan", "room", "demand", "prefetch", "late prefetch"})
        self.assertEqual(sum(copy["args"]["cause"] == "prefetch" for copy in copies), report["prefetches"])
        self.assertEqual(len(moments(events, "prefetch hit")), report["prefetch_hits"])
        self.assertEqual(len(moments(events, "prefetch unused")), report["prefetches_unused"])
        self.assertEqual(len(moments(events, "left")), report["evictions"])
        self.assertTrue(moments(events, "allocated"))

        memory = [event["args"] for event in events if event["ph"] == "C"]
        self.assertTrue(all(point["resident"] <= point["budget"] == budget_bytes for point in memory))
        self.assertEqual(max(point["resident"] for point in memory), report["resident_peak_bytes"])
        self.assertEqual(max(point["wanted"] for point in memory), report["wanted_peak_bytes"])

        self.assertEqual(len(moments(events, "plan adopted")), report["learning"]["plans_adopted"])
        self.assertGreater(len(spans(events, "iteration")), 2)
        self.assertLessEqual({stall["name"] + "_ns" for stall in spans(events, "stall")}, set(report["stalls"]))

    def test_times_match_the_devices(self):
        """Each kernel and set, recomputed or not, has the times of the simulated machine, except
        for the cost of its two events."""
        timeline = self.folder / "timeline.csv"
        env = settings(self.folder, self.half(), self.trace)
        env["SPILLWAY_SIM_TIMELINE"] = str(timeline)
        self.assertEqual(simulated_gpu.run(words(GPT), env, quiet_s=120).exit_code, 0)

        events = json.loads(self.trace.read_text())
        self.assertFalse([event for event in events if event.get("args", {}).get("clock") == "host"])
        traced = [(round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000))
                  for event in spans(events, "operation") + spans(events, "recompute")
                  if not event["name"].startswith("cuMemcpy")]
        lines = [line.split(",") for line in timeline.read_text().splitlines()[1:]]
        ran = [(int(line[3]), int(line[4])) for line in lines if line[0] == "compute"]
        self.assertGreater(len(ran), 500)
        self.assertEqual(len(traced), len(ran))
        shift = min(ran)[0] - min(traced)[0]
        for (start, end), (begin, finish) in zip(sorted(ran), sorted(traced)):
            self.assertLess(abs(start - begin - shift), 1000)
            self.assertLess(abs(end - finish - shift), 1000)

    def test_the_trace_renders_as_a_page(self):
        self.run_gpt(self.half(), self.trace)
        page = self.view(self.trace)
        for text in ("One iteration by the plan", "spillway", "prefetch", "Allocations that moved most"):
            self.assertTrue(text in page, text)
        self.assertFalse("The trace has no end" in page)

    def test_a_killed_trainer_leaves_its_trace(self):
        env = settings(self.folder, self.half(), self.trace)
        command = [str(word) for word in words("gpt --steps=100000 --layers=2 --width=256")]
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (self.trace.exists() and self.trace.stat().st_size > 300_000):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        text = self.trace.read_text()
        whole = text[:text.rfind("}\n") + 1] if not text.endswith("}") else text
        self.assertGreater(len(json.loads(whole.rstrip(",\n") + "]")), 1000)
        self.assertTrue("The trace has no end" in self.view(self.trace))

    def test_an_unwritable_trace_is_reported_once_and_the_job_continues(self):
        budget_bytes = self.half()
        output = self.run_gpt(budget_bytes).output
        for trace in ("/dev/full", "/nowhere/trace.json"):
            run = self.run_gpt(budget_bytes, trace)
            self.assertEqual(run.output, output)
            self.assertEqual(run.errors.count("the trace could not be written"), 1, run.errors)

    def test_a_full_disk_is_reported_once_and_the_trace_ends_with_a_whole_event(self):
        # Without a budget: memory at two addresses is a file of the simulator's, which the limit would concern.
        budget_bytes = None
        output = self.run_gpt(budget_bytes).output
        limited = ["bash", "-c", "trap '' XFSZ; ulimit -f 200; exec \"$@\"", "limited", *words(GPT)]
        run = simulated_gpu.run(limited, settings(self.folder, budget_bytes, self.trace), quiet_s=120)
        self.assertEqual((run.exit_code, run.output), (0, output), run.errors)
        self.assertEqual(run.errors.count("the trace could not be written"), 1, run.errors)
        text = self.trace.read_text()
        self.assertGreater(len(text), 100_000)
        self.assertGreater(len(json.loads(text + "]")), 500)

    def test_the_launcher_requests_it_and_child_processes_have_their_own(self):
        program = " ".join(str(word) for word in words(GPT))
        command = [str(BUILD / "bin" / "spillway"), "run", "--simulate", "--budget", "48MiB", "--trace", "trace.json", "--",
                   "bash", "-c", f"{program}; {program}; true"]
        env = {name: value for name, value in simulated_gpu.environment(BUILD).items() if name != "LD_LIBRARY_PATH"}
        env.update(HOME=str(self.folder), SPILLWAY_SIM_COMPUTE="tags")
        result = subprocess.run(command, env=env, cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        traces = sorted(self.folder.glob("trace.json*"))
        self.assertEqual(len(traces), 2, traces)
        for trace in traces:
            process = json.loads(trace.read_text())[0]["args"]["process"]
            self.assertEqual(trace.name, f"trace.json.{process}")

    def test_without_tracing_no_thread_and_no_file(self):
        self.run_gpt(self.half())
        self.assertEqual([path.name for path in self.folder.iterdir()], ["report.json"])


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv[1]).resolve()
    skips.main(sys.argv[2:])
