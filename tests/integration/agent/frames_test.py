#!/usr/bin/env python3
"""Thousands of sessions with a running spillwayd, most with randomly broken frames. Other clients
are still served, and at the end no files or memory are leaked.

    usage: frames_test.py --build BUILD [unittest arguments]

    SPILLWAY_FRAMES_SESSIONS=20000: more sessions; SPILLWAY_FRAMES_SEED=N: others
"""
import os
import random
import re
import socket
import struct
import traceback
import unittest

import agent_test
from agent_test import ACCOUNT, ASK_SLABS, GIB, HELD_SLABS, HELLO, OBEYED, REGISTER, STEP_TIMES, USAGE
from hostile_test import LEAVING, POOL, RETURN_SLABS, SLAB, Sharer, frame

SESSIONS = int(os.environ.get("SPILLWAY_FRAMES_SESSIONS", 1500))
SEED = int(os.environ.get("SPILLWAY_FRAMES_SEED", 1))
SESSIONS_OF_A_PROCESS = 25
STRANGERS = (61021, 61022)  # users
NEWEST_KIND, NEWEST_VERSION = 28, 5
LIMITS = ("[limits]\nsessions = 4000\nsessions_per_user = 2000\nconnections_per_second_per_user = 100000\n"
          "messages_per_second = 100000\n")
# Memory that may stay: tables at their final size, slack of the heap.
ANSWER_S = 0.02
SLACK_BYTES = 2 << 20


class Nonsense:
    """Frames from one seed: some valid, some with flipped bits, some of other lengths, some with
    files."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def number(self):
        return self.draw.choice((0, 1, SLAB, 4 * GIB, -1, (1 << 63) - 1, -(1 << 63), self.draw.getrandbits(62)))

    def body(self, kind):
        number = self.number
        if kind == HELLO:
            return struct.pack("<HHBi", 1, self.draw.randrange(7), self.draw.randrange(3), self.draw.randrange(-1, 1 << 20))
        if kind == REGISTER:
            return struct.pack("<I16s6q", self.draw.randrange(3), agent_test.DEVICE, 16 * GIB, number(), number(), 0, number(), number())
        if kind == OBEYED:
            return struct.pack("<IQqq", 0, self.draw.getrandbits(8), number(), number())
        if kind == USAGE:
            return struct.pack("<IBB10q", 0, 1, 2, *(number() for _ in range(10)))
        if kind in (RETURN_SLABS, HELD_SLABS):
            return struct.pack("<I4Q", self.draw.randrange(5), *(self.draw.getrandbits(8) for _ in range(4)))
        if kind in (ACCOUNT, STEP_TIMES):
            return struct.pack("<I14q", 0, *(number() for _ in range(14)))
        return struct.pack("<I3q", self.draw.randrange(3), number(), number(), number())

    def frame(self):
        kind = self.draw.choice((REGISTER, OBEYED, USAGE, ASK_SLABS, HELD_SLABS, RETURN_SLABS, ACCOUNT, STEP_TIMES,
                                 self.draw.randrange(NEWEST_KIND + 2)))
        data = bytearray(frame(kind, self.body(kind), self.draw.randrange(1, NEWEST_VERSION + 1)))
        for _ in range(self.draw.choice((0, 0, 1, 4))):
            data[self.draw.randrange(len(data))] ^= 1 << self.draw.randrange(8)
        if self.draw.random() < 0.1:
            data = data[:self.draw.randrange(len(data))] + bytes(self.draw.choice((0, 0, 800)))
        return bytes(data)

    def talk(self, path, files):
        """One session, until the agent closes it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as own:
            own.connect(str(path))
            own.setblocking(False)
            try:
                if self.draw.random() < 0.9:
                    own.send(frame(HELLO, struct.pack("<HHBi", 1, NEWEST_VERSION, 1, 0), 1))
                for _ in range(self.draw.randrange(12)):
                    data = self.frame()
                    count = self.draw.choice((0, 0, 0, 1, 3))
                    socket.send_fds(own, [data], files[:count]) if count and data else own.send(data)
                own.settimeout(ANSWER_S)  # a closed client is not read to the end
                answer = True
                while answer:
                    answer, got = socket.recv_fds(own, 300, 16)[:2]
                    for file in got:
                        os.close(file)
            except (BlockingIOError, TimeoutError, ConnectionError):
                pass


