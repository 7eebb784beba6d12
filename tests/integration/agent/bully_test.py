#!/usr/bin/env python3
"""Unprivileged clients of the real spillwayd that try to take from others by their requests and
reports: memory of the node, budgets of working jobs, the whole device after a restart. Each test
prints what the bully got and what its victims had.

    usage: bully_test.py --build BUILD [unittest arguments]
"""
import os
import select
import signal
import struct
import time

import agent_test
from agent_test import ASK_SLABS, GIB, GRANT, OBEYED, USAGE

MIB = 1 << 20
SLAB = 16 * MIB
POOL = 2 * GIB
HOST = f'[host]\nmemory = "{POOL}"\nslab = {SLAB}\nspare = "0"\nhuge_pages = false\n'
BULLY, OTHER_BULLY, ANNA, BERT = 62001, 62002, 62003, 62004
GIVEN_BACK_S = 9  # unused memory is returned within this time
ALL = 1 << 40
UNUSED_MS = 3000


def usage(active, wanted, resident):
    return struct.pack("<IBB10q", 0, active, 3, wanted, resident, *[0] * 8)


class Client(agent_test.Session):
    """Obeys its messages as a job does, on a thread of the test or in a process of another user."""

    def __init__(self, path):
        super().__init__(path)
        self.serial = self.budget = 0

    def begin(self, wanted, held=0):
        self.hello(newest=2)
        self.register(wanted, held=held)

    def follow(self, within_s):
        """Returns whether a message came."""
        if not select.select([self.socket], [], [], within_s)[0]:
            return False
        data = self.socket.recv(300)
        if not data:
            raise EOFError
        if struct.unpack_from("<H", data, 6)[0] == GRANT:
            _, self.serial, self.budget, host = struct.unpack_from("<IQqq", data, 16)
            self.say(OBEYED, struct.pack("<IQqq", 0, self.serial, self.budget, host))
        return True


class Process:
    """A user's process that acts until it is killed; its output is the last number that it
    reported."""

    def __init__(self, user, act):
        told, tell = os.pipe()
        self.told, self.last = told, 0
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(told)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                act(lambda number: os.write(tell, struct.pack("<q", number)))
            finally:
                os._exit(1)
        os.close(tell)
        os.set_blocking(told, False)

    def number(self):
        try:
            while data := os.read(self.told, 8):
                self.last = struct.unpack("<q", data)[0]
        except BlockingIOError:
            pass
        return self.last

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.told)
            self.pid = 0


