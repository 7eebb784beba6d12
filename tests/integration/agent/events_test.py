#!/usr/bin/env python3
"""The real spillwayd's live page without a browser: its files, its history, and its streams of
events, also beside clients that do not read theirs.

    usage: events_test.py --build BUILD [unittest arguments]
"""
import http.client
import json
import os
import pathlib
import socket
import time
import unittest
import urllib.request

import agent_test

ROOT = pathlib.Path(__file__).resolve().parents[3]
MOST_STREAMS = 32


class Stream:
    """A client that watches events."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=agent_test.PATIENCE_S)
        self.socket.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.fields = {}
        while (line := self.file.readline().decode().strip()) != "":
            name, _, value = line.partition(": ")
            self.fields[name] = value

    def close(self):
        self.file.close()
        self.socket.close()

    def block(self):
        """The next event's fields; EOFError at the end."""
        fields = {}
        while line := self.file.readline().decode():
            if line == "\n":
                return fields
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        raise EOFError

    def state(self):
        fields = self.block()
        while "data" not in fields:
            fields = self.block()
        return json.loads(fields["data"])


class EventsTest(agent_test.AgentFixture):
    def watch(self):
        stream = Stream(self.port)
        self.addCleanup(stream.close)
        return stream

    def test_a_stream_gives_the_state_every_second(self):
        self.start()
        session = agent_test.Session(self.path)
        session.hello()
        session.register(9 * agent_test.GIB)
        session.next(agent_test.ADMISSION)

        stream = self.watch()
        self.assertEqual((stream.status, stream.fields["Content-Type"], stream.fields["Cache-Control"]), (200, "text/event-stream", "no-store"))
        self.assertEqual(stream.block(), {"retry": "2000"})
        begin = time.monotonic()
        states = [stream.state() for _ in range(3)]
        self.assertLess(time.monotonic() - begin, 6)
        self.assertEqual([one["tick"] - states[0]["tick"] for one in states], [0, 1, 2])
        job = states[2]["jobs"][0]
        self.assertEqual(job["devices"][0]["now"]["budget_bytes"], self.budgeted())

        history = json.loads(self.get(f"/api/v1/jobs/{job['job']}/history")[1])
        self.assertEqual(history["series"][0]["budget_bytes"][-1], self.budgeted())
        self.assertEqual(self.get("/api/v1/jobs/nobody")[0], 404)
        self.assertEqual(json.loads(self.get(f"/api/v1/jobs/{job['job']}")[1])["job"], job["job"])
        session.socket.close()

    def test_streams_are_bounded_and_end_with_their_clients(self):
        self.start()
        streams = [self.watch() for _ in range(MOST_STREAMS)]
        refused = self.watch()
        self.assertEqual((refused.status, refused.fields["Retry-After"]), (503, "5"))
        self.assertEqual(self.get("/healthz")[0], 200)
        self.assertEqual({one.state()["schema"] for one in streams}, {1})

        streams[0].close()
        later = agent_test.wait_for(self.watch, lambda one: one.status == 200)
        self.assertEqual(later.state()["schema"], 1)

    def test_a_client_that_reads_no_event_delays_no_other_and_is_dropped(self):
        for number in range(40):  # so that an event is larger than a socket's buffer
            pathlib.Path(self.folder / "spillway.d").mkdir(exist_ok=True)
            (self.folder / f"spillway.d/{number}.toml").write_text(f'[[account]]\nname = "a{"x" * 8000}{number}"\n')
        self.start()
        deaf = socket.socket()
        self.addCleanup(deaf.close)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        deaf.connect(("127.0.0.1", self.port))
        deaf.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream = self.watch()
        ticks = [stream.state()["tick"] for _ in range(4)]
        self.assertEqual([tick - ticks[0] for tick in ticks], [0, 1, 2, 3])

        files = f"/proc/{self.agent.pid}/fd"
        before = len(os.listdir(files))
        self.assertEqual(agent_test.wait_for(lambda: len(os.listdir(files)), lambda count: count < before, 20), before - 1)
        self.assertGreater(stream.state()["tick"], ticks[3])

    def test_a_new_agent_begins_a_new_history(self):
        self.start()
        stream = self.watch()
        first = stream.state()
        self.stop()
        with self.assertRaises((EOFError, ConnectionResetError)):
            while True:
                stream.state()

        self.start()
        second = self.watch().state()
        self.assertNotEqual(second["agent_instance"], first["agent_instance"])
        self.assertLessEqual(second["tick"], 3)

    def test_the_page_allows_no_code_from_elsewhere(self):
        self.start()
        for path, kind, file in (("/", "text/html", "index.html"), ("/live.js", "text/javascript", "live.js"),
                                 ("/live.css", "text/css", "live.css"), ("/favicon.svg", "image/svg+xml", "favicon.svg")):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=agent_test.PATIENCE_S) as answer:
                self.assertEqual(answer.read().decode(), (ROOT / "dashboards/live" / file).read_text())
                self.assertEqual(answer.headers["Content-Type"].split(";")[0], kind)
                policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split(";"))
                self.assertEqual(policy["default-src"], "'none'")
                self.assertEqual({source for rule, source in policy.items() if rule != "default-src"}, {"'self'", "'none'"})
                self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        page = self.get("/")[1]
        for mark in ("<style", " style=", " onclick=", "http://", "https://", "<script>"):
            self.assertNotIn(mark, page)
        code = self.get("/live.js")[1]
        for mark in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            self.assertNotIn(mark, code)
        for path in ("/live.js.map", "/../etc/passwd", "/index.html"):
            self.assertEqual(self.get(path)[0], 404, path)

    def test_a_request_for_the_head_of_a_stream_gets_no_stream(self):
        self.start()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=agent_test.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("HEAD", "/api/v1/events")
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.read()), (200, b""))


del agent_test.AgentTest

if __name__ == "__main__":
    agent_test.main()