def talk_sense(path):
    """A session like a job's: gets memory, slabs and a link slot, and leaves."""
    job = Sharer(path).begin()
    job.ask(2)
    job.say(USAGE, struct.pack("<IBB10q", 0, 1, 2, GIB, GIB, 0, 0, 0, 0, 0, 0, 0, 0))
    job.say(LEAVING, struct.pack("<i", 0))
    job.socket.close()


class FramesTest(agent_test.AgentFixture):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # for the strangers
        self.configure(POOL + LIMITS)
        self.start()

    def open_files(self):
        """Waits until the count is stable: the session of the status command may still be open."""
        looks = []

        def look():
            looks.append(len(os.listdir(f"/proc/{self.agent.pid}/fd")))
            return looks[-4:]

        return agent_test.wait_for(look, lambda last: len(last) == 4 and len(set(last)) == 1)[-1]

    def resident_bytes(self):
        with open(f"/proc/{self.agent.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def in_process(self, user, act):
        """Runs in a child as that user; on return, the agent has forgotten the child."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                if user:
                    os.setgid(user)
                    os.setuid(user)
                act()
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def held(self):
        """Everything of the node that any session holds."""
        now = self.status()
        pool = now["host"]["pool"]
        return [len(now["jobs"]), now["sessions"], now["devices"][0]["budgeted_bytes"], now["host"]["budgeted_bytes"],
                *(pool[state] for state in ("leased_bytes", "kept_bytes", "ending_bytes", "making_bytes"))]

    def live_through(self, name, users, talk, look=lambda: None):
        """Runs all sessions. Returns the agent's files and memory after a third of them and at
        the end, when all slabs are back. An unused slab remains a file for a while."""
        processes = max(3, SESSIONS // SESSIONS_OF_A_PROCESS)
        held, seen = self.held(), []
        for number in range(processes):
            self.in_process(users[number % len(users)], lambda number=number: talk(number))
            look()
            if number in (processes // 3, processes - 1):
                self.assertEqual(agent_test.wait_for(self.held, lambda now: now == held), held)
                unused = self.status()["host"]["pool"]["unused_bytes"] // SLAB
                seen.append((self.open_files() - unused, self.resident_bytes()))
        (files, resident_bytes), (files_at_end, resident_at_end) = seen
        print(f"{name}: {processes * SESSIONS_OF_A_PROCESS} sessions of {processes} processes; after a third of them the agent has "
              f"{files} files and {resident_bytes >> 10} KiB, at the end {files_at_end} and {resident_at_end >> 10}")
        self.assertEqual(files_at_end, files)
        self.assertLess(resident_at_end - resident_bytes, SLACK_BYTES)

    @unittest.skipUnless(os.getuid() == 0, "an operator's nonsense would be obeyed: takes root, for other users")
    def test_randomly_broken_frames_disturb_no_other_client(self):
        neighbour = Sharer(self.path).begin()
        told = 0

        def talk(number):
            nonsense = Nonsense(1000 * SEED + number)
            files = [os.open("/dev/null", os.O_RDONLY), os.memfd_create("nonsense"), os.open("/proc/self/status", os.O_RDONLY)]
            for _ in range(SESSIONS_OF_A_PROCESS):
                nonsense.talk(self.path, files)

        def look():
            nonlocal told
            told += 1
            neighbour.say(USAGE, struct.pack("<IBB10q", 0, 1, 2, 4 * GIB * 8 // 9, GIB, 0, 0, 0, 0, 0, told, 0, 0))
            own = f"local-{os.getpid()}"
            self.assertEqual([job["devices"][0]["iterations"] for job in self.status()["jobs"] if job["job"] == own], [told])

        self.live_through("nonsense", STRANGERS, talk, look)
        faulty = int(re.search(r"spillway_faulty_frames_total (\d+)", self.get("/metrics")[1])[1])
        self.assertGreater(faulty, SESSIONS // 10, "hardly a frame was broken")

    def test_sessions_leak_neither_files_nor_memory(self):
        def talk(_):
            for _ in range(SESSIONS_OF_A_PROCESS):
                talk_sense(self.path)

        self.live_through("jobs", STRANGERS if os.getuid() == 0 else (0,), talk)


if __name__ == "__main__":
    agent_test.main()
