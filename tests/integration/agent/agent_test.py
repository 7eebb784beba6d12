#!/usr/bin/env python3
"""The real spillwayd: grants over its socket, deaths on both sides, reloads, limits, the command
line.

    usage: agent_test.py --build BUILD [unittest arguments]
"""
import argparse
import json
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import skips  # noqa: E402
from ports import free_port  # noqa: E402

GIB = 1 << 30
DEVICE = bytes([1]) + bytes(15)
HELLO, WELCOME, REGISTER, ADMISSION, GRANT, OBEYED, USAGE, GOODBYE, ERROR = range(1, 10)
ASK_SLABS, HELD_SLABS, ACCOUNT, STEP_TIMES = 15, 18, 26, 27
PATIENCE_S = 10
CONFIG = """
[agent]
http = "127.0.0.1:{port}"
resume_ms = {resume_ms}
usage_interval_ms = {usage_interval_ms}
[devices]
find = false
reserve = 0
[arbiter]
headroom = 0
[[device]]
uuid = "GPU-01000000-0000-0000-0000-000000000000"
memory = "16GiB"
"""
BUILD = None


def frame(kind, body, version=1):
    return (struct.pack("<4sHHII", b"SPWY", version, kind, 256, 0) + body).ljust(256, b"\0")


def wait_for(look, is_it, patience_s=PATIENCE_S):
    """Polls `look` until `is_it` holds or `patience_s` ends; returns its last result."""
    deadline = time.monotonic() + patience_s
    while True:
        seen = look()
        if is_it(seen) or time.monotonic() > deadline:
            return seen
        time.sleep(0.05)


class Session:
    """A job's side of a connection, byte by byte."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self.version = 1

    def say(self, kind, body):
        self.socket.send(frame(kind, body, self.version))

    def next(self, kind):
        data = self.socket.recv(300)
        if not data:
            raise EOFError
        got = struct.unpack_from("<H", data, 6)[0]
        assert got == kind, f"kind {got} instead of {kind}: {data[16:200]}"
        return data[16:]

    def is_answered(self, within_s):
        return bool(select.select([self.socket], [], [], within_s)[0])

    def hello(self, newest=1):
        self.say(HELLO, struct.pack("<HHBi", 1, newest, 1, 0))
        self.version = newest
        return self.next(WELCOME)

    def register(self, wanted, held=0, device=DEVICE):
        self.say(REGISTER, struct.pack("<I16s6q", 0, device, 16 * GIB, wanted * 8 // 9, 0, 0, held, 0))

    def grant(self):
        """serial, budget, deadline in ms, reason"""
        body = self.next(GRANT)
        _, serial, budget, _, _, deadline, reason = struct.unpack_from("<IQqqiIB", body)
        return serial, budget, deadline, reason

    def obey(self, serial, held):
        self.say(OBEYED, struct.pack("<IQqq", 0, serial, held, 0))


class Job:
    """A process that holds a session, so that it can be killed."""

    def __init__(self, path, wanted):
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            session = Session(path)
            session.hello()
            session.register(wanted)
            session.next(ADMISSION)
            os.write(tell, struct.pack("<Q", session.grant()[1]))
            while True:
                signal.pause()
        os.close(tell)
        self.granted = struct.unpack("<Q", os.read(ready, 8))[0]
        os.close(ready)

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


class AgentFixture(unittest.TestCase):
    """An agent with its own socket and port."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix=f"spillway-agent-{os.getpid()}-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "agent.sock"
        self.port = free_port()
        self.agent = None
        self.configure()
        self.addCleanup(self.stop)

    def configure(self, more="", resume_ms=0, usage_interval_ms=500):
        settings = CONFIG.format(port=self.port, resume_ms=resume_ms, usage_interval_ms=usage_interval_ms)
        (self.folder / "spillway.toml").write_text(settings + more)

    def start(self, socket_option=True, **environment):
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notices.settimeout(PATIENCE_S)
        notify_path = self.folder / f"notify.{time.monotonic_ns()}"
        notices.bind(str(notify_path))
        log = open(self.folder / "log", "ab")
        self.agent = subprocess.Popen(
            [BUILD / "bin/spillwayd", "--config", self.folder / "spillway.toml", *(["--socket", self.path] if socket_option else [])],
            stdout=log, stderr=log, env=dict(os.environ, NOTIFY_SOCKET=str(notify_path), **environment))
        log.close()
        self.assertIn(b"READY=1", notices.recv(4096))
        self.addCleanup(notices.close)
        return notices

    def stop(self, how=signal.SIGTERM):
        if self.agent is None:
            return None
        self.agent.send_signal(how)
        code = self.agent.wait(PATIENCE_S)
        self.agent = None
        return code

    def log(self):
        return (self.folder / "log").read_text()

    def spillway(self, *arguments):
        return subprocess.run([BUILD / "bin/spillway", *arguments, "--socket", self.path], capture_output=True, text=True)

    def status(self):
        return json.loads(self.spillway("status", "--json").stdout)

    def budgeted(self):
        return self.status()["devices"][0]["budgeted_bytes"]

    def get(self, page):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{page}", timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


