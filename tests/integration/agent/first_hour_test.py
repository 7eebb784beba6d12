#!/usr/bin/env python3
"""The first hour with an agent: the agent is required but missing, does not know the device, or
an administrator sets a rule. Also what operators are told, and the documentation's examples
verbatim.

    usage: first_hour_test.py --build BUILD [unittest arguments]
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios
import threading
import unittest
import uuid

import agent_test
import job_test
from agent_test import GIB, PATIENCE_S

ROOT = pathlib.Path(__file__).resolve().parents[3]
UUID = job_test.UUID
OTHER = "GPU-01000000-0000-0000-0000-000000000000"
PROGRAM = ["true"]


def screen_text(screen):
    """What is written to a terminal until its last writer has ended; the kernel then reports an error, not an end."""
    text = b""
    try:
        while part := screen.read(4096):
            text += part
    except OSError:
        pass
    return text.decode()


class FirstHourTest(agent_test.AgentFixture):
    def configure(self, more="", uuid=UUID, **settings):
        super().configure(more, **settings)
        file = self.folder / "spillway.toml"
        file.write_text(file.read_text().replace(OTHER, uuid))

    def run_job(self, *options, program=("true",), before=(), stderr=subprocess.PIPE, **environment):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY_")}
        return subprocess.run([*before, agent_test.BUILD / "bin/spillway", "run", "--simulate=h200", *options, "--", *program],
                              env={**clean, "XDG_STATE_HOME": str(self.folder), **environment}, stdout=subprocess.PIPE, stderr=stderr, text=True,
                              timeout=120)

    def trainer(self, *options, **environment):
        return self.run_job(*options, program=[agent_test.BUILD / "workloads/gpt", "--layers=1", "--width=64", "--steps=2"],
                            SPILLWAY_SIM_COMPUTE="tags", **environment)

    def test_a_missing_required_agent_is_refused(self):
        for options in (["--require-agent", f"--agent={self.path}"], ["--require-agent"], ["--agent=required"]):
            refused = self.run_job(*options, SPILLWAY_SOCKET=str(self.path))
            self.assertEqual(refused.returncode, 125, refused.stderr)
            self.assertIn("the agent is required, and cannot reach the agent at", refused.stderr)
        allowed = self.run_job(f"--agent={self.path}")
        self.assertEqual(allowed.returncode, 0, allowed.stderr)

    def test_an_agent_that_does_not_know_the_device_is_refused_and_named(self):
        self.configure(uuid=OTHER)
        self.start()
        refused = self.run_job("--require-agent", f"--agent={self.path}")

        self.assertEqual(refused.returncode, 125, refused.stderr)
        self.assertIn(f"has no device {UUID}", refused.stderr)
        ran = self.trainer(f"--agent={self.path}")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("does not take this job; the budget of `spillway run` stands", ran.stderr)
        self.assertEqual(self.status()["unknown_devices"], [UUID])
        self.assertIn(f"{UUID} is used by jobs, and not one of this agent's", self.spillway("status").stdout)
        self.assertIn(f"warning device {UUID}, which local-", self.log())

    # Regression: the job ran with the whole device, and one line of text.
    def test_a_job_with_a_required_agent_gets_no_memory_without_it(self):
        self.configure(uuid=OTHER)
        self.start()
        ran = self.trainer(f"--agent={self.path}", SPILLWAY_AGENT_REQUIRED="1")
        self.assertEqual(ran.returncode, 125)  # the environment requires it, not the command line
        clean = {"SPILLWAY_AGENT": str(self.path), "SPILLWAY_AGENT_REQUIRED": "1", "SPILLWAY_SIM_COMPUTE": "tags", "SPILLWAY_SUMMARY": "1"}
        simulator = agent_test.BUILD / "simulator"
        ran = subprocess.run([agent_test.BUILD / "workloads/gpt", "--layers=1", "--width=64", "--steps=2"], capture_output=True, text=True,
                             env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(simulator), "SPILLWAY_SIM_PROFILE": "h200",
                                  "LD_PRELOAD": str(agent_test.BUILD / "lib/libspillway.so"),
                                  "SPILLWAY_DRIVER": str(simulator / "libcuda.so.1"), **clean}, timeout=120)
        self.assertIn("it is required, and the job gets no device memory", ran.stderr)
        self.assertIn("held at most 0.0 MiB", ran.stderr)  # slow: it computes from host memory

    def test_a_job_reports_whose_budget_applies(self):
        self.start()
        ran = self.trainer("--require-agent", f"--agent={self.path}", "--budget=8GiB")

        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(f"the agent at {self.path} sets the budget, at most 8.0 GiB, and is required", ran.stderr)
        self.assertIn(f"the budget is that of the agent at {self.path}: 8192 MiB of device 0 now", ran.stderr)

    # Regression: the library's own line went on past a terminal's edge.
    def test_a_terminals_lines_are_wrapped(self):
        self.start()
        ours, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        with open(ours, "rb", buffering=0) as screen:
            shown = []
            reader = threading.Thread(target=lambda: shown.append(screen_text(screen)))
            reader.start()
            ran = self.trainer(f"--agent={self.path}", stderr=terminal)
            os.close(terminal)
            reader.join(PATIENCE_S)

        self.assertEqual(ran.returncode, 0, shown)
        self.assertIn(f"the budget is that of the agent at {self.path}:", " ".join(shown[0].split()))
        for line in shown[0].splitlines():
            self.assertLessEqual(len(line), 80, shown[0])

    # Regression: for its first ten seconds a small job was shown with 157 GiB.
    def test_a_small_job_is_never_shown_with_the_whole_device(self):
        self.start()
        job = subprocess.Popen([agent_test.BUILD / "bin/spillway", "run", "--quiet", "--simulate=h200", f"--agent={self.path}", "--",
                                agent_test.BUILD / "workloads/gpt", "--layers=2", "--width=256", "--steps=1000000"], stdout=subprocess.DEVNULL,
                               env={**os.environ, "SPILLWAY_SIM_COMPUTE": "tags", "XDG_STATE_HOME": str(self.folder)})
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        seen = agent_test.wait_for(lambda: [device for one in self.status()["jobs"] for device in one["devices"]],
                                   lambda devices: devices and devices[0]["wanted_bytes"] > 0)

        self.assertTrue(0 < seen[0]["wanted_bytes"] < 4 * GIB, seen)
        self.assertGreater(seen[0]["claimed_bytes"], 4 * GIB)
        metrics = agent_test.wait_for(lambda: self.get("/metrics")[1], lambda text: "\nspillway_job_memory_footprint_bytes{" in text)
        footprint = re.search(r"(?m)^spillway_job_memory_footprint_bytes\{.*\} (\S+)$", metrics)[1]
        self.assertLess(float(footprint), 4 * GIB)

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("unshare"), "takes a root's mounts")
    def test_an_administrators_rule_cannot_be_evaded(self):
        self.start()
        rules = self.folder / "etc/spillway"
        rules.mkdir(parents=True)
        etc = pathlib.Path("/etc/spillway")
        if not etc.exists():
            etc.mkdir()
            self.addCleanup(etc.rmdir)

        def under(rule, *options, **environment):
            (rules / "run.toml").write_text(rule)
            return self.run_job(*options, before=["unshare", "-m", "sh", "-c", f'mount --bind {rules} /etc/spillway && exec "$@"', "sh"],
                                **environment)

        probe = under("")
        if "mount:" in probe.stderr or "unshare" in probe.stderr:
            self.skipTest(probe.stderr)
        rule = f'agent = "required"\nsocket = "{self.path}"\n'
        self.assertEqual(under(rule).returncode, 0)
        self.assertIn("--off is not allowed here", under(rule, "--off").stderr)
        self.assertIn("another agent is not allowed here", under(rule, "--agent=/mine.sock").stderr)
        self.assertIn("run.toml:1", under("agent = yes\n").stderr)
        self.stop()
        for environment in ({}, {"SPILLWAY_AGENT_REQUIRED": "0", "SPILLWAY_SOCKET": "/mine.sock", "SPILLWAY_AGENT": "/mine.sock"}):
            refused = under(rule, **environment)
            self.assertEqual(refused.returncode, 125)
            self.assertIn(f"cannot reach the agent at {self.path}", refused.stderr)

    def test_operators_changes_are_logged_and_lost_ones_reported(self):
        self.configure(f'[defaults]\nlimit = "25%"\n')
        file = self.folder / "spillway.toml"
        state = self.folder / "gone/state"
        file.write_text(file.read_text().replace("[devices]", f'state = "{state}"\n[devices]', 1))
        self.start()
        drained = self.spillway("drain")
        self.assertEqual(drained.returncode, 0)
        self.assertIn("the next agent will not know it: ", drained.stderr)
        self.assertIn("No such file or directory", json.loads(self.spillway("drain", "--json").stdout)["note"])
        state.parent.mkdir()
        self.assertEqual(self.spillway("undrain").stderr, "")
        self.assertRegex(self.log(), rf"info operator uid={os.getuid()} pid=\d+ request=drain outcome=done why=")
        job = agent_test.Session(self.path)
        self.addCleanup(job.socket.close)
        job.hello()
        job.register(GIB, device=uuid.UUID(UUID[4:]).bytes)
        job.next(agent_test.ADMISSION)
        name = f"local-{os.getpid()}"
        self.assertIn("floor 512 MiB, guaranteed 0 B, limit 4.0 GiB", self.spillway("job", name).stdout)
        changed = self.spillway("budget", "set", name, "50%")
        self.assertEqual((changed.returncode, changed.stderr), (0, ""))
        self.assertRegex(self.log(), rf"request=set_budget job={name} limit_bytes={8 * GIB} outcome=done")
        for zero in ("0", "0%", "0GiB"):
            refused = self.spillway("budget", "set", name, zero)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("a job needs some memory to compute in", refused.stderr)

    def test_a_configured_device_that_does_not_exist_is_reported_at_the_start(self):
        self.configure(uuid=OTHER)
        file = self.folder / "spillway.toml"
        file.write_text(file.read_text().replace("find = false\n", ""))
        self.start(LD_LIBRARY_PATH=str(agent_test.BUILD / "simulator"), SPILLWAY_SIM_PROFILE="h200")

        self.assertIn(f"warning device {OTHER} of the configuration was not found: NVML knows {UUID}", self.log())
        self.assertIn(f"{OTHER} is in the configuration, and was not found", self.spillway("status").stdout)
        self.assertEqual([device["found"] for device in self.status()["devices"]], [True, False])

    def test_a_reload_names_settings_that_need_a_restart(self):
        self.start()
        file = self.folder / "spillway.toml"
        file.write_text(file.read_text() + '[host]\nslab = "32MiB"\n')

        reloaded = self.spillway("config", "reload")
        self.assertEqual(reloaded.returncode, 0)
        self.assertIn("only a restart takes over [host] slab", reloaded.stderr)
        self.assertEqual(self.spillway("config", "log", "info").stderr, "")
        again = self.spillway("config", "reload")  # reported once only
        self.assertIn("only a restart takes over [host] slab", again.stderr)

    # Regression: at its end the agent removed the file at the path that a reload had named, and
    # left its own socket.
    def test_an_ending_agent_removes_the_socket_that_it_opened(self):
        other = self.folder / "other.sock"
        other.write_text("another's")
        config = self.folder / "spillway.toml"
        written = config.read_text()
        config.write_text(written.replace("[agent]", f'[agent]\nsocket = "{self.path}"', 1))
        self.start(socket_option=False)
        config.write_text(written.replace("[agent]", f'[agent]\nsocket = "{other}"', 1))
        self.assertIn("only a restart takes over [agent] socket", self.spillway("config", "reload").stderr)
        self.stop()

        self.assertTrue(other.exists())
        self.assertFalse(self.path.exists())

    def test_no_host_memory_has_its_own_message(self):
        refused = self.run_job("--host=0")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--host cannot be zero", refused.stderr)
        self.assertNotIn("25%peak", refused.stderr)


class ExamplesTest(unittest.TestCase):
    """docs/operations.md's first example, verbatim."""

    def test_the_first_agent_manages_the_simulated_device(self):
        text = (ROOT / "docs/operations.md").read_text()
        example = text.split("## Start an agent")[1].split("On a node, with systemd")[0]
        script = "\n".join(line[4:] for line in example.splitlines() if line.startswith("    "))
        self.assertIn("--agent=required", script)
        with tempfile.TemporaryDirectory(prefix="spillway-first-") as folder:
            (pathlib.Path(folder) / "build").symlink_to(agent_test.BUILD)
            script = script.replace("127.0.0.1:9477", f"127.0.0.1:{agent_test.free_port()}")
            waits = script.replace("export SPILLWAY_SOCKET", "agent=$!\nuntil [ -S agent.sock ]; do :; done\nexport SPILLWAY_SOCKET")
            done = subprocess.run(["bash", "-ec", waits + "\nspillway jobs\nkill $agent"], cwd=folder, capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PATH": f"{agent_test.BUILD / 'bin'}:{os.environ['PATH']}", "XDG_STATE_HOME": folder})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("spillway.toml: ok", done.stdout)
        self.assertIn("the budget is that of the agent", done.stderr)
        self.assertIn("job ended job=local-", done.stderr)


if __name__ == "__main__":
    agent_test.main()
