#!/usr/bin/env python3
"""The systemd units and the sample configuration, checked by systemd's own tools and by
spillwayd.

    usage: deploy_test.py --build BUILD [unittest arguments]
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
UNITS = ROOT / "deploy/systemd"
sys.path.append(str(HERE.parent / "agent"))
import agent_test  # noqa: E402

MOST_EXPOSED = 20  # tenths; systemd-analyze's own scale ends at 100


def setting(unit, name):
    return re.findall(rf"(?m)^{name}=(.*)$", (UNITS / unit).read_text())


class ConfigurationTest(agent_test.AgentFixture):
    def check(self, path):
        return subprocess.run([agent_test.BUILD / "bin/spillway", "config", "check", "--config", path],
                              capture_output=True, text=True)

    def test_sample_is_valid(self):
        checked = self.check(UNITS / "spillway.toml")
        self.assertEqual((checked.returncode, checked.stdout), (0, f"{UNITS}/spillway.toml: ok\n"))

    def test_a_mistyped_sample_is_invalid(self):
        wrong = self.folder / "wrong.toml"
        wrong.write_text((UNITS / "spillway.toml").read_text().replace("weight = 1", "wieght = 1"))
        checked = self.check(wrong)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("there is no setting 'wieght'; do you mean 'weight'?", checked.stderr)

    def test_units_and_configuration_agree_on_paths(self):
        shown = subprocess.run([agent_test.BUILD / "bin/spillwayd", "--show", "--config", UNITS / "spillway.toml"],
                               capture_output=True, text=True).stdout
        self.assertIn(f'socket = "{setting("spillwayd.socket", "ListenSequentialPacket")[0]}"', shown)
        self.assertIn(f'# job_socket = "{setting("spillwayd-jobs.socket", "ListenSequentialPacket")[0]}"', (UNITS / "spillway.toml").read_text())
        self.assertIn(f'socket_mode = 0o{setting("spillwayd.socket", "SocketMode")[0][1:]}', shown)


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class UnitsTest(agent_test.AgentFixture):
    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)

    def test_systemd_verifies_the_units(self):
        names = "spillwayd.service", "spillwayd.socket", "spillwayd-jobs.socket"
        for name in names:
            text = (UNITS / name).read_text().replace("/usr/bin/", f"{agent_test.BUILD}/bin/")
            # The manual pages are not installed here.
            (self.folder / name).write_text(re.sub(r"(?m)^Documentation=.*\n", "", text))
        checked = self.analyze("verify", *(str(self.folder / name) for name in names))
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_exposure_is_low(self):
        checked = self.analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(UNITS / "spillwayd.service"))
        self.assertEqual(checked.returncode, 0, checked.stdout[-300:])


def listens(path):
    # The columns of /proc/net/unix: number, references, protocol, flags (__SO_ACCEPTCON where it listens), type, state, inode, path.
    sockets = (line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:])
    return any(len(row) == 8 and row[7] == str(path) and int(row[3], 16) & 0x10000 for row in sockets)


@unittest.skipUnless(shutil.which("systemd-socket-activate"), "systemd-socket-activate is not installed")
class SocketTest(agent_test.AgentFixture):
    def test_agent_starts_on_the_first_connection_and_leaves_the_socket(self):
        log = open(self.folder / "log", "ab")
        self.addCleanup(log.close)
        self.agent = subprocess.Popen(
            ["systemd-socket-activate", "--seqpacket", "-l", self.path, agent_test.BUILD / "bin/spillwayd", "--config",
             self.folder / "spillway.toml"], stderr=log, stdout=log)
        # The path exists from bind on, and until listen a connection is refused.
        while not listens(self.path):
            self.assertIsNone(self.agent.poll())

        self.assertEqual(self.spillway("status").returncode, 0)
        self.assertEqual(self.stop(), 0)
        self.assertTrue(self.path.exists())

    def test_a_socket_of_the_units_name_is_for_jobs_alone(self):
        jobs = self.folder / "jobs.sock"
        log = open(self.folder / "log", "ab")
        self.addCleanup(log.close)
        self.agent = subprocess.Popen(
            ["systemd-socket-activate", "--seqpacket", "-l", jobs, "-l", self.path,
             f"--fdname={setting('spillwayd-jobs.socket', 'FileDescriptorName')[0]}:spillwayd.socket",
             agent_test.BUILD / "bin/spillwayd", "--config", self.folder / "spillway.toml"], stderr=log, stdout=log)
        while not listens(self.path):
            self.assertIsNone(self.agent.poll())

        self.assertEqual(self.spillway("drain").returncode, 0)
        refused = subprocess.run([agent_test.BUILD / "bin/spillway", "undrain", "--socket", jobs], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertEqual(self.stop(), 0)
        self.assertTrue(jobs.exists())


if __name__ == "__main__":
    agent_test.main()
