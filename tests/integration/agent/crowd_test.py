#!/usr/bin/env python3
"""Crowds of silent or slow clients of the real spillwayd, over TCP and its own socket: other
clients are still served.

    usage: crowd_test.py --build BUILD [unittest arguments]
"""
import os
import resource
import signal
import socket
import time
import unittest

import agent_test

REQUEST = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


def all_of(connection):
    """Everything received until the other side closes."""
    connection.settimeout(agent_test.PATIENCE_S)
    got = b""
    while piece := connection.recv(65536):
        got += piece
    return got


class CrowdTest(agent_test.AgentFixture):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 16384)), hard))

    def connect(self):
        one = socket.create_connection(("127.0.0.1", self.port), timeout=agent_test.PATIENCE_S)
        self.addCleanup(one.close)
        return one

    def seconds_for(self, page):
        begin = time.monotonic()
        self.assertEqual(self.get(page)[0], 200)
        return time.monotonic() - begin

    # Regression: four connections blocked both threads for five seconds each; 300 kept every prober
    # out for minutes.
    def test_pages_are_served_at_once_beside_silent_connections(self):
        self.start()
        crowd = []
        for size in (4, 300, 2000):
            crowd += [self.connect() for _ in range(size - len(crowd))]
            took_s = [self.seconds_for(page) for page in ("/healthz", "/readyz", "/metrics", "/api/v1/status")]
            print(f"beside {size} silent connections: healthz {took_s[0] * 1e3:.1f} ms, readyz {took_s[1] * 1e3:.1f} ms, "
                  f"metrics {took_s[2] * 1e3:.1f} ms, status {took_s[3] * 1e3:.1f} ms")
            self.assertLess(max(took_s), 2)
        self.assertLess(len(os.listdir(f"/proc/{self.agent.pid}/fd")), 400, "so many are kept open")

    def test_slow_requests_delay_no_other_client(self):
        self.start()
        slow = [self.connect() for _ in range(100)]
        request = REQUEST % b"/healthz"
        for at in range(len(request)):
            for one in slow:
                one.sendall(request[at:at + 1])
            if at % 10 == 0:
                self.assertLess(self.seconds_for("/healthz"), 2)

        for one in slow:
            self.assertTrue(all_of(one).endswith(b"\r\n\r\nok\n"))

    def test_a_client_that_reads_no_answer_delays_no_other(self):
        self.start()
        deaf = []
        for _ in range(300):
            one = socket.socket()
            self.addCleanup(one.close)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            one.connect(("127.0.0.1", self.port))
            one.sendall(REQUEST % b"/metrics")
            deaf.append(one)

        self.assertLess(self.seconds_for("/metrics"), 2)
        self.assertLess(self.seconds_for("/healthz"), 2)

    def test_silent_connections_are_closed_and_unfinished_requests_get_an_error(self):
        self.start()
        silent, unfinished = self.connect(), self.connect()
        unfinished.sendall(b"GET /healthz HTTP/1.1\r\nHost:")

        self.assertTrue(all_of(unfinished).startswith(b"HTTP/1.1 408 "))
        self.assertEqual(all_of(silent), b"")

    def answer_to(self, request):
        one = self.connect()
        one.sendall(request)
        return all_of(one)

    def test_answers_follow_http(self):
        self.start()
        head, body = self.answer_to(REQUEST % b"/healthz").split(b"\r\n\r\n")
        self.assertEqual(body, b"ok\n")
        for field in (b"\r\nContent-Length: 3", b"\r\nConnection: close", b"\r\nDate: "):
            self.assertIn(field, head)
        asked = (REQUEST % b"/healthz").replace(b"GET", b"HEAD")
        self.assertTrue(self.answer_to(asked).endswith(b"Content-Length: 3\r\nConnection: close\r\n\r\n"))
        self.assertIn(b"\r\nAllow: GET, HEAD\r\n", self.answer_to((REQUEST % b"/metrics").replace(b"GET", b"POST")))
        for request, status in ((REQUEST % b"/elsewhere", 404), (REQUEST % b"/metrics?x=1", 200), (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
                                (b"GET /healthz HTTP/1.1\r\n\r\n", 400), (b"hello\r\n\r\n", 400), (b"\x16\x03\x01\n", 400),
                                (b"GET / HTTP/3.0\r\n\r\n", 505), (b"GET /" + b"a" * 9000, 414),
                                (b"GET / HTTP/1.1\r\nA: " + b"a" * 9000, 431)):
            self.assertTrue(self.answer_to(request).startswith(b"HTTP/1.1 %d " % status), (request[:40], status))

    # Regression: bytes after the request were unread when the socket was closed, and the reset
    # discarded the answer.
    def test_a_client_that_sends_several_requests_gets_its_answer(self):
        self.start()
        for _ in range(20):
            answer = self.answer_to(REQUEST % b"/healthz" + REQUEST % b"/metrics" + b"x" * 200_000)
            self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 1)
            self.assertTrue(answer.endswith(b"\r\n\r\nok\n"))

    def silent(self, count):
        crowd = []
        while len(crowd) < count:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.connect(str(self.path))
            self.addCleanup(one.close)
            crowd.append(one)
        return crowd

    # Regression: they filled the user's session limit. `spillway status` and every job of the user
    # were refused meanwhile.
    def test_silent_connections_to_its_socket_block_no_other_client(self):
        self.configure("[limits]\nsessions_per_user = 64\nconnections_per_second_per_user = 100000\n")
        self.start()
        for count in (64, 300):
            self.silent(count)
            begin = time.monotonic()
            self.assertEqual(self.spillway("status").returncode, 0)
            job = agent_test.Session(self.path)
            self.addCleanup(job.socket.close)
            job.hello()
            print(f"beside {count} silent sessions: status and a job's welcome {1e3 * (time.monotonic() - begin):.1f} ms")

    def silent_users(self, first_uid, users, each):
        """Processes of so many users, each with silent connections; returns a function that ends
        them."""
        os.chmod(self.folder, 0o755)
        pids = []
        for uid in range(first_uid, first_uid + users):
            ready, tell = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.setuid(uid)
                crowd = []
                for _ in range(each):
                    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    one.connect(str(self.path))
                    crowd.append(one)
                os.write(tell, b"1")
                signal.pause()
            os.close(tell)
            os.read(ready, 1)
            os.close(ready)
            pids.append(pid)
            self.addCleanup(lambda pid=pid: (os.kill(pid, signal.SIGKILL), os.waitpid(pid, 0)))

    @unittest.skipUnless(os.getuid() == 0, "takes several users")
    def test_silent_connections_of_several_users_block_no_other_client(self):
        self.configure("[limits]\nsessions = 128\nsessions_per_user = 64\nconnections_per_second_per_user = 100000\n")
        self.start()
        self.silent_users(4001, 4, 64)

        self.assertEqual(self.spillway("status").returncode, 0)
        job = agent_test.Session(self.path)
        self.addCleanup(job.socket.close)
        job.hello()

    def test_a_session_without_hello_is_closed(self):
        self.start()
        one = self.silent(1)[0]
        one.settimeout(agent_test.PATIENCE_S)
        self.assertIn(b"Hello did not come in time", one.recv(300))
        self.assertEqual(one.recv(300), b"")

    def test_the_agent_ends_at_once_beside_a_crowd(self):
        self.start()
        for _ in range(50):
            self.connect()
        begin = time.monotonic()

        self.assertEqual(self.stop(), 0)
        self.assertLess(time.monotonic() - begin, 2)


del agent_test.AgentTest

if __name__ == "__main__":
    agent_test.main()
