#!/usr/bin/env python3
"""A socket for jobs alone beside the agent's other one: whoever connects there, even root, gets a budget and changes nobody's.

    usage: job_socket_test.py --build BUILD [unittest arguments]
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import agent_test  # noqa: E402
from agent_test import ADMISSION, ERROR, GIB, HELLO, Session  # noqa: E402


class JobSocketFixture(agent_test.AgentFixture):
    def setUp(self):
        super().setUp()
        self.jobs = self.folder / "jobs/agent.sock"

    def configure(self, more="", **settings):
        super().configure(more, **settings)
        path = self.folder / "spillway.toml"
        path.write_text(path.read_text().replace("[agent]\n", f'[agent]\njob_socket = "{self.folder}/jobs/agent.sock"\n', 1))

    def at_the_jobs(self, *arguments):
        return subprocess.run([agent_test.BUILD / "bin/spillway", *arguments, "--socket", self.jobs], capture_output=True, text=True)

    def budget(self, path):
        session = Session(path)
        self.addCleanup(session.socket.close)
        session.hello()
        session.register(2 * GIB)
        session.next(ADMISSION)
        return session.grant()[1]


class JobSocketTest(JobSocketFixture):
    def test_jobs_get_budgets_through_both(self):
        self.start()
        self.assertGreater(self.budget(self.jobs), 0)
        self.assertGreater(self.budget(self.path), 0)

    def test_nobody_operates_the_node_through_it(self):
        self.start()
        self.budget(self.path)
        job, = json.loads(self.spillway("status", "--json").stdout)["jobs"]
        for command in (("budget", "set", job["job"], "1GiB"), ("drain",), ("undrain",), ("config", "reload"), ("config", "log", "debug")):
            ran = self.at_the_jobs(*command)
            self.assertEqual((ran.returncode, command), (3, command), ran.stderr)
            self.assertIn("through this socket, which is for jobs, nobody may change something", ran.stderr)
        status = json.loads(self.spillway("status", "--json").stdout)
        self.assertFalse(status["draining"])
        self.assertEqual(status["jobs"][0]["devices"][0]["limit_bytes"], job["devices"][0]["limit_bytes"])
        # The other socket still takes what operators say.
        self.assertEqual(self.spillway("drain").returncode, 0)

    def test_a_stranger_sees_the_devices_and_no_job(self):
        self.start()
        self.budget(self.path)
        status = json.loads(self.at_the_jobs("status", "--json").stdout)
        self.assertEqual((len(status["devices"]), status["jobs"]), (1, []))

    def test_its_folder_has_nothing_else(self):
        os.umask(0o77)
        self.addCleanup(os.umask, 0o22)
        self.start()
        self.budget(self.jobs)
        self.assertEqual(self.spillway("drain").returncode, 0)  # which writes the state
        self.assertEqual([path.name for path in self.jobs.parent.iterdir()], ["agent.sock"])
        self.assertEqual((self.jobs.parent.stat().st_mode & 0o777, self.jobs.stat().st_mode & 0o777), (0o755, 0o666))
        self.stop()
        self.assertFalse(self.jobs.exists())

    def test_both_sockets_outlive_a_new_program(self):
        notices = self.start()
        self.agent.send_signal(signal.SIGUSR2)
        while b"READY=1" not in notices.recv(4096):
            pass
        self.assertGreater(self.budget(self.jobs), 0)
        self.assertEqual(self.at_the_jobs("drain").returncode, 3)
        self.assertEqual(self.spillway("drain").returncode, 0)

    def allocation(self, *options):
        return self.spillway("cdi", "--allocation", "a", *options)

    def refused_at(self, path):
        """The agent's reason: this process is in no container, pod or Slurm job."""
        session = Session(path)
        self.addCleanup(session.socket.close)
        session.say(HELLO, struct.pack("<HHBi", 1, 1, 1, 0))
        return session.next(ERROR)[5:].split(b"\0")[0].decode()

    def test_an_allocations_socket_is_in_one_folder_whichever_agent_runs(self):
        notices = self.start()
        ran = self.allocation("--budget", "1GiB")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        path = self.folder / "allocations/a/agent.sock"
        mount = json.loads(ran.stdout)["devices"][0]["containerEdits"]["mounts"][1]
        self.assertEqual((mount["hostPath"], mount["containerPath"]), (str(path.parent.resolve()), "/run/spillway"))
        folder = path.parent.stat()
        self.assertIn("is in no container", self.refused_at(path))
        self.agent.send_signal(signal.SIGUSR2)
        while b"READY=1" not in notices.recv(4096):
            pass
        self.assertIn("is in no container", self.refused_at(path))
        for how in signal.SIGKILL, signal.SIGTERM:
            self.stop(how)
            self.start()
            self.assertIn("is in no container", self.refused_at(path))
        self.assertEqual((path.parent.stat().st_ino, folder.st_mode & 0o777), (folder.st_ino, 0o755))
        self.assertEqual(self.allocation("--close").returncode, 0)
        self.assertFalse(path.parent.exists())
        self.assertEqual(self.allocation("--close").returncode, 3)
        self.stop(signal.SIGKILL)
        self.start()
        self.assertFalse(path.parent.exists())

    @unittest.skipIf(os.geteuid() != 0, "only root runs something as another user")
    def test_an_operator_opens_an_allocation_below_a_folder_that_only_the_agent_passes(self):
        path = self.folder / "spillway.toml"
        path.write_text(path.read_text().replace("[agent]\n", "[agent]\noperators = [65534]\nsocket_mode = 0o666\n", 1))
        self.folder.chmod(0o755)
        self.start()
        command = agent_test.BUILD / "bin/spillway", "cdi", "--allocation", "a", "--socket", self.path
        ran = subprocess.run(command, capture_output=True, text=True, user=65534, group=65534, extra_groups=[])
        self.assertEqual(ran.returncode, 0, ran.stderr)
        folder = self.folder.resolve() / "allocations"
        self.assertEqual(json.loads(ran.stdout)["devices"][0]["containerEdits"]["mounts"][1]["hostPath"], str(folder / "a"))
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertNotEqual(subprocess.run(["ls", folder / "a"], capture_output=True, user=65534, group=65534, extra_groups=[]).returncode, 0)

    def test_a_socket_that_could_not_be_made_at_the_start_is_made_later(self):
        self.start()
        self.assertEqual(self.allocation().returncode, 0)
        self.stop()
        path = self.folder / "allocations/a/agent.sock"
        path.parent.rmdir()
        path.parent.touch()
        self.start()
        self.assertEqual(self.log().count("allocation a has no socket"), 1, self.log())
        path.parent.unlink()
        self.assertTrue(agent_test.wait_for(path.exists, bool, 30))
        self.assertIn("is in no container", self.refused_at(path))
        self.assertEqual(self.log().count("allocation a has no socket"), 1)

    def test_after_a_reboot_its_file_goes_too(self):
        self.start()
        file = self.folder / "cdi.json"
        self.assertEqual(self.allocation("-o", file).returncode, 0)
        self.assertEqual(self.allocation("--close").returncode, 0)
        self.assertEqual(self.at_the_jobs("cdi", "--allocation", "a", "--close", "-o", file).returncode, 3)
        self.assertTrue(file.exists(), "who may not close leaves it")
        self.assertEqual(self.allocation("--close", "-o", file).returncode, 3)
        self.assertFalse(file.exists())

    def test_nobody_opens_an_allocation_through_the_jobs_socket(self):
        self.start()
        ran = self.at_the_jobs("cdi", "--allocation", "a")
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertFalse((self.folder / "allocations").exists())

    def start_on_passed(self, *paths, names="a:b"):
        listeners = []
        for path in paths:
            path.parent.mkdir(exist_ok=True)
            listeners.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            self.addCleanup(listeners[-1].close)
            listeners[-1].bind(str(path))
            listeners[-1].listen()
        log = open(self.folder / "log", "ab")
        self.addCleanup(log.close)
        places = " ".join(f"{3 + i}<&{listener.fileno()}" for i, listener in enumerate(listeners))
        self.agent = subprocess.Popen(
            ["bash", "-c", f'LISTEN_FDS={len(paths)} LISTEN_FDNAMES={names} LISTEN_PID=$$ exec "$@" {places}', "bash",
             agent_test.BUILD / "bin/spillwayd", "--config", self.folder / "spillway.toml"],
            stdout=log, stderr=log, pass_fds=[listener.fileno() for listener in listeners])

    # Regression: systemd names a socket after its unit, unless the unit says FileDescriptorName=jobs. Then every
    # container's root operated the node.
    def test_a_passed_socket_without_its_name_is_for_jobs_all_the_same(self):
        self.start_on_passed(self.jobs, self.path, names="renamed.socket:spillwayd.socket")
        self.assertEqual(self.at_the_jobs("drain").returncode, 3)
        self.assertEqual(self.spillway("drain").returncode, 0)

    def test_an_unknown_passed_socket_is_an_error(self):
        self.start_on_passed(self.path, self.folder / "other.sock", names="spillwayd.socket:spillwayd-other.socket")
        self.assertEqual(self.agent.wait(agent_test.PATIENCE_S), 1)
        self.assertIn("which is neither [agent] socket nor job_socket", self.log())
        self.agent = None

    def test_a_second_passed_socket_is_an_error(self):
        self.start_on_passed(self.path, self.folder / "other.sock", names="listener:listener")
        self.assertEqual(self.agent.wait(agent_test.PATIENCE_S), 1)
        self.assertIn("two sockets were passed on for [agent] socket", self.log())
        self.agent = None

    def test_what_lies_beside_it_is_an_error(self):
        self.configure('[planning]\nstore = "' + str(self.folder) + '/jobs/plans"\n')
        checked = subprocess.run([agent_test.BUILD / "bin/spillwayd", "--check", "--config", self.folder / "spillway.toml"],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("[planning] store is in the folder of [agent] job_socket", checked.stderr)
        # The command line can name the socket, too.
        self.configure()
        ran = subprocess.run([agent_test.BUILD / "bin/spillwayd", "--config", self.folder / "spillway.toml", "--socket", self.jobs.parent / "x"],
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("[agent] socket is in the folder of [agent] job_socket", ran.stderr)


if __name__ == "__main__":
    agent_test.main()