class AgentTest(AgentFixture):
    def test_killed_job_releases_its_memory_within_a_tenth_of_a_second(self):
        self.start()
        took_s = [self.time_until_given_back() for _ in range(3)]  # on a busy machine one may be slow

        self.assertLess(min(took_s), 0.1)
        self.assertIn("job ended job=local-", self.log())

    def time_until_given_back(self):
        job = Job(self.path, 12 * GIB)
        self.addCleanup(job.kill)
        self.assertEqual(self.budgeted(), job.granted)
        waiting = Session(self.path)
        waiting.hello()
        waiting.register(16 * GIB)
        waiting.next(ADMISSION)
        waiting.grant()
        begin = time.monotonic()
        job.kill()
        self.assertGreater(waiting.grant()[1], 15 * GIB)
        waiting.say(GOODBYE, struct.pack("<i", 0))
        waiting.socket.close()
        return time.monotonic() - begin

    def test_restarted_agent_restores_its_records_to_the_byte(self):
        self.start()
        session = Session(self.path)
        session.hello()
        session.register(9 * GIB)
        session.next(ADMISSION)
        serial, budget, _, _ = session.grant()
        session.obey(serial, budget)

        self.stop(signal.SIGKILL)
        self.assertRaises((EOFError, ConnectionError), session.next, GRANT)
        self.configure(resume_ms=500)
        self.start()
        again = Session(self.path)
        again.hello()
        again.register(9 * GIB, held=budget)
        again.next(ADMISSION)

        self.assertEqual(again.grant()[1::2], (budget, 7))  # kept
        self.assertEqual(self.budgeted(), budget)

    def test_operator_changes_the_budget_of_a_running_job(self):
        self.start()
        session = Session(self.path)
        session.hello()
        session.register(12 * GIB)
        session.next(ADMISSION)
        serial, budget, _, _ = session.grant()
        session.obey(serial, budget)
        job = self.status()["jobs"][0]["job"]

        self.assertEqual(self.spillway("budget", "set", job, "6GiB", "--dry-run").stdout,
                         f"the terms of {job} are changed (would be done)\n")
        self.assertEqual(self.spillway("budget", "set", job, "6GiB").returncode, 0)
        serial, budget, deadline, _ = session.grant()
        self.assertEqual((budget, deadline), (6 * GIB, 2000))
        session.obey(serial, budget)
        self.assertEqual(self.spillway("budget", "set", job, "12GiB").returncode, 0)
        self.assertGreater(session.grant()[1], 11 * GIB)
        beyond = self.spillway("budget", "set", job, "--guaranteed", "4GiB", "2GiB")  # regression: succeeded, with 2 GiB guaranteed
        self.assertEqual(beyond.returncode, 3)
        self.assertIn("its limit on device 0 is 2.0 GiB", beyond.stderr)
        refused = self.spillway("budget", "set", job, "--guaranteed", "20GiB", "20GiB")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("device 0 has only 16.0 GiB", refused.stderr)

    def test_reload_is_all_or_nothing(self):
        self.start()
        session = Session(self.path)
        session.hello()
        session.register(12 * GIB)
        session.next(ADMISSION)
        session.grant()

        self.configure('[defaults]\nlimit = "4GiB"\nwieght = 3\n')
        refused = self.spillway("config", "reload")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("there is no setting 'wieght'; do you mean 'weight'?", refused.stderr)
        self.assertFalse(self.status()["last_reload_succeeded"])
        self.configure('[defaults]\nlimit = "4GiB"\n')
        self.agent.send_signal(signal.SIGHUP)
        self.assertEqual(session.grant()[1], 4 * GIB)
        self.assertIn("reload: [defaults] limit: unset -> 4GiB", self.log())

    def test_log_level_changes_while_it_runs(self):
        self.start()
        self.assertEqual(self.spillway("config", "log", "debug").returncode, 0)
        session = Session(self.path)
        session.socket.send(b"x")
        session.next(ERROR)
        self.assertIn("is closed: a frame with a fault", self.log())

        refused = self.spillway("config", "log", "loud")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("the levels are trace, debug, info, warn and error", refused.stderr)

    def test_drained_node_admits_no_job(self):
        self.start()
        self.assertEqual(self.get("/readyz"), (200, "ready\n"))
        self.assertEqual(self.spillway("drain").returncode, 0)
        session = Session(self.path)
        session.hello()
        session.register(GIB)
        self.assertEqual(session.next(ADMISSION)[4], 2)  # queued

        self.assertEqual(self.spillway("undrain").returncode, 0)
        self.assertEqual(session.next(ADMISSION)[4], 1)
        session.grant()

    def test_garbage_ends_only_the_session_that_sent_it(self):
        self.start()
        good = Session(self.path)
        good.hello()
        for garbage in (b"x", b"x" * 256, frame(HELLO, b"\xff" * 240), frame(99, b""), b"x" * 5000):
            bad = Session(self.path)
            bad.socket.send(garbage)
            self.assertIn(bad.next(ERROR)[0], (1, 2))
            self.assertRaises((EOFError, ConnectionError), bad.next, ERROR)

        good.register(GIB)
        good.next(ADMISSION)

    def test_sessions_beyond_a_users_limit_are_refused_with_the_reason(self):
        self.configure("[limits]\nsessions_per_user = 3\n")
        self.start()
        sessions = [Session(self.path) for _ in range(3)]
        for session in sessions:  # sessions without memory would be evicted
            session.hello()
            session.register(GIB)
            session.next(ADMISSION)
        self.assertEqual(Session(self.path).next(ERROR)[0], 4)

    def test_pages_and_metrics(self):
        self.start()
        self.assertEqual(self.get("/healthz"), (200, "ok\n"))
        self.assertEqual(json.loads(self.get("/api/v1/status")[1])["schema"], 1)
        status, metrics = self.get("/metrics")
        self.assertEqual(status, 200)
        checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        self.assertEqual(self.get("/elsewhere")[0], 404)

    def test_watchdog_is_fed_and_the_end_is_announced(self):
        notices = self.start(WATCHDOG_USEC="200000")
        told = [notices.recv(4096) for _ in range(8)]  # including files for the supervisor to keep
        self.assertGreaterEqual(told.count(b"WATCHDOG=1"), 2)
        self.assertEqual(self.stop(), 0)
        told = b""
        while told != b"STOPPING=1":
            told = notices.recv(4096)
        self.assertFalse(self.path.exists())

    def start_on_passed_socket(self, kind):
        listener = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(listener.close)
        listener.bind(str(self.path))
        listener.listen()
        log = open(self.folder / "log", "ab")
        self.addCleanup(log.close)
        self.agent = subprocess.Popen(
            ["sh", "-c", f'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@" 3<&{listener.fileno()}', "sh", BUILD / "bin/spillwayd",
             "--config", self.folder / "spillway.toml"], stdout=log, stderr=log, pass_fds=[listener.fileno()])

    def test_socket_of_a_supervisor_is_taken_over(self):
        self.start_on_passed_socket(socket.SOCK_SEQPACKET)

        self.assertEqual(self.spillway("status").returncode, 0)
        self.assertEqual(self.spillway("jobs").stdout.splitlines()[-1], "no jobs")
        self.stop()
        self.assertTrue(self.path.exists(), "it is the supervisor's")

    # Regression: with ListenStream= the agent said READY, and no client could reach it.
    def test_socket_of_another_type_is_refused(self):
        self.start_on_passed_socket(socket.SOCK_STREAM)

        self.assertEqual(self.agent.wait(PATIENCE_S), 1)
        self.assertIn("not of type SEQPACKET", self.log())
        self.agent = None

    # Regression: the second agent served beside the first, which became unreachable. A device was
    # budgeted twice.
    def test_second_agent_takes_nothing_from_the_first(self):
        self.start()
        second = subprocess.run([BUILD / "bin/spillwayd", "--config", self.folder / "spillway.toml", "--socket", self.path],
                                capture_output=True, text=True, timeout=PATIENCE_S)

        self.assertEqual(second.returncode, 1)
        self.assertIn("Address already in use", second.stderr)
        self.assertEqual(self.spillway("status").returncode, 0)

    # Regression: both agents served the port, and each scrape reached one by chance. 99999 became
    # another port.
    def test_a_taken_or_invalid_port_is_refused(self):
        self.start()
        other = self.folder / "other.toml"
        for port, why in ((self.port, "cannot listen on"), (99999, "is no address and port"), ("9477x", "is no address and port")):
            other.write_text(CONFIG.format(port=port, resume_ms=0, usage_interval_ms=500))
            second = subprocess.run([BUILD / "bin/spillwayd", "--config", other, "--socket", self.folder / "other.sock"],
                                    capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(second.returncode, 1)
            self.assertIn(why, second.stderr)

    def test_a_chosen_port_is_announced(self):
        self.port = 0
        self.configure()
        self.start()
        wait_for(self.log, lambda log: "pages at" in log)
        self.port = int(self.log().split("pages at 127.0.0.1:")[1].split()[0])
        self.assertEqual(self.get("/healthz"), (200, "ok\n"))

    # Regression: two clients with persistent connections, like Prometheus, occupied both threads.
    # /healthz, and the agent's end, waited five seconds.
    def test_persistent_connections_delay_no_other_client(self):
        self.start()
        kept = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(2)]
        for one in kept:
            self.addCleanup(one.close)
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n")
            self.assertIn(b"200", one.recv(4096))
        begin = time.monotonic()

        self.assertEqual(self.get("/healthz"), (200, "ok\n"))
        self.assertEqual(self.stop(), 0)
        self.assertLess(time.monotonic() - begin, 2)

    # Regression: the agent ended, and the node was without one.
    def test_does_not_restart_with_an_invalid_configuration(self):
        self.start()
        self.configure("[agnet]\n")
        self.agent.send_signal(signal.SIGUSR2)
        wait_for(self.log, lambda log: "goes on as it is" in log)

        self.assertIn("do you mean 'agent'?", self.log())
        self.assertEqual(self.spillway("status").returncode, 0)

    # An editor or a deployment that fails midway must not reset every job to the defaults.
    def test_reload_without_the_file_changes_nothing(self):
        self.configure('[defaults]\nlimit = "4GiB"\n')
        self.start()
        (self.folder / "spillway.toml").unlink()
        refused = self.spillway("config", "reload")

        self.assertEqual(refused.returncode, 3)
        self.assertIn("spillway.toml cannot be read: No such file or directory", refused.stderr)
        self.assertFalse(self.status()["last_reload_succeeded"])

    def test_named_configuration_must_exist(self):
        begun = subprocess.run([BUILD / "bin/spillwayd", "--config", self.folder / "spilway.toml", "--socket", self.path],
                               capture_output=True, text=True, timeout=PATIENCE_S)

        self.assertEqual(begun.returncode, 1)
        self.assertIn("spilway.toml cannot be read: No such file or directory", begun.stderr)

    def test_without_an_agent_the_command_reports_it(self):
        refused = self.spillway("status")
        self.assertEqual(refused.returncode, 4)
        self.assertIn("cannot reach the agent", refused.stderr)


def main():
    global BUILD
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    BUILD = options.build.resolve()
    skips.main(rest, warnings="ignore")


if __name__ == "__main__":
    main()
