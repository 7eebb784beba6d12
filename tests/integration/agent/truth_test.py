#!/usr/bin/env python3
"""The agent's figures for a job compared with the truth: metrics, `status --json`, the
simulator's statistics and the job's own report.

A job on a simulated GPU is stopped at random moments. Nothing moves then, and all sources must
agree.

    usage: truth_test.py --build BUILD [unittest arguments]
"""
import json
import re
import signal
import subprocess

import agent_test
import job_test

# Metric -> field of a job's device in the JSON document, and the ratio of their units.
SAME = {
    "spillway_job_memory_budget_bytes": ("budget_bytes", 1),
    "spillway_job_memory_guaranteed_bytes": ("guaranteed_bytes", 1),
    "spillway_job_memory_resident_bytes": ("resident_bytes", 1),
    "spillway_job_memory_footprint_bytes": ("wanted_bytes", 1),
    "spillway_job_memory_host_budget_bytes": ("host_budget_bytes", 1),
    "spillway_job_memory_host_bytes": ("host_bytes", 1),
    "spillway_job_memory_ordinary_bytes": ("ordinary_bytes", 1),
    "spillway_job_link_share_ratio": ("link_permille", 1000),
    "spillway_job_steps_total": ("iterations", 1),
    "spillway_job_demand_fetches_total": ("demand_fetches", 1),
    "spillway_job_allocation_failures_total": ("refused_allocations", 1),
}


class TruthTest(job_test.JobFixture):
    def setUp(self):
        super().setUp()
        self.more_environment = {"SPILLWAY_SIM_NODE": str(self.folder / "node")}

    def begin_with_half(self):
        self.more_environment = {}
        half = self.half()
        self.more_environment = {"SPILLWAY_SIM_NODE": str(self.folder / "node")}
        self.configure(f"[defaults]\nlimit = {half}\n", usage_interval_ms=20)
        self.start()
        job = self.begin(job_test.ENDLESS, *self.follow("--no-learn"))
        self.await_tenancy(job, lambda now: now["resident_bytes"] > 0 and now["to_host_bytes"] > 0)
        return job

    def statistics_of(self, job):
        """None where the job was stopped while it wrote them."""
        try:
            read = subprocess.run([agent_test.BUILD / "simulator/node_statistics", self.folder / "node"], check=True, capture_output=True,
                                  text=True, timeout=2)
        except subprocess.TimeoutExpired:
            return None
        return next(one for one in json.loads(read.stdout)["processes"] if one.get("pid") == job.pid)

    def metrics(self):
        """Series of the job, its device and the node: value by name and labels, without the
        labels common to all jobs."""
        text = self.get("/metrics")[1]
        found = {}
        for name, labels, value in re.findall(r"(?m)^(spillway_\w+)(?:\{(.*)\})? (\S+)$", text):
            if "uuid=" in labels and job_test.UUID not in labels:
                continue
            kept = [label for label in labels.split(",") if label and not label.startswith(("job_id", "gpu", "uuid"))]
            found[(name, *kept)] = float(value)
        return found

    def told(self):
        """The same figures from the JSON document."""
        status = self.status()
        own = status["jobs"][0]["devices"][0]
        device = status["devices"][own["device"]]
        parts = own["parts"]
        told = {(name,): own[field] / unit for name, (field, unit) in SAME.items()}
        told[("spillway_gpu_memory_managed_bytes",)] = device["resident_bytes"]
        told[("spillway_gpu_memory_budgeted_bytes",)] = device["budgeted_bytes"]
        told[("spillway_host_memory_budgeted_bytes",)] = status["host"]["budgeted_bytes"]
        told[("spillway_job_allocations_over_budget_total",)] = parts["over_budget_allocations"]
        told[("spillway_job_workspace_idle_bytes",)] = own["workspaces"]["idle_bytes"]
        told[("spillway_job_workspace_dropped_bytes_total",)] = own["workspaces"]["dropped_bytes"]
        told[("spillway_job_other_algorithms_total",)] = own["workspaces"]["other_algorithms"]
        plans = own["plan_use"]
        told[("spillway_job_missed_steps_total",)] = plans["missed_iterations"]
        told[("spillway_job_changed_by_content_bytes_total",)] = plans["changed_by_content_bytes"]
        told[("spillway_job_recomputes_total",)] = plans["recomputes"]
        told[("spillway_job_recomputed_bytes_total",)] = plans["recomputed_bytes"]
        told[("spillway_job_mismatched_recomputes_total",)] = plans["mismatched_recomputes"]
        told[("spillway_job_fingerprinted_bytes_total",)] = plans["fingerprinted_bytes"]
        told[("spillway_job_fingerprint_seconds_total",)] = plans["fingerprint_ns"] / 1e9
        for reason, evicted_bytes in plans["uncopied_bytes"].items():
            told[("spillway_job_uncopied_bytes_total", f'reason="{reason}"')] = evicted_bytes
        for direction, causes in (("to_host", ("planned", "pressure")), ("to_device", ("planned", "demand"))):
            for cause in causes:
                told[("spillway_job_transfer_bytes_total", f'direction="{direction}"', f'cause="{cause}"')] = parts[f"{cause}_{direction}_bytes"]
        for cause, stall_ns in parts["stall_ns"].items():
            told[("spillway_job_stall_seconds_total", f'cause="{cause}"')] = stall_ns / 1e9
        return told, own

    def differing(self):
        metrics, (told, _) = self.metrics(), self.told()
        return {key: (metrics.get(key), value) for key, value in told.items()
                if key not in metrics or abs(metrics[key] - value) > 1e-6 * max(1, abs(value))}

    def test_metrics_status_and_simulator_statistics_agree_on_a_stopped_job(self):
        job = self.begin_with_half()
        looks = 0
        for _ in range(12):
            since = self.told()[1]["to_host_bytes"]
            self.await_tenancy(job, lambda now, since=since: now["to_host_bytes"] > since)
            job.send_signal(signal.SIGSTOP)
            self.assertEqual(agent_test.wait_for(self.differing, lambda seen: not seen), {})
            own, statistics = self.told()[1], self.statistics_of(job)
            job.send_signal(signal.SIGCONT)
            if statistics is None:
                continue
            self.assertEqual(statistics["device_bytes_now"][0], own["resident_bytes"])
            # The program copies, too, and the job reports only now and then.
            self.assertLessEqual(own["to_host_bytes"], statistics["d2h_bytes"])
            self.assertLessEqual(own["to_device_bytes"], statistics["h2d_bytes"])
            looks += 1
            if looks == 4:
                break
        self.assertEqual(looks, 4)
        output = self.finish(job)
        told, statistics = self.report(), self.statistics()
        self.assert_as_bare(output)
        bare = json.loads((self.folder / "bare/statistics.json").read_text())
        self.assertEqual(statistics["h2d_bytes"] - bare["h2d_bytes"], told["restored_bytes"])
        # Reads of evicted memory are served from its host copy.
        self.assertLessEqual(told["offloaded_bytes"], statistics["d2h_bytes"])
        self.assertLessEqual(statistics["d2h_bytes"] - bare["d2h_bytes"], told["offloaded_bytes"])


if __name__ == "__main__":
    agent_test.main()
