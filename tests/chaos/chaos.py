#!/usr/bin/env python3
"""Faults from one seed against real processes. Jobs on one simulated GPU and their spillwayd are
killed, stopped, sent garbage, and restarted.

As root, the jobs belong to several users. Beside them, processes fill slabs of the host pool with
words of their own (support/slab_poisoner.py). After every event, no job holds more than the agent
has budgeted it (by the simulator's statistics), and no process has seen a byte of another job. At
the end the faults stop and everything must recover: surviving jobs print what they print without
Spillway, and nothing is budgeted, held, connected or open any more. The first line is the seed.
Equal seeds give equal faults, but the machine decides their exact timing.

    chaos.py --build BUILD --seed 7 --events 200
"""
import argparse
import collections
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1] / "support"))

import node_agent  # noqa: E402  (path set above)

MIB = 1 << 20
PATIENCE_S = 120
MOST_JOBS = 4
WORKLOAD = ["gpt", "--layers=2", "--width=256", "--steps=400"]
CAPACITY_BYTES = 320 * MIB  # all four want about 600 MiB
RESERVE_BYTES = 64 * MIB  # of the device, for memory outside all budgets
# A job begun without an agent has the launcher's budget, the whole device, although others hold
# some of it.
ALONE = "the budget of `spillway run` stands"
SLAB_BYTES = 1 * MIB
MOST_POISONERS = 2
POISONER = HERE.parents[1] / "support/slab_poisoner.py"
PATTERN = 0x5350494C00000000  # of poisoners; the low half names the process
IS_ROOT = os.getuid() == 0
JOB_USERS = (61001, 61002) if IS_ROOT else (None,)
POISONER_USERS = (61011, 61012, 61013) if IS_ROOT else (None,)
MORE = (f'[host]\nmemory = "1GiB"\nslab = {SLAB_BYTES}\nspare = {4 * SLAB_BYTES}\nhuge_pages = false\n[defaults]\nfloor = "48MiB"\n'
        + "".join(f'[[rule]]\njob = "local-*"\nuid = {user}\nfloor = "2MiB"\nlimit = "16MiB"\n' for user in POISONER_USERS if user))
RESUME_MS = 5000  # a job retries every 2 s at most (docs/agent.md), and the machine is busy; later processes are new to the agent
FRAME_BYTES = 256
TOLD_EVENTS = 12


class Harm(Exception):
    """An invariant was violated."""


class Job:
    def __init__(self, chaos, number):
        self.name = f"job{number}"
        self.process = chaos.machine.begin(self.name, 0, WORKLOAD, f"--agent={chaos.agent.socket}",
                                           user=chaos.random.choice(JOB_USERS))
        self.tenant = f"local-{self.process.pid}"
        self.is_stopped = self.is_killed = False

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)


class Poisoner:
    def __init__(self, chaos, number):
        self.errors = chaos.folder / f"poisoner{number}.errors"
        self.came = chaos.folder / f"poisoner{number}.came"
        user = chaos.random.choice(POISONER_USERS)
        command = [sys.executable, POISONER, "--socket", chaos.agent.socket, "--device", node_agent.uuid_of("h200"),
                   "--slab", SLAB_BYTES, "--word", PATTERN | number, *(["--user", user] if user else [])]
        with open(self.errors, "wb") as errors, open(self.came, "wb") as came:
            self.process = subprocess.Popen([str(word) for word in command], stdout=came, stderr=errors)


def slabs_of(pid):
    """All pool slabs that a process has mapped; none when it is just ending."""
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                if "memfd:spillway-slab" in line:
                    begin, end = (int(number, 16) for number in line.split()[0].split("-"))
                    memory.seek(begin)
                    yield memory.read(end - begin)
    except (OSError, ValueError):
        return


