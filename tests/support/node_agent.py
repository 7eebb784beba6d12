"""A node agent for a test or a bench, and jobs on one simulated GPU that use it."""

import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

PATIENCE_S = 30


def uuid_of(profile):
    """The simulated device's, as `nvidia-smi -L` would print it."""
    digits = f"sim-{profile}".encode().ljust(16, b"\0").hex()
    return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def configuration(profile, memory_bytes, more="", resume_ms=0, headroom_bytes=0, return_within_ms=2000, saved_state=None):
    """One simulated device; unspecified settings have their defaults."""
    state = "" if saved_state is None else f'state = "{saved_state}"\n'
    return f"""[agent]
resume_ms = {resume_ms}
{state}[devices]
find = false
reserve = 0
[arbiter]
headroom = {headroom_bytes}
return_within_ms = {return_within_ms}
[[device]]
uuid = "{uuid_of(profile)}"
memory = {memory_bytes}
{more}"""


class NodeAgent:
    """spillwayd, on a socket in `folder`."""

    def __init__(self, build, folder, config):
        self.build, self.folder = pathlib.Path(build), pathlib.Path(folder)
        self.socket = self.folder / "agent.sock"
        self.process = None
        self.configure(config)

    def configure(self, config):
        (self.folder / "spillway.toml").write_text(config)

    def start(self, **environment):
        """Returns when the agent serves."""
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notices.settimeout(PATIENCE_S)
        address = self.folder / f"notify.{time.monotonic_ns()}"
        notices.bind(str(address))
        with notices, open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.build / "bin/spillwayd", "--config", self.folder / "spillway.toml", "--socket", self.socket],
                stdout=log, stderr=log, env=dict(os.environ, NOTIFY_SOCKET=str(address), **environment))
            if b"READY=1" not in notices.recv(4096):
                raise RuntimeError("spillwayd does not begin: " + self.log())
        address.unlink()

    def stop(self, how=signal.SIGTERM):
        """The exit code; None while it runs."""
        if self.process is None:
            return None
        self.process.send_signal(how)
        code = self.process.wait(PATIENCE_S)
        self.process = None
        return code

    def log(self):
        return (self.folder / "log").read_text()

    def command(self, *arguments):
        return subprocess.run([self.build / "bin/spillway", *(str(word) for word in arguments), "--socket", self.socket],
                              capture_output=True, text=True, timeout=PATIENCE_S)

    def status(self):
        return json.loads(self.command("status", "--json").stdout)

    def tenancies(self):
        """By job: the status of its device."""
        return {job["job"]: device for job in self.status()["jobs"] for device in job["devices"]}


@dataclasses.dataclass
class Machine:
    """A simulated GPU that several processes share; good for one run."""

    build: pathlib.Path
    folder: pathlib.Path
    profile: str = "h200"
    capacity_bytes: int = 0  # 0: the profile's
    compute: str = "tags"
    slots: int = 0  # that begin together; 0: processes join at any time

    def environment(self, name, slot):
        """For one process of it; the process's statistics are in `<name>.statistics`."""
        result = {key: value for key, value in os.environ.items() if not key.startswith("SPILLWAY_")}
        result.update(SPILLWAY_SIM_NODE=str(self.folder / "node"), SPILLWAY_SIM_COMPUTE=self.compute,
                      SPILLWAY_SIM_STATS=str(self.folder / f"{name}.statistics"), XDG_STATE_HOME=str(self.folder / f"{name}.state"))
        if self.capacity_bytes:
            result["SPILLWAY_SIM_CAPACITY"] = str(self.capacity_bytes)
        if self.slots:
            result["SPILLWAY_SIM_SLOT"] = f"{slot}/{self.slots}"
        return result

    def begin(self, name, slot, workload, *options, user=None, more=None):
        """A running trainer under `spillway run`; its output and report are in the folder, by its
        name.

        `user`: runs as that user; needs root. `more`: variables of its environment.
"""
        program, *arguments = workload
        if "--off" not in options:
            options = (f"--report={self.folder / name}.report", *options)
        command = [self.build / "bin/spillway", "run", "--quiet", f"--simulate={self.profile}", *options, "--",
                   self.build / "workloads" / program, *arguments]
        with open(self.folder / f"{name}.output", "wb") as output, open(self.folder / f"{name}.errors", "wb") as errors:
            # The machine's file must be writable for all users, whoever creates it.
            who = {} if user is None else {"user": user, "group": user, "extra_groups": [], "umask": 0}
            return subprocess.Popen([str(word) for word in command], env=self.environment(name, slot) | (more or {}), stdout=output,
                                    stderr=errors, **who)

    def output(self, name):
        return (self.folder / f"{name}.output").read_text()

    def errors(self, name):
        return (self.folder / f"{name}.errors").read_text()

    def report(self, name):
        return json.loads((self.folder / f"{name}.report").read_text())

    def process_statistics(self, name):
        return json.loads((self.folder / f"{name}.statistics").read_text())

    def is_free(self):
        """Whether the machine's lock is free: a process stopped inside holds it."""
        try:
            subprocess.run([self.build / "simulator/node_statistics", self.folder / "node"], capture_output=True, timeout=5)
        except subprocess.TimeoutExpired:
            return False
        return True

    def statistics(self):
        """Of all processes, also while they run; none before the first has joined."""
        read = subprocess.run([self.build / "simulator/node_statistics", self.folder / "node"], capture_output=True, text=True)
        return json.loads(read.stdout) if read.returncode == 0 else None
