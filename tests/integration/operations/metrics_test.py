#!/usr/bin/env python3
"""A real spillwayd exports exactly the names, types and labels of docs/metrics.md, and promtool
finds nothing wrong.

    usage: metrics_test.py --build BUILD [unittest arguments]
"""
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(HERE.parent / "agent"))
import agent_test  # noqa: E402
from agent_test import ACCOUNT, ADMISSION, ASK_SLABS, GIB, HELD_SLABS, STEP_TIMES, USAGE, Session  # noqa: E402

SAMPLE_NAME = re.compile(r"([a-zA-Z_:]\w*)(?:\{(.*)\})? ")
NVML = {"spillway_gpu_memory_used_bytes", "spillway_gpu_memory_unmanaged_bytes"}  # these need NVML


def documented():
    """Metric family -> (type, labels)."""
    rows = re.findall(r"(?m)^\| `(\w+)` \| (\w+) \|([^|]*)\|", (ROOT / "docs/metrics.md").read_text())
    return {name: (kind, sorted(re.findall(r"\w+", labels))) for name, kind, labels in rows}


def scraped(text):
    """The same from a scrape; a histogram's own series and labels count as its family's."""
    kinds = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
    found = {name: (kind, set()) for name, kind in kinds.items()}
    for line in text.splitlines():
        sample = SAMPLE_NAME.match(line)
        if line.startswith("#") or not sample:
            continue
        name = sample[1] if sample[1] in kinds else re.sub(r"_(bucket|sum|count)$", "", sample[1])
        found[name][1].update(set(re.findall(r'(\w+)="', sample[2] or "")) - {"le"})
    return {name: (kind, sorted(labels)) for name, (kind, labels) in found.items()}


class MetricsTest(agent_test.AgentFixture):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.configure("[[user]]\njobs = 8\nhost_limit = \"50%\"\n[defaults]\nworkspace_limit = \"1GiB\"\n")
        self.has_nvml = has_nvml = (agent_test.BUILD / "simulator/libnvidia-ml.so.1").exists()
        if has_nvml:
            path = self.folder / "spillway.toml"
            path.write_text(path.read_text().replace("find = false", "find = true"))
        self.start(LD_LIBRARY_PATH=str(agent_test.BUILD / "simulator"), SPILLWAY_SIM_PROFILE="h200")
        self.expected = {name: what for name, what in documented().items() if has_nvml or name not in NVML}
        self.session = Session(self.path)
        self.session.hello(newest=4)
        self.session.say(HELD_SLABS, struct.pack("<BI", 1, 0))
        self.session.register(12 * GIB)
        self.session.next(ADMISSION)
        self.session.grant()
        self.session.say(ASK_SLABS, struct.pack("<Iq", 0, 1))  # so that a series exists
        self.spillway("status")
        self.session.say(USAGE, struct.pack("<IBB10q", 0, 1, 2, 14 * GIB, 12 * GIB, 0, GIB, 3, 7, 11, 1, 1, 0))
        self.session.say(ACCOUNT, struct.pack("<I20q", 0, 5 * GIB, 1, 2, 3, 4, *range(10**9, 8 * 10**9, 10**9), 21, 22, 23,
                                              31, 32, 33, 34, 41))
        self.session.say(STEP_TIMES, struct.pack("<I14q", 0, 5 * 10**8, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0))

    def scrape(self):
        return agent_test.wait_for(lambda: self.get("/metrics")[1], lambda text: 'cause="planned"} 3\n' in text and "pool_used" in text and
                                   (not self.has_nvml or "unmanaged_bytes{" in text))

    def test_documented_and_exported_families_are_equal(self):
        self.assertGreater(len(self.expected), 60)
        found = scraped(self.scrape())
        self.assertEqual({name: found.get(name) for name in self.expected}, self.expected)
        self.assertEqual(set(found) - set(self.expected), set())

    def test_a_jobs_reports_are_exported(self):
        text = self.scrape()

        for line in ('spillway_job_memory_ordinary_bytes{%s} 5368709120', 'spillway_host_memory_ordinary_bytes 5368709120',
                     'spillway_job_transfer_bytes_total{%s,direction="to_host",cause="pressure"} 2',
                     'spillway_job_transfer_bytes_total{%s,direction="to_device",cause="demand"} 4',
                     'spillway_job_stall_seconds_total{%s,cause="demand"} 1',
                     'spillway_job_stall_seconds_total{%s,cause="link_share"} 7',
                     'spillway_job_prefetches_total{%s,result="unused"} 23',
                     'spillway_job_replans_total{%s,reason="budget_change"} 32',
                     'spillway_job_allocations_over_budget_total{%s} 41',
                     'spillway_job_step_seconds_bucket{%s,le="0.3"} 2', 'spillway_job_step_seconds_sum{%s} 0.5',
                     'spillway_api_requests_total{method="status",code="done"} 1'):
            job = re.search(r'spillway_job_memory_budget_bytes\{(.*)\}', text)[1]
            self.assertIn((line % job if "%s" in line else line) + "\n", text)
        job = self.spillway("job", re.search(r'job_id="([^"]*)"', text)[1]).stdout
        self.assertIn("5.0 GiB ordinary", job)
        self.assertIn("21 used, 22 late, 23 unused", job)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (package prometheus)")
    def test_promtool_finds_nothing_wrong(self):
        def check(text):
            return subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)

        done = check(self.scrape())

        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        self.assertNotEqual(check(self.scrape() + "# TYPE spillway_megabytes counter\nspillway_megabytes 1\n").returncode, 0)


if __name__ == "__main__":
    agent_test.main()