class BullyFixture(agent_test.AgentFixture):
    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("takes root, to be several users")
        super().setUp()
        self.folder.chmod(0o755)

    def process(self, user, act):
        process = Process(user, act)
        self.addCleanup(process.end)
        return process

    def worker(self, user, wanted, held=0):
        """Uses everything that it is granted, and reports its budget."""
        def work(tell):
            client = Client(self.path)
            client.begin(wanted, held)
            while True:
                if client.follow(0.2):
                    tell(client.budget)
                if client.serial:
                    client.say(USAGE, usage(1, wanted * 8 // 9, client.budget))

        return self.process(user, work)

    def await_budgets(self, workers, fits):
        return agent_test.wait_for(lambda: [one.number() for one in workers], fits)


class HostMemoryTest(BullyFixture):
    def pool_bytes(self):
        pool = self.status()["host"]["pool"]
        return sum(pool[f"{state}_bytes"] for state in ("making", "unused", "leased", "kept", "ending"))

    def asks_for_all(self, tell):
        client = Client(self.path)
        client.begin(ALL)
        while not client.serial:
            client.follow(1)
        tell(1)
        while True:
            client.say(ASK_SLABS, struct.pack("<Iq", 0, ALL))
            client.follow(0.2)

    def most_kept(self, seconds):
        most, begin = 0, time.monotonic()
        while time.monotonic() - begin < seconds:
            most = max(most, self.pool_bytes())
            time.sleep(0.05)
        return most

    def test_a_client_without_device_memory_gets_no_host_memory(self):
        """Regression: such a client took all that the node lends, and the agent kept it after the
        client's end."""
        self.configure(HOST)
        self.start()
        bully = self.process(BULLY, self.asks_for_all)
        agent_test.wait_for(bully.number, bool)
        most = self.most_kept(3)
        bully.end()
        begin = time.monotonic()
        agent_test.wait_for(self.pool_bytes, lambda bytes_now: bytes_now == 0)
        kept = self.pool_bytes()
        print(f"host memory of {POOL >> 20} MiB: at most {most >> 20} MiB while a process without device memory asked for all, "
              f"{kept >> 20} MiB {time.monotonic() - begin:.1f} s after its end")

        self.assertEqual((most, kept), (0, 0))

    def test_slabs_for_a_client_that_left_are_not_made_or_are_released(self):
        self.configure(HOST)
        self.start()

        def holds(tell):
            client = Client(self.path)
            client.begin(ALL)
            while not client.serial:
                client.follow(1)
            client.say(USAGE, usage(1, ALL, client.budget))
            client.say(ASK_SLABS, struct.pack("<Iq", 0, ALL))
            tell(1)
            signal.pause()

        bully = self.process(BULLY, holds)
        agent_test.wait_for(self.pool_bytes, bool)
        bully.end()
        agent_test.wait_for(self.status, lambda now: not now["jobs"])
        time.sleep(0.3)
        after = self.status()["host"]["pool"]
        begin = time.monotonic()
        agent_test.wait_for(self.pool_bytes, lambda bytes_now: bytes_now == 0)
        took_s = time.monotonic() - begin
        kept = self.pool_bytes()
        print(f"0.3 s after the end of who asked for {POOL >> 20} MiB: {after['making_bytes'] >> 20} MiB being made, "
              f"{after['unused_bytes'] >> 20} unused; {took_s:.1f} s later {kept >> 20} MiB are left")

        self.assertLessEqual(after["making_bytes"], SLAB)
        self.assertEqual(kept, 0)
        self.assertLess(took_s, GIVEN_BACK_S)


class ShareTest(BullyFixture):
    """The device has 16 GiB; two working jobs want and have 8 GiB each."""
    WANTED = 8 * GIB
    CONFIG = '[defaults]\nfloor = "16MiB"\n'

    def begin_workers(self, *users):
        workers = [self.worker(user, self.WANTED) for user in users]
        self.await_budgets(workers, lambda budgets: min(budgets) > 7 * GIB)
        self.assertGreater(min(one.number() for one in workers), 7 * GIB)
        return workers

    def least(self, workers, seconds):
        """The budgets of both while it lasts."""
        least, begin = [one.number() for one in workers], time.monotonic()
        while time.monotonic() - begin < seconds:
            least = [min(pair) for pair in zip(least, (one.number() for one in workers))]
            time.sleep(0.05)
        return least

    def idles(self, tell):
        """Holds nothing, does nothing, and claims to work and want everything."""
        client = Client(self.path)
        client.begin(16 * GIB)
        tell(1)
        while True:
            if not client.follow(0.2) and client.serial:
                client.say(USAGE, usage(1, 16 * GIB, 0))

    def show(self, what, budgets):
        print(f"{what}: budgets of {' and '.join(str(one >> 20) for one in budgets)} MiB")

    def test_processes_without_memory_lose_their_claim_and_never_exceed_a_users_share(self):
        """Regression: twenty of them had 20 of 22 parts."""
        self.configure(self.CONFIG)
        settings = self.folder / "spillway.toml"
        settings.write_text(settings.read_text().replace("[arbiter]", f"[arbiter]\nunused_ms = {UNUSED_MS}"))
        self.start()
        workers = self.begin_workers(ANNA, BERT)
        bullies = [self.process(BULLY, self.idles) for _ in range(20)]
        for bully in bullies:
            agent_test.wait_for(bully.number, bool)
        least = self.least(workers, 2)
        self.show("two working jobs beside twenty processes of a third user that hold nothing", least)
        later = self.await_budgets(workers, lambda budgets: min(budgets) > 7 * GIB)
        self.show("the same, when the twenty had held nothing for 3 s", later)

        self.assertGreater(min(least), 5 * GIB)
        self.assertGreater(min(later), 7 * GIB)

    def test_jobs_of_one_user_that_claim_everything_get_one_users_share(self):
        self.configure(self.CONFIG)
        self.start()
        workers = self.begin_workers(ANNA, BERT)
        bullies = [self.worker(BULLY, 16 * GIB) for _ in range(20)]
        for bully in bullies:
            agent_test.wait_for(bully.number, bool)
        budgets = self.await_budgets(workers + bullies, lambda seen: sum(seen[2:]) > 5 * GIB)
        time.sleep(1)
        least = self.least(workers, 1)
        self.show("two working jobs beside twenty of a third user that hold what they are granted", least)

        self.assertGreater(min(least), 5 * GIB)
        self.assertGreater(sum(budgets[2:]), 4 * GIB)

    def test_a_users_limit_and_count_of_jobs_bound_all_its_jobs(self):
        self.configure(self.CONFIG + f'[[user]]\nuid = {BULLY}\nlimit = "2GiB"\njobs = 3\n')
        self.start()
        bullies = [self.worker(BULLY, 16 * GIB) for _ in range(6)]
        # The first has the user's whole limit until the others come.
        seen = agent_test.wait_for(lambda: [one.number() for one in bullies],
                                   lambda seen: sum(seen) == 2 * GIB and sum(one > 0 for one in seen) == 3)
        self.show("six jobs of a user whose three may have 2 GiB", seen)

        self.assertEqual(sum(seen), 2 * GIB)
        self.assertEqual(sum(one > 0 for one in seen), 3)
        waiting = agent_test.wait_for(  # the last may still be connecting
            lambda: [device for job in self.status()["jobs"] for device in job["devices"] if device["state"] == "waiting"],
            lambda found: len(found) == 3)
        self.assertEqual(len(waiting), 3)

    def test_after_a_restart_clients_are_believed_up_to_their_record(self):
        """Regression: the first client that claimed to hold the device got it."""
        self.configure(self.CONFIG)
        self.start()
        workers = [self.returning_worker(user) for user in (ANNA, BERT)]
        self.await_budgets(workers, lambda seen: min(seen) > 7 * GIB)
        before = [one.number() for one in workers]
        self.assertGreater(min(before), 7 * GIB)
        self.stop(signal.SIGKILL)
        self.configure(self.CONFIG, resume_ms=2500)
        liar = self.process(BULLY, self.claims_all)
        self.start()
        agent_test.wait_for(liar.number, bool)
        time.sleep(4)
        least = self.least(workers, 2)
        budgeted = self.budgeted()
        self.show(f"two working jobs beside one that claims the device after a restart ({budgeted >> 20} MiB are budgeted)", least)

        self.assertGreater(min(least), 5 * GIB)
        self.assertLessEqual(budgeted, 16 * GIB)

    def returning_worker(self, user):
        """Returns and reports its holdings."""
        def work(tell):
            held = 0
            while True:
                try:
                    client = Client(self.path)
                    client.begin(self.WANTED, held)
                    while True:
                        if client.follow(0.2) and client.serial:
                            held = client.budget
                            tell(held)
                        if client.serial:
                            client.say(USAGE, usage(1, self.WANTED * 8 // 9, client.budget))
                except OSError:
                    time.sleep(0.5)
                except EOFError:
                    time.sleep(0.5)

        return self.process(user, work)

    def claims_all(self, tell):
        while True:
            try:
                client = Client(self.path)
                client.begin(16 * GIB, held=16 * GIB)
                break
            except OSError:
                time.sleep(0.01)
        tell(1)
        while True:  # obeys no grant
            client.socket.recv(300)
            client.say(USAGE, usage(1, 16 * GIB, 16 * GIB))


class LogTest(BullyFixture):
    """Regression: two seconds of a user's storm wrote hundreds of lines, and invented names
    stayed in the status for good."""
    LINES_A_SECOND = 30  # five of each kind, and their sums; two seconds may touch four windows

    def storm(self, act):
        """Returns the number of new lines in the log for each second that the storm lasted; on a busy machine that is
        more than two."""
        def acts(tell):
            begin, count = time.monotonic(), 0
            while time.monotonic() - begin < 2:
                try:
                    act(agent_test.Session(self.path))
                    count += 1
                except (OSError, EOFError, AssertionError):
                    time.sleep(0.01)
            tell(count)
            signal.pause()

        before, begun = self.log().count("\n"), time.monotonic()
        bully = self.process(BULLY, acts)
        agent_test.wait_for(bully.number, bool)
        lines, lasted_s = self.log().count("\n") - before, time.monotonic() - begun
        print(f"{bully.number()} connections in {lasted_s:.1f} s: {lines} lines")
        self.assertGreater(bully.number(), 0)
        return lines / lasted_s

    def test_reconnecting_clients_do_not_flood_the_log(self):
        self.start()
        self.assertLess(self.storm(lambda session: session.hello()), self.LINES_A_SECOND)

        def begins(session):
            session.hello()
            session.register(GIB)
            session.next(agent_test.ADMISSION)

        self.assertLess(self.storm(begins), self.LINES_A_SECOND)

    def test_refused_operators_do_not_flood_the_log(self):
        self.start()

        def drains(session):
            session.say(agent_test.HELLO, struct.pack("<HHBi", 1, 1, 2, 0))
            session.next(agent_test.WELCOME)
            for _ in range(20):
                session.say(13, struct.pack("<B", 1))
                session.next(14)

        self.assertLess(self.storm(drains), self.LINES_A_SECOND)
        self.assertIn(f"operator uid={BULLY} ", self.log())
        self.assertFalse(self.status()["draining"])
        self.spillway("drain")
        self.assertIn(f"operator uid={os.getuid()} ", self.log())

    def test_invented_devices_neither_flood_the_log_nor_hide_real_ones(self):
        self.start()

        def names_one(session):
            session.hello()
            session.register(GIB, device=os.urandom(16))
            session.next(agent_test.ERROR)

        self.assertLess(self.storm(names_one), self.LINES_A_SECOND)
        other = agent_test.Session(self.path)
        other.hello()
        other.register(GIB, device=bytes([0xab] * 16))
        other.next(agent_test.ERROR)
        unknown = self.status()["unknown_devices"]
        self.assertIn("GPU-abababab-abab-abab-abab-abababababab", unknown)
        self.assertLessEqual(len(unknown), 3)


# Another program runs the fixture's own tests.
del agent_test.AgentTest

if __name__ == "__main__":
    agent_test.main()