class Chaos:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        self.machine = node_agent.Machine(options.build, folder, capacity_bytes=CAPACITY_BYTES + RESERVE_BYTES)
        config = node_agent.configuration("h200", CAPACITY_BYTES, MORE, resume_ms=RESUME_MS)
        folder.chmod(0o777)
        self.agent = node_agent.NodeAgent(options.build, folder, config)
        self.jobs, self.begun, self.looks = [], 0, 0
        self.poisoners, self.poisoned, self.slabs_poisoned, self.slabs_looked_at = [], 0, 0, 0
        self.is_agent_stopped = False
        self.counts = {}
        self.harm = collections.deque(maxlen=TOLD_EVENTS)  # recent events with their times

    def bare(self):
        place = self.folder / "bare"
        place.mkdir()
        machine = node_agent.Machine(self.options.build, place)
        if machine.begin("bare", 0, WORKLOAD, "--off").wait() != 0:
            raise Harm("the trainer fails bare: " + machine.errors("bare"))
        return machine.output("bare")

    # Events. Each returns false when it had no target.

    def alive(self):
        return [job for job in self.jobs if job.process.poll() is None and not job.is_killed]

    def begin_job(self):
        if len(self.alive()) >= MOST_JOBS:
            return False
        self.begun += 1
        self.jobs.append(Job(self, self.begun))
        return True

    def begin_poisoner(self):
        if len(self.poisoners) >= MOST_POISONERS or self.is_agent_stopped:
            return False
        self.poisoned += 1
        self.poisoners.append(Poisoner(self, self.poisoned))
        return True

    def kill_poisoner(self):
        if not self.poisoners:
            return False
        victim = self.poisoners.pop(self.random.randrange(len(self.poisoners)))
        self.check(victim)
        victim.process.kill()
        victim.process.wait()
        return True

    def check(self, poisoner):
        if poisoner.process.poll() is not None:
            raise Harm(f"a poisoner ended with {poisoner.process.returncode}: {poisoner.errors.read_text()}")

    def any_job(self):
        alive = self.alive()
        return self.random.choice(alive) if alive else None

    def kill_job(self):
        job = self.any_job()
        if job is None:
            return False
        job.is_killed = True
        job.signal(signal.SIGKILL)
        job.process.wait()
        return True

    def stop_job(self):
        job = self.any_job()
        if job is None:
            return False
        job.is_stopped = not job.is_stopped
        job.signal(signal.SIGSTOP if job.is_stopped else signal.SIGCONT)
        # A process stopped inside the lock of the simulated machine would stop the machine; no real
        # process can do that.
        while job.is_stopped and not self.machine.is_free():
            job.signal(signal.SIGCONT)
            time.sleep(0.01)
            job.signal(signal.SIGSTOP)
        return True

    def kill_agent(self):
        # A process stopped for longer than the next agent waits is new to that agent
        # (docs/agent.md). This program does not test that.
        self.go_on()
        self.agent.stop(signal.SIGKILL)
        time.sleep(self.random.uniform(0, 0.3))
        self.agent.start()
        return True

    def stop_agent(self):
        self.is_agent_stopped = not self.is_agent_stopped
        self.agent.process.send_signal(signal.SIGSTOP if self.is_agent_stopped else signal.SIGCONT)
        return True

    def jump(self):
        """Time passes for all of them at once, as when the clock is set or the machine slept."""
        if self.is_agent_stopped:
            return False
        running = [job.process for job in self.alive() if not job.is_stopped] + [one.process for one in self.poisoners]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for process in (*running, self.agent.process):
                if process.poll() is None:
                    process.send_signal(number)
            if number == signal.SIGSTOP:
                time.sleep(self.random.uniform(0.5, 2.5))
        return True

    def send_garbage(self):
        if self.is_agent_stopped:
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.connect(str(self.agent.socket))
            try:
                if self.random.random() < 0.5:
                    stranger.send(self.frame(1, struct.pack("<HHBi", 1, 2, self.random.choice((1, 2)), 0)))
                for _ in range(self.random.randrange(1, 6)):
                    stranger.send(self.garbage())
            except OSError:
                pass  # the connection was refused
        return True

    def frame(self, kind, body):
        return (struct.pack("<4sHHII", b"SPWY", 1, kind, FRAME_BYTES, 0) + body).ljust(FRAME_BYTES, b"\0")

    def garbage(self):
        noise = self.random.randbytes(FRAME_BYTES - 16)
        return self.random.choice((noise, self.frame(self.random.randrange(0, 24), noise), b"", noise * 20))

    def set_budget(self):
        job = self.any_job()
        if job is None or self.is_agent_stopped:
            return False
        self.agent.command("budget", "set", job.tenant, self.random.randrange(80, 320) * MIB)
        return True

    EVENTS = (begin_job,) * 4 + (begin_poisoner,) * 3 + (kill_poisoner,) + (kill_job, stop_job, stop_job, stop_agent, send_garbage, send_garbage, set_budget) * 2 + (kill_agent, jump)

    def go_on(self):
        """Lets every stopped process continue."""
        if self.is_agent_stopped:
            self.stop_agent()
        for job in self.alive():
            if job.is_stopped:
                job.is_stopped = False
                job.signal(signal.SIGCONT)

    def check_for_foreign_bytes(self):
        for poisoner in self.poisoners:
            self.check(poisoner)
        job = self.any_job()
        for slab in slabs_of(job.process.pid) if job and IS_ROOT else ():
            self.slabs_looked_at += 1
            if PATTERN.to_bytes(8, "little")[4:] in slab:
                raise Harm(f"{job.name} was given a poisoner's bytes")

    def look(self):
        """A budget that was equal before and after the statistics were read holds for them."""
        if self.is_agent_stopped:
            return
        before = self.agent.tenancies()
        statistics = self.machine.statistics()
        after = self.agent.tenancies()
        self.looks += 1
        held_by = {one["pid"]: one["device_bytes_now"][0] for one in (statistics or {"processes": []})["processes"] if "pid" in one}
        for job in self.alive():
            budgeted = [known[job.tenant]["budgeted_bytes"] for known in (before, after) if job.tenant in known]
            # A job begun without an agent has the launcher's budget until its first grant.
            if len(budgeted) == 2 and max(budgeted) > 0 and held_by.get(job.process.pid, 0) > max(budgeted):
                raise Harm(f"{job.name} holds {held_by[job.process.pid]}, it was budgeted {budgeted}")

    def run(self):
        for _ in range(self.options.events):
            while True:
                event = self.random.choice(self.EVENTS)
                began = time.time()
                if event(self):
                    break
            self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
            self.harm.append(f"{time.strftime('%T', time.gmtime(began))}.{int(began % 1 * 1000):03} {event.__name__}")
            if self.agent.process.poll() is not None:
                raise Harm(f"the agent has ended with {self.agent.process.returncode}")
            time.sleep(self.random.uniform(0, 0.15))
            self.look()
            self.check_for_foreign_bytes()

    def expect_recovery(self, bare):
        self.go_on()
        while self.poisoners:
            self.kill_poisoner()
        self.slabs_poisoned = sum(len(one.read_bytes().splitlines()) for one in self.folder.glob("*.came"))
        for job in self.jobs:
            if job.is_killed:
                continue
            try:
                code = job.process.wait(PATIENCE_S)
            except Exception as error:
                raise Harm(f"{job.name} does not end: {self.agent.command('status').stdout}") from error
            errors = self.machine.errors(job.name)
            if code == 1 and ALONE in errors and "out of memory" in errors:
                self.counts["refused, begun without an agent"] = self.counts.get("refused, begun without an agent", 0) + 1
                continue
            if code != 0 or self.machine.output(job.name) != bare:
                raise Harm(f"{job.name} ended with {code} and other output: {self.machine.errors(job.name)[-500:]}")
        self.await_nothing()

    def left_over(self):
        status, statistics = self.agent.status(), self.machine.statistics()
        open_files = len(os.listdir(f"/proc/{self.agent.process.pid}/fd"))
        pool = status["host"]["pool"]
        return {name: value for name, value in {
            "jobs": len(status["jobs"]), "sessions": status["sessions"] - 1, "budgeted": status["devices"][0]["budgeted_bytes"],
            "host budgeted": status["host"]["budgeted_bytes"], "held": statistics["devices"][0]["bytes_now"],
            "leased": pool["leased_bytes"] + pool["kept_bytes"] + pool["ending_bytes"],
            "files": max(0, open_files - pool["unused_bytes"] // SLAB_BYTES - self.files_at_rest)}.items() if value != 0}

    def await_nothing(self):
        deadline = time.monotonic() + 10
        while (left := self.left_over()) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            raise Harm(f"left behind: {left}")

    def note_files_at_rest(self):
        # Slabs are kept for the next job: one file each.
        unused = self.agent.status()["host"]["pool"]["unused_bytes"] // SLAB_BYTES
        self.files_at_rest = len(os.listdir(f"/proc/{self.agent.process.pid}/fd")) - unused + 2

    def end(self):
        for job in self.jobs + self.poisoners:
            if job.process.poll() is None:
                job.process.kill()
                job.process.wait()
        if self.agent.process is not None and self.agent.process.poll() is None:
            self.agent.process.send_signal(signal.SIGCONT)
            self.agent.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=200)
    options = parser.parse_args()
    options.build = options.build.resolve()
    print(f"chaos: seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix=f"spillway-chaos-{os.getpid()}-") as name:
        chaos = Chaos(options, pathlib.Path(name))
        bare = chaos.bare()
        chaos.agent.start()
        chaos.note_files_at_rest()
        try:
            chaos.run()
            chaos.expect_recovery(bare)
        except Harm as harm:
            # The violation is printed last: a truncated report keeps its end.
            print("--- the agent's log\n" + chaos.agent.log()[-3000:] + "--- the harm\n" + "\n".join(chaos.harm) + f"\nchaos: {harm}",
                  file=sys.stderr)
            return 1
        finally:
            chaos.end()
    ended = sum(not job.is_killed for job in chaos.jobs)
    print(f"chaos: {options.events} events {chaos.counts}, {chaos.looks} looks, "
          f"{chaos.poisoned} poisoners with {chaos.slabs_poisoned} slabs, "
          f"{chaos.slabs_looked_at} slabs of jobs looked at; {len(chaos.jobs)} jobs, {ended} ended as bare")
    return 0


if __name__ == "__main__":
    sys.exit(main())
