#!/usr/bin/env python3
"""Several users' processes with one real spillwayd: no user sees another user's bytes in slabs of
the host pool, under random kills.

    usage: users_test.py --build BUILD [unittest arguments]
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import agent_test
import job_test
import share_test

POISONER = pathlib.Path(__file__).resolve().parents[2] / "support/slab_poisoner.py"
MIB = 1 << 20
SLAB = MIB
SLABS = 48
USERS = 61001, 61002, 61003
TRAINER_USER = 61004
PATTERN = 0x5350494C00000000  # never a trainer's word: the low half names the process
KILLS = 20
MOST_KILLS = 8 * KILLS  # many are killed before they get a slab
LEAST_PAUSE_S = 0.25  # between kills, at most; on a loaded machine longer
AT_ONCE = 3


class Poisoner:
    def __init__(self, test, user, number):
        self.word = PATTERN | number
        self.errors = test.folder / f"poisoner{number}.errors"
        self.came = test.folder / f"poisoner{number}.came"
        with open(self.errors, "wb") as errors, open(self.came, "wb") as came:
            self.process = subprocess.Popen(
                [sys.executable, POISONER, "--socket", str(test.path), "--device", job_test.UUID, "--slab",
                 str(test.slab_bytes),
                 "--word", str(self.word), "--user", str(user)], stdout=came, stderr=errors)
        test.addCleanup(job_test.JobFixture.end, self.process)

    def slabs(self):
        return self.came.read_bytes().splitlines()


class UsersFixture(share_test.ShareFixture):
    slab_bytes = SLAB
    slab_file = "memfd:spillway-slab"  # its name in a process's maps

    def setUp(self):
        if os.getuid() != 0:
            self.skipTest("takes root, to be several users")
        super().setUp()
        self.folder.chmod(0o755)
        self.random = random.Random(1)
        self.poisoners = []

    def begin_poisoner(self):
        self.poisoners.append(Poisoner(self, self.random.choice(USERS), len(self.poisoners) + 1))

    def alive(self):
        return [one for one in self.poisoners if one.process.returncode is None]

    def assert_no_process_failed(self):
        for one in self.alive():
            self.assertIsNone(one.process.poll(), one.errors.read_text())

    def kill_one(self):
        victim = self.random.choice(self.alive())
        victim.process.kill()
        victim.process.wait()

    def slab_bytes_of(self, pid):
        """All pool slabs that a process has mapped."""
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                if self.slab_file not in line:
                    continue
                begin, end = (int(number, 16) for number in line.split()[0].split("-"))
                memory.seek(begin)
                try:
                    slab = memory.read(end - begin)
                except OSError:  # returned since the list was read
                    continue
                yield slab

    def begin_trainer(self):
        half = self.half()
        pool = f'[host]\nmemory = {SLABS * self.slab_bytes}\nslab = {self.slab_bytes}\nspare = {4 * self.slab_bytes}\n'
        self.configure(pool + f"huge_pages = false\n[defaults]\nlimit = {half}\n", resume_ms=300)
        self.start()
        (self.folder / "trainer").mkdir()
        (self.folder / "trainer").chmod(0o777)
        return self.begin(job_test.ENDLESS, "--park=off", f"--agent={self.path}", name="trainer", user=TRAINER_USER)

    def received_slabs(self):
        return sum(len(one.slabs()) for one in self.poisoners)

    def poison_and_kill(self):
        trainer = self.begin_trainer()
        looked_at = 0
        began_s = time.monotonic()
        for _ in range(AT_ONCE):
            self.begin_poisoner()
        self.await_pool(lambda pool: pool["leased_bytes"] > 2 * self.slab_bytes)
        most_pause_s = max(LEAST_PAUSE_S, time.monotonic() - began_s)

        number = 0
        while number < KILLS or (self.received_slabs() <= 2 * KILLS and number < MOST_KILLS):
            time.sleep(self.random.uniform(0, most_pause_s))
            self.assert_no_process_failed()
            self.kill_one()
            self.begin_poisoner()
            if number == KILLS // 2:
                self.stop(signal.SIGKILL)
                self.start()
            for slab in self.slab_bytes_of(trainer.pid):
                looked_at += 1
                self.assertNotIn(PATTERN.to_bytes(8, "little")[4:], slab, "the trainer was given a poisoner's bytes")
            number += 1

        self.assertGreater(self.received_slabs(), 2 * KILLS, "too little was leased for this to tell anything")
        self.assertGreater(looked_at, 0)
        self.assert_as_bare(self.finish(trainer, "trainer"))
        self.assert_no_process_failed()
        while self.alive():
            self.kill_one()
        self.await_pool(lambda pool: pool["leased_bytes"] == pool["kept_bytes"] == pool["ending_bytes"] == 0)


class UsersTest(UsersFixture):
    def test_no_user_sees_another_users_bytes_under_random_kills(self):
        self.poison_and_kill()


if __name__ == "__main__":
    agent_test.main()
