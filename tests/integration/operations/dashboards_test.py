#!/usr/bin/env python3
"""Dashboards, rules and alerts with a real spillwayd that a real Prometheus scrapes: every
expression has data.

    usage: dashboards_test.py --build BUILD [unittest arguments]
"""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path += [str(HERE.parent / "agent"), str(ROOT / "tools")]
import agent_test  # noqa: E402
import dashboards  # noqa: E402
from agent_test import ACCOUNT, ADMISSION, ASK_SLABS, GIB, HELD_SLABS, STEP_TIMES, USAGE, Session, free_port  # noqa: E402

PLANNED = 2
PATIENCE_S = 60
TURN_S = 0.3  # between two looks
NEEDS_FLOOR = '[host]\nmemory = "16GiB"\n[defaults]\nguaranteed = "10GiB"\nfloor = "10GiB"\n'
BOARD = {"$__rate_interval": "30s", "$instance": ".+", "$job": ".+"}
ANSWERS_WHEN_SOMETHING_HAPPENED = ("Agent starts",)


class WaitingJob:
    """Another process that requests memory already budgeted to others."""

    def __init__(self, path):
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            session = Session(path)
            session.hello()
            session.register(12 * GIB)
            os.write(tell, session.next(ADMISSION)[4:5])
            while True:
                signal.pause()
        os.close(tell)
        self.admission = os.read(ready, 1)[0]
        os.close(ready)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Prometheus:
    def __init__(self, folder, target):
        self.address = f"127.0.0.1:{free_port()}"
        for path in (ROOT / "dashboards/prometheus").glob("*.yml"):
            (folder / path.name).write_text(path.read_text().replace("interval: 30s", "interval: 1s"))
        scrape = (folder / "scrape.yml").read_text().replace("127.0.0.1:9477", target)
        scrape = scrape.replace("scrape_interval: 15s", "scrape_interval: 1s")
        (folder / "prometheus.yml").write_text("global: {evaluation_interval: 1s}\n" + scrape)
        self.log = open(folder / "prometheus.log", "ab")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.address}", "--log.level=warn"], stdout=self.log, stderr=self.log)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{query}", timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.api("query", query=expression)["result"]

    def alerts(self):
        return {alert["labels"]["alertname"] for alert in self.api("alerts")["alerts"]}


