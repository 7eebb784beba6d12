#!/usr/bin/env python3
"""Harm by one seed, with real processes: jobs on one simulated GPU and their spillwayd are killed, stopped, spoken nonsense to, restarted.

After every event: what the simulator's books say that a job holds is within what the agent has promised it. At the end the harm
stops, and everything has to come right: jobs that were not killed end with what they print bare, nothing is promised, held,
connected or open any more. The first line is the seed; the same seed does the same harm (when it strikes is the machine's).

  chaos.py --build BUILD --seed 7 --events 200
"""
import argparse
import os
import pathlib
import random
import signal
import socket
import struct
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
RESERVE_BYTES = 64 * MIB  # of the device, for what no budget sees
# A job that began while there was no agent has the launcher's budget, the whole device, and others hold some of that.
ALONE = "the budget of `spillway run` stands"
FLOOR = '[defaults]\nfloor = "48MiB"\n'
FRAME_BYTES = 256


class Harm(Exception):
    """Something came out wrong."""


class Job:
    def __init__(self, chaos, number):
        self.name = f"job{number}"
        self.process = chaos.machine.begin(self.name, 0, WORKLOAD, f"--agent={chaos.agent.socket}")
        self.tenant = f"local-{self.process.pid}"
        self.is_stopped = self.is_killed = False

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)


class Chaos:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        self.machine = node_agent.Machine(options.build, folder, capacity_bytes=CAPACITY_BYTES + RESERVE_BYTES)
        config = node_agent.configuration("h200", CAPACITY_BYTES, FLOOR, resume_ms=1000)
        self.agent = node_agent.NodeAgent(options.build, folder, config)
        self.jobs, self.begun, self.looks = [], 0, 0
        self.is_agent_stopped = False
        self.counts = {}

    def bare(self):
        place = self.folder / "bare"
        place.mkdir()
        machine = node_agent.Machine(self.options.build, place)
        if machine.begin("bare", 0, WORKLOAD, "--off").wait() != 0:
            raise Harm("the trainer fails bare: " + machine.errors("bare"))
        return machine.output("bare")

    # Events. Each returns false when there was nothing to do it to.

    def alive(self):
        return [job for job in self.jobs if job.process.poll() is None and not job.is_killed]

    def begin_job(self):
        if len(self.alive()) >= MOST_JOBS:
            return False
        self.begun += 1
        self.jobs.append(Job(self, self.begun))
        return True

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
        # Stopped within the lock of the simulated machine it would stop the machine, as no process stops a real one.
        while job.is_stopped and not self.machine.is_free():
            job.signal(signal.SIGCONT)
            time.sleep(0.01)
            job.signal(signal.SIGSTOP)
        return True

    def kill_agent(self):
        # Who is stopped for longer than the next agent waits is new to it (docs/agent.md): that is not this program's subject.
        self.go_on()
        self.agent.stop(signal.SIGKILL)
        time.sleep(self.random.uniform(0, 0.3))
        self.agent.start()
        return True

    def stop_agent(self):
        self.is_agent_stopped = not self.is_agent_stopped
        self.agent.process.send_signal(signal.SIGSTOP if self.is_agent_stopped else signal.SIGCONT)
        return True

    def speak_nonsense(self):
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
                pass  # it has been shown the door
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

    EVENTS = (begin_job,) * 4 + (kill_job, stop_job, stop_job, stop_agent, speak_nonsense, speak_nonsense, set_budget) * 2 + (kill_agent,)

    def go_on(self):
        """Whoever is stopped goes on."""
        if self.is_agent_stopped:
            self.stop_agent()
        for job in self.alive():
            if job.is_stopped:
                job.is_stopped = False
                job.signal(signal.SIGCONT)

    def look(self):
        """Where a promise was the same before and after the books were read, it holds for them."""
        if self.is_agent_stopped:
            return
        before = self.agent.tenancies()
        books = self.machine.books()
        after = self.agent.tenancies()
        self.looks += 1
        held_by = {one["pid"]: one["device_bytes_now"][0] for one in (books or {"processes": []})["processes"] if "pid" in one}
        for job in self.alive():
            promised = [known[job.tenant]["promised_bytes"] for known in (before, after) if job.tenant in known]
            # Who began while there was no agent has the launcher's budget until there is a grant.
            if len(promised) == 2 and max(promised) > 0 and held_by.get(job.process.pid, 0) > max(promised):
                raise Harm(f"{job.name} holds {held_by[job.process.pid]}, it was promised {promised}")

    def run(self):
        for _ in range(self.options.events):
            while True:
                event = self.random.choice(self.EVENTS)
                if event(self):
                    break
            self.counts[event.__name__] = self.counts.get(event.__name__, 0) + 1
            if self.agent.process.poll() is not None:
                raise Harm(f"the agent has ended with {self.agent.process.returncode}")
            time.sleep(self.random.uniform(0, 0.15))
            self.look()

    def come_right(self, bare):
        self.go_on()
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
        status, books = self.agent.status(), self.machine.books()
        open_files = len(os.listdir(f"/proc/{self.agent.process.pid}/fd"))
        return {name: value for name, value in {
            "jobs": len(status["jobs"]), "sessions": status["sessions"] - 1, "promised": status["devices"][0]["promised_bytes"],
            "host promised": status["host"]["promised_bytes"], "held": books["devices"][0]["bytes_now"],
            "files": max(0, open_files - self.files_at_rest)}.items() if value != 0}

    def await_nothing(self):
        deadline = time.monotonic() + 10
        while (left := self.left_over()) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            raise Harm(f"left behind: {left}")

    def note_files_at_rest(self):
        self.agent.status()
        # Slabs are kept for the next who wants some: a file each, bounded by the pool.
        self.files_at_rest = len(os.listdir(f"/proc/{self.agent.process.pid}/fd")) + 64

    def end(self):
        for job in self.jobs:
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
            chaos.come_right(bare)
        except Harm as harm:
            print(f"chaos: {harm}\n--- the agent's log\n{chaos.agent.log()[-3000:]}", file=sys.stderr)
            return 1
        finally:
            chaos.end()
    ended = sum(not job.is_killed for job in chaos.jobs)
    print(f"chaos: {options.events} events {chaos.counts}, {chaos.looks} looks; {len(chaos.jobs)} jobs, {ended} ended as bare")
    return 0


if __name__ == "__main__":
    sys.exit(main())
