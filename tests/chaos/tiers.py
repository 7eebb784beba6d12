#!/usr/bin/env python3
"""Lives of models that take turns and store evicted memory in files, from one seed, with real
processes: sleepers on one simulated GPU under their spillwayd.

In each life jobs are killed, stopped and woken, the agent is killed and restarted, and the disk is
filled and freed. No job holds more than its budget (by the simulator's statistics), files stay
within their quota, and at the end every surviving job ends by itself and has printed what it prints
without Spillway; then nothing is held or stored any more.

    tiers.py --build BUILD --seed 1 --lives 3
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "support"))

import node_agent  # noqa: E402  (path set above)

MIB = 1 << 20
PATIENCE_S = 180  # a model of three on a busy machine is slow, but not stuck
ANSWERS, NAPS = 4, 3
PIECES, PIECE_MIB = 6, 16
POOL_BYTES = PIECES * PIECE_MIB * MIB
CAPACITY_BYTES = POOL_BYTES + 40 * MIB  # of all jobs, one fits
RESERVE_BYTES = 64 * MIB
FLOOR = 24 * MIB
QUOTA_BYTES = 160 * MIB
DISK_BYTES = 192 * MIB
JOBS = 3
EVENTS = 10
WORKLOAD = ["sleeper", f"--pieces={PIECES}", f"--piece-mib={PIECE_MIB}", "--memory=plain", f"--answers={ANSWERS}", "--tokens=30"]
# A process that was stopped for longer than an agent waits keeps its recorded budget (docs/agent.md).
RESUME_MS = 3000


class Harm(Exception):
    """An invariant was violated."""


class Job:
    def __init__(self, life, number):
        self.name, self.wakes = f"job{number}", life.folder / f"job{number}.wake"
        self.naps, self.is_stopped, self.is_killed = 0, False, False
        self.process = life.machine.begin(self.name, 0, [*WORKLOAD, f"--until={self.wakes}"], "--park=off", "--lend-pools", f"--agent={life.agent.socket}")

    def runs(self):
        return not self.is_killed and self.process.poll() is None

    def wake(self):
        self.naps += 1
        pathlib.Path(f"{self.wakes}.{self.naps}").touch()


class Life:
    def __init__(self, build, folder, disk, seed):
        self.folder, self.random, self.disk = folder, random.Random(seed), disk
        self.machine = node_agent.Machine(build, folder, capacity_bytes=CAPACITY_BYTES + RESERVE_BYTES)
        spill = disk / "spill"
        spill.mkdir(mode=0o700, exist_ok=True)
        self.turns_rule = "auto" if seed % 3 == 0 else "always"
        more = (f'[defaults]\nfloor = {FLOOR}\nturns = "{self.turns_rule}"\n[turns]\nquantum_ms = 1000\ncost_factor = 1\n'
                f'[host]\nmemory = "{POOL_BYTES // MIB}MiB"\nslab = "4MiB"\nhuge_pages = false\nspill_folder = "{spill}"\n'
                f'spill_bytes = {QUOTA_BYTES}\nspill_after_ms = 200\nspill_in_memory = true\n')
        self.config = node_agent.configuration("h200", CAPACITY_BYTES, more, resume_ms=RESUME_MS)
        # No job is there before the first agent, so that one awaits none.
        self.agent = node_agent.NodeAgent(build, folder, node_agent.configuration("h200", CAPACITY_BYTES, more))
        self.jobs, self.counts, self.most_stored, self.turns = [], {}, 0, 0

    def any_job(self, is_wanted):
        found = [job for job in self.jobs if job.runs() and is_wanted(job)]
        return self.random.choice(found) if found else None

    # Events. Each returns false when it had no target.

    def wake(self):
        jobs = [job for job in self.jobs if job.runs() and job.naps < NAPS]
        for job in jobs:
            job.wake()
        return bool(jobs)

    def kill(self):
        job = self.any_job(lambda one: True)
        if job is None or sum(one.runs() for one in self.jobs) < 2:
            return False
        job.is_killed = True
        job.process.kill()
        job.process.wait()
        return True

    def stop_or_continue(self):
        job = self.any_job(lambda one: True)
        if job is None:
            return False
        job.is_stopped = not job.is_stopped
        job.process.send_signal(signal.SIGSTOP if job.is_stopped else signal.SIGCONT)
        # A process stopped inside the lock of the simulated machine would stop the machine; no real process can do that.
        while job.is_stopped and not self.machine.is_free():
            job.process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            job.process.send_signal(signal.SIGSTOP)
        return True

    def kill_agent(self):
        self.agent.stop(signal.SIGKILL)
        time.sleep(self.random.uniform(0, 0.3))
        self.agent.start()
        return True

    def fill_disk(self):
        with open(self.disk / "filler", "ab") as filler:
            try:
                filler.write(bytes(self.random.randrange(32, DISK_BYTES // MIB) * MIB))
            except OSError:
                pass  # it is full
        return True

    def free_disk(self):
        (self.disk / "filler").unlink(missing_ok=True)
        return True

    EVENTS = (wake, wake, kill, stop_or_continue, stop_or_continue, kill_agent, fill_disk, free_disk)

    def check(self):
        """A budget that was equal before and after the statistics were read holds for them."""
        before, statistics = self.agent.tenancies(), self.machine.statistics()
        status = self.agent.status()
        after = {job["job"]: device for job in status["jobs"] for device in job["devices"]}
        held = {one["pid"]: one["device_bytes_now"][0] for one in (statistics or {"processes": []})["processes"] if "pid" in one}
        for job in self.jobs:
            name = f"local-{job.process.pid}"
            budgets = [known[name]["budgeted_bytes"] for known in (before, after) if name in known]
            if job.runs() and len(budgets) == 2 and max(budgets) > 0 and held.get(job.process.pid, 0) > max(budgets):
                raise Harm(f"{job.name} holds {held[job.process.pid]}, it was budgeted {budgets}")
            if name in after:
                self.turns = max(self.turns, after[name]["turn"]["begun"])
        self.most_stored = max(self.most_stored, sum(device["spill"]["stored_bytes"] for device in after.values()))
        if status["host"]["spill_used_bytes"] > QUOTA_BYTES:
            raise Harm(f"files of {status['host']['spill_used_bytes']} exceed their quota")

    def run(self, bare):
        self.agent.start()
        for number in range(1, JOBS + 1):
            self.jobs.append(Job(self, number))
        self.agent.configure(self.config)
        self.await_first_naps()
        if self.turns_rule == "always":
            self.await_files()
        for _ in range(EVENTS):
            while True:
                event = self.random.choice(self.EVENTS)
                if event(self):
                    break
            self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
            time.sleep(self.random.uniform(0, 0.5))
            self.check()
        self.recover(bare)

    def await_first_naps(self):
        deadline = time.monotonic() + PATIENCE_S
        while not all("asleep 1" in self.machine.errors(job.name) for job in self.jobs):
            for job in self.jobs:
                if not job.runs():
                    raise Harm(f"{job.name} ended with {job.process.returncode} before it slept: {self.machine.errors(job.name)[-500:]}")
            if time.monotonic() > deadline:
                raise Harm("the models do not begin")
            time.sleep(0.02)

    def await_files(self):
        """Of three jobs that sleep two are evicted, and host memory holds one."""
        deadline = time.monotonic() + PATIENCE_S
        while self.most_stored == 0:
            if time.monotonic() > deadline:
                raise Harm(f"nothing is stored in files: {self.agent.command('status', '--json').stdout}")
            time.sleep(0.02)
            self.check()

    def recover(self, bare):
        self.free_disk()
        for job in self.jobs:
            if job.runs():
                job.process.send_signal(signal.SIGCONT)
                while job.naps < NAPS:
                    job.wake()
        for job in (one for one in self.jobs if not one.is_killed):
            try:
                code = job.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired as error:
                raise Harm(f"{job.name} is stuck: {self.agent.command('status', '--json').stdout}") from error
            if code != 0 or self.machine.output(job.name) != bare:
                raise Harm(f"{job.name} ended with {code} and other output: {self.machine.errors(job.name)[-500:]}")
        deadline = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            raise Harm(f"left behind: {left}")

    def left(self):
        status, statistics = self.agent.status(), self.machine.statistics()
        disk = shutil.disk_usage(self.disk)
        return {name: value for name, value in {
            "jobs": len(status["jobs"]), "budgeted": status["devices"][0]["budgeted_bytes"], "host": status["host"]["budgeted_bytes"],
            "files": status["host"]["spill_used_bytes"], "held": statistics["devices"][0]["bytes_now"],
            "space": disk.used if os.path.ismount(self.disk) else 0}.items() if value > 64 * 1024}

    def end(self):
        for job in self.jobs:
            if job.process.poll() is None:
                job.process.kill()
                job.process.wait()
        if self.agent.process is not None and self.agent.process.poll() is None:
            self.agent.stop()


def bare_output(build, folder):
    machine = node_agent.Machine(build, folder)
    if machine.begin("bare", 0, WORKLOAD, "--off").wait() != 0:
        raise Harm("the model fails bare: " + machine.errors("bare"))
    return machine.output("bare")


def mount(disk):
    """A small disk in memory of its own; without the right to mount, a folder that is never full."""
    disk.mkdir()
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", disk], capture_output=True).returncode == 0


def live(options, folder, seed, bare):
    disk = folder / "disk"
    is_mounted = mount(disk)
    life = Life(options.build, folder, disk, seed)
    if not is_mounted:
        life.fill_disk = life.free_disk
        life.EVENTS = tuple(event for event in Life.EVENTS if event is not Life.fill_disk)
    try:
        life.run(bare)
    except Harm as harm:
        print(f"--- the agent's log\n{life.agent.log()[-3000:]}tiers: seed {seed}: {harm}", file=sys.stderr)
        return None
    finally:
        life.end()
        if is_mounted:
            subprocess.run(["umount", "--lazy", disk], check=True)
    print(f"seed {seed}: {life.counts}, at most {life.most_stored // MIB} MiB stored, {life.turns} turns of a job{'' if is_mounted else '; the disk was never full'}", flush=True)
    return life


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lives", type=int, default=3)
    options = parser.parse_args()
    options.build = options.build.resolve()
    with tempfile.TemporaryDirectory(prefix=f"spillway-tiers-{os.getpid()}-") as name:
        folder = pathlib.Path(name)
        bare = bare_output(options.build, folder)
        lives = []
        for seed in range(options.seed, options.seed + options.lives):
            place = folder / str(seed)
            place.mkdir()
            lives.append(live(options, place, seed, bare))
            if lives[-1] is None:
                return 1
    stored, turns = max(life.most_stored for life in lives), max(life.turns for life in lives)
    print(f"tiers: {len(lives)} lives, at most {stored // MIB} MiB stored, at most {turns} turns of a job")
    if stored == 0 or turns == 0:
        print("tiers: no life had turns and files: this says nothing", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