class NodeWithJobsTest(agent_test.AgentFixture):
    """One admitted job that follows its plan, and one that waits."""

    def setUp(self):
        super().setUp()
        self.configure(NEEDS_FLOOR)
        self.has_nvml = (agent_test.BUILD / "simulator/libnvidia-ml.so.1").exists()
        self.start(LD_LIBRARY_PATH=str(agent_test.BUILD / "simulator"), SPILLWAY_SIM_PROFILE="h200")
        self.session = Session(self.path)
        self.session.hello(newest=4)
        self.session.say(HELD_SLABS, struct.pack("<BI", 1, 0))
        self.session.register(12 * GIB)
        self.session.say(ASK_SLABS, struct.pack("<Iq", 0, 1))
        self.session.next(ADMISSION)
        serial, budget, _, _ = self.session.grant()
        self.session.obey(serial, budget)
        self.turns = 0
        self.use_memory()
        waiting = WaitingJob(self.path)
        self.addCleanup(waiting.kill)
        self.assertEqual(waiting.admission, 2)

    def use_memory(self):
        self.turns += 1
        moved = self.turns * GIB
        self.session.say(USAGE, struct.pack("<IBB10q", 0, 1, PLANNED, 14 * GIB, 12 * GIB, 0, 2 * GIB, moved, moved,
                                            self.turns * 10**7, self.turns, self.turns, 0))
        self.session.say(ACCOUNT, struct.pack("<I20q", 0, GIB, moved, 0, moved, 0, *[self.turns * 10**6] * 7,
                                              *[self.turns] * 8))
        self.session.say(STEP_TIMES, struct.pack("<I14q", 0, self.turns * 10**6, self.turns, *[0] * 12))
        self.spillway("jobs")

    def configure(self, more="", **settings):
        super().configure(more, **settings)
        path = self.folder / "spillway.toml"
        path.write_text(path.read_text().replace("find = false", "find = true"))

    def metrics_with_jobs(self):
        return self.until(lambda: self.get("/metrics")[1],
                          lambda text: 'phase="waiting"} 1' in text and "step_seconds_count" in text)

    def until(self, look, is_it):
        """Polls `look` until `is_it` holds or the patience ends, and returns its last result. The
        job continues meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                seen = look()
                if is_it(seen) or time.monotonic() > deadline:
                    return seen
            except urllib.error.URLError:
                if time.monotonic() > deadline:
                    raise
            self.use_memory()
            time.sleep(TURN_S)


class NamesTest(NodeWithJobsTest):
    def test_every_name_and_label_is_exported(self):
        offences, count = dashboards.check(self.metrics_with_jobs())

        self.assertEqual(offences, [])
        self.assertGreater(count, 40)

    def test_an_unexported_metric_or_label_is_an_offence(self):
        metrics = {**dashboards.exported(self.metrics_with_jobs()), "up": set()}
        for wrong, offence in (("sum(spillway_gpus)", "no agent exports spillway_gpus"),
                               ('spillway_jobs{fase="waiting"}', "spillway_jobs has no label fase"),
                               ("sum by (host) (spillway_jobs)", "nothing that is named here has no label host")):
            self.assertEqual(list(dashboards.expression_offences(wrong, metrics)), [offence])
        self.assertEqual(list(dashboards.expression_offences('sum by (phase) (spillway_jobs{job="x"})', metrics)), [])


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed")
class PrometheusTest(NodeWithJobsTest):
    def setUp(self):
        super().setUp()
        self.prometheus = Prometheus(self.folder, f"127.0.0.1:{self.port}")
        self.addCleanup(self.prometheus.stop)

    def test_every_panel_variable_and_recorded_metric_has_data(self):
        board = json.loads((ROOT / "dashboards/grafana/spillway-node.json").read_text())
        expressions = dict(dashboards.board_expressions(board))
        panels = [(where, self.filled_in(one)) for where, one in dashboards.board_expressions(board)]
        recorded = [(what, what) for _, what, _ in dashboards.rules() if ":" in what]
        self.assertGreater(len(expressions), 20)

        for where, expression in panels + recorded:
            is_of_nvml = re.search("gpu_memory_(used|unmanaged)", expression) and not self.has_nvml
            if where in ANSWERS_WHEN_SOMETHING_HAPPENED or is_of_nvml:
                self.prometheus.query(expression)
                continue
            self.assertNotEqual(self.until(lambda: self.prometheus.query(expression), bool), [], where)

    def filled_in(self, expression):
        for variable, value in BOARD.items():
            expression = expression.replace(variable, value)
        return expression

    def test_alerts_are_silent_without_a_problem(self):
        self.until(lambda: self.prometheus.query("instance:spillway_jobs_waiting:sum"), bool)
        # One job does wait, and one uses ordinary memory.
        self.assertLessEqual(self.prometheus.alerts(), {"SpillwayJobWaitsLong", "SpillwayOrdinaryMemoryUsed",
                                                        "SpillwayPrefetchesLate"})

        self.configure("[agent]\n")
        self.assertEqual(self.spillway("config", "reload").returncode, 3)
        self.assertIn("SpillwayConfigReloadFailed",
                      self.until(self.prometheus.alerts, lambda alerts: "SpillwayConfigReloadFailed" in alerts))
        self.stop(signal.SIGKILL)
        self.turns_end()
        self.assertIn("SpillwayAgentDown",
                      self.until(self.prometheus.alerts, lambda alerts: "SpillwayAgentDown" in alerts))
        states = {rule["name"]: rule["health"] for group in self.prometheus.api("rules")["groups"] for rule in group["rules"]}
        self.assertEqual(states, {what: "ok" for _, what, _ in dashboards.rules()})

    def turns_end(self):
        self.use_memory = lambda: None


if __name__ == "__main__":
    agent_test.main()
