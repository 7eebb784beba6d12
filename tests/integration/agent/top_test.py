#!/usr/bin/env python3
"""`spillway top` on a real terminal (a pty) with a real spillwayd: its display, and that it
restores the terminal.

    usage: top_test.py --build BUILD [unittest arguments]
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import agent_test
from agent_test import GIB, PATIENCE_S, Session

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """A terminal, the command on it, and the command's output."""

    def __init__(self, command, rows=24, columns=80):
        self.ours, theirs = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(theirs)
        self.shown = b""
        self.process = subprocess.Popen([str(word) for word in command], stdin=theirs, stdout=theirs, stderr=theirs,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.theirs = theirs

    def resize(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait_s):
        if select.select([self.ours], [], [], wait_s)[0]:
            self.shown += os.read(self.ours, 65536)

    def await_shown(self, text, after=0):
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.shown[after:]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{text} is not shown: {self.shown[-3000:]}")
            self.read(0.1)

    def type(self, text):
        os.write(self.ours, text)

    def end(self):
        """The exit code, after all output has been read."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.05)
        self.read(0)
        return self.process.wait(0.1)

    def is_as_before(self):
        return termios.tcgetattr(self.theirs) == self.before and self.shown.rstrip().endswith(LEAVE)

    def close(self):
        for file in (self.theirs, self.ours):
            if file is not None:
                os.close(file)
        self.theirs = self.ours = None
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def is_blocked(pid, number):
    """Whether a process handles a signal itself."""
    with open(f"/proc/{pid}/status") as status:
        blocked = next(line for line in status if line.startswith("SigBlk:"))
    return int(blocked.split()[1], 16) >> (number - 1) & 1 == 1


class TopTest(agent_test.AgentFixture):
    def begin(self, rows=24, columns=80):
        terminal = Terminal([agent_test.BUILD / "bin/spillway", "top", "--socket", self.path], rows, columns)
        self.addCleanup(terminal.close)
        terminal.await_shown(b"q quits")
        return terminal

    def frames(self, terminal):
        """The lines of each frame, without the cursor codes."""
        text = terminal.shown.split(b"\x1b[H")[1:]
        return [[re.sub(rb"\x1b\[[?0-9]*[A-Za-z]|\r", b"", line) for line in frame.split(b"\r\n")] for frame in text]

    def test_q_and_control_c_quit_and_restore_the_terminal(self):
        self.start()
        for key in (b"q", b"\x03", b"\x04"):
            terminal = self.begin()
            self.assertTrue(terminal.shown.startswith(ENTER))
            self.assertNotEqual(termios.tcgetattr(terminal.theirs), terminal.before, "keys are echoed")
            terminal.type(key)
            self.assertEqual(terminal.end(), 0)
            self.assertTrue(terminal.is_as_before(), key)

    def test_other_keys_do_nothing_and_the_page_is_redrawn_every_second(self):
        self.start()
        terminal = self.begin()
        terminal.type(b"x")
        shown = len(terminal.shown)
        terminal.await_shown(b"q quits", after=shown)
        self.assertIsNone(terminal.process.poll())

    def test_a_page_is_cut_to_80_columns_and_the_terminals_rows(self):
        self.start()
        session = Session(self.path)
        self.addCleanup(session.socket.close)
        session.hello()
        session.register(GIB)
        session.next(agent_test.ADMISSION)
        high = self.begin(24, 80)
        high.await_shown(f"local-{os.getpid()}".encode())
        low = self.begin(3, 80)
        low.await_shown(b"more jobs than fit")
        for terminal, rows in ((high, 24), (low, 3)):
            for lines in self.frames(terminal):
                self.assertLessEqual(len(lines), rows)
                self.assertLessEqual(max(map(len, lines)), 80)

    def job(self):
        session = Session(self.path)
        self.addCleanup(session.socket.close)
        session.hello()
        session.register(GIB)
        session.next(agent_test.ADMISSION)
        session.grant()
        return session

    def test_names_are_cut_before_rates_and_numbers_never(self):
        self.start()
        session = self.job()
        for columns, titles in ((80, (b"In/s", b"Out/s", b"Stall", b"Iter/s", b"Budget", b"Wants", b"Held")),
                                (60, (b"In/s", b"Out/s", b"Stall", b"Budget", b"Wants")), (40, (b"Budget", b"Wants"))):
            terminal = self.begin(24, columns)
            moved = 0
            deadline = time.monotonic() + PATIENCE_S
            while b" 0B" in (row := self.row(terminal)) or b"%" not in row:
                self.assertLess(time.monotonic(), deadline, row)
                moved += 64 << 20
                session.say(agent_test.USAGE, struct.pack("<IBB10q", 0, 1, 3, GIB, GIB // 2, 0, 0, moved, moved, moved, 0, 0, 0))
                terminal.read(0.1)
                if columns == 40:
                    break
            page = b"\n".join(self.frames(terminal)[-1])
            for title in titles:
                self.assertIn(title, page, columns)

    def row(self, terminal):
        rows = [line for frame in self.frames(terminal)[-2:] for line in frame if line.startswith(b"local-")]
        return rows[-1] if rows else b""

    def test_keys_sort_move_and_show_one_job(self):
        self.start()
        self.job()
        terminal = self.begin()
        terminal.await_shown(b"sort: age")
        terminal.type(b"s")
        terminal.await_shown(b"sort: name")
        terminal.type(b"r")
        terminal.await_shown(b"reversed")
        terminal.type(b"\x1b[B")
        terminal.type(b"\r")
        terminal.await_shown(b"GPU-01000000")  # the single job, with its device
        terminal.await_shown(b"Esc all jobs")
        terminal.resize(24, 60)
        terminal.process.send_signal(signal.SIGWINCH)
        shown = len(terminal.shown)
        terminal.await_shown(b"priority 0)", after=shown)  # on a line of its own, in full
        self.assertLessEqual(max(map(len, self.frames(terminal)[-1])), 60)
        shown = len(terminal.shown)
        terminal.type(b"\x1b")
        terminal.await_shown(b"sort: name reversed", after=shown)
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)

    def test_a_resized_terminal_is_redrawn_at_once(self):
        self.start()
        terminal = self.begin()
        shown = len(terminal.shown)
        terminal.resize(10, 40)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.await_shown(b"q quits", after=shown)
        lines = self.frames(terminal)[-1]
        self.assertLessEqual(len(lines), 10)
        self.assertLessEqual(max(map(len, lines)), 40)

    def test_suspending_restores_the_terminal_and_resuming_redraws(self):
        self.start()
        terminal = self.begin()
        terminal.process.send_signal(signal.SIGTSTP)
        os.waitpid(terminal.process.pid, os.WUNTRACED)
        terminal.read(0)
        self.assertEqual(termios.tcgetattr(terminal.theirs), terminal.before)
        shown = len(terminal.shown)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.await_shown(ENTER, after=shown)
        terminal.type(b"q")
        self.assertEqual(terminal.end(), 0)

    def test_a_closed_terminal_ends_it(self):
        self.start()
        terminal = self.begin()
        os.close(terminal.theirs)
        os.close(terminal.ours)
        terminal.theirs = terminal.ours = None
        self.assertEqual(terminal.process.wait(PATIENCE_S), 1)

    def test_a_lost_agent_is_awaited(self):
        self.start()
        terminal = self.begin()
        self.stop(signal.SIGKILL)
        terminal.await_shown(b"tried again every second")
        shown = len(terminal.shown)
        self.start()
        terminal.await_shown(b"Budgeted", after=shown)

    # Regression: it waited five seconds for the agent's answer before it read its keys.
    def test_quitting_works_while_the_agent_hangs(self):
        self.start()
        for how in (lambda terminal: terminal.type(b"q"), lambda terminal: terminal.process.send_signal(signal.SIGQUIT)):
            terminal = self.begin()
            self.agent.send_signal(signal.SIGSTOP)
            self.addCleanup(self.agent.send_signal, signal.SIGCONT)
            time.sleep(1.5)  # it queries every second
            begin = time.monotonic()
            how(terminal)
            self.assertEqual(terminal.end(), 0)
            self.assertLess(time.monotonic() - begin, 2)
            self.assertTrue(terminal.is_as_before())
            self.agent.send_signal(signal.SIGCONT)

    def test_without_a_terminal_it_prints_one_page(self):
        self.start()
        printed = self.spillway("top")
        self.assertEqual((printed.returncode, printed.stderr), (0, ""))
        self.assertIn("no jobs", printed.stdout)
        self.assertNotIn("\x1b", printed.stdout)

    def test_json_is_a_line_of_the_status_every_second_also_on_a_terminal(self):
        self.start()
        terminal = Terminal([agent_test.BUILD / "bin/spillway", "top", "--json", "--count=2", "--socket", self.path])
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.end(), 0)
        first, second = map(json.loads, terminal.shown.splitlines())
        self.assertEqual(first["schema"], 1)
        self.assertEqual(first.keys(), self.status().keys())
        self.assertGreater(second["up_ns"], first["up_ns"])

    def test_json_continues_without_an_agent_and_ends_on_request(self):
        self.start()
        stream = subprocess.Popen([agent_test.BUILD / "bin/spillway", "top", "--json", "--socket", self.path],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(stream.kill)
        self.assertEqual(json.loads(stream.stdout.readline())["jobs"], [])
        self.stop(signal.SIGKILL)
        said = json.loads(stream.stdout.readline())
        self.assertEqual((said["schema"], said["done"], said["exit_code"]), (1, False, 4))
        self.start()
        while "jobs" not in said:
            said = json.loads(stream.stdout.readline())
        stream.send_signal(signal.SIGINT)
        stream.stdout.read()
        self.assertEqual(stream.wait(PATIENCE_S), 0)

    def test_json_ends_when_its_reader_is_gone(self):
        self.start()
        stream = subprocess.Popen([agent_test.BUILD / "bin/spillway", "top", "--json", "--socket", self.path],
                                  stdout=subprocess.PIPE)
        self.addCleanup(stream.kill)
        stream.stdout.readline()
        stream.stdout.close()
        self.assertEqual(stream.wait(PATIENCE_S), 1)

    def test_json_with_a_paused_reader_ends_on_request(self):
        self.start()
        ours, theirs = os.pipe()
        self.addCleanup(os.close, ours)
        fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(theirs, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(theirs, b" " * 100)
        os.set_blocking(theirs, True)
        stream = subprocess.Popen([agent_test.BUILD / "bin/spillway", "top", "--json", "--socket", self.path],
                                  stdout=theirs)
        self.addCleanup(stream.kill)
        os.close(theirs)
        agent_test.wait_for(lambda: is_blocked(stream.pid, signal.SIGTERM), bool)
        stream.send_signal(signal.SIGTERM)
        self.assertEqual(stream.wait(PATIENCE_S), 0)

    def test_errors_are_reported_in_json_too(self):
        for options, code in ((["--json"], 4), (["--json", "--count=0"], 2), (["--json", "operand"], 2)):
            ended = self.spillway("top", *options)
            self.assertEqual((ended.returncode, json.loads(ended.stdout)["exit_code"]), (code, code))
        self.assertEqual(self.spillway("top", "--count=1").returncode, 2)

    def test_without_an_agent_it_reports_that_and_keeps_the_terminal(self):
        terminal = Terminal([agent_test.BUILD / "bin/spillway", "top", "--socket", self.path])
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.end(), 4)
        self.assertIn(b"cannot reach the agent", terminal.shown)
        self.assertNotIn(ENTER, terminal.shown)


# Another program runs the fixture's own tests.
del agent_test.AgentTest

if __name__ == "__main__":
    agent_test.main()
