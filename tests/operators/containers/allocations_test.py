#!/usr/bin/env python3
"""Containers with a socket each (`spillway cdi --allocation`), run by podman: each reaches its own, also after the agent was killed.

    usage: allocations_test.py --build BUILD [unittest arguments]
"""
import json
import pathlib
import shlex
import signal
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import containers_test  # noqa: E402
from containers_test import MIB, TRAINER, agent_test  # noqa: E402

HELLO = """
import socket, struct, sys
agent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
agent.connect(sys.argv[1])
agent.send((struct.pack("<4sHHII", b"SPWY", 1, 1, 256, 0) + struct.pack("<HHBi", 1, 1, 1, 0)).ljust(256, b"\\0"))
print({2: "Welcome", 9: "Error"}.get(struct.unpack_from("<H", agent.recv(300), 6)[0]))
"""


class Container:
    """Runs commands in its first process: `podman exec` of 4.3 has none of the variables of CDI specifications."""

    def __init__(self, running, out):
        self.running, self.out, self.commands = running, out, 0

    def begin(self, *command, **variables):
        self.commands += 1
        base = f"{self.running.pid}-{self.commands}"
        words = shlex.join(["env", *(f"{name}={value}" for name, value in variables.items()), *map(str, command)])
        self.running.stdin.write(f"({words} >/out/{base}.out 2>/out/{base}.err </dev/null; echo $? >/out/{base}.t; mv /out/{base}.t /out/{base}.code) &\n")
        self.running.stdin.flush()
        return self.out / base

    @staticmethod
    def end(base):
        code = agent_test.wait_for(base.with_suffix(".code").exists, bool, 200)
        assert code, f"{base} does not end"
        stdout, stderr = (base.with_suffix(kind).read_text() for kind in (".out", ".err"))
        return subprocess.CompletedProcess(base, int(base.with_suffix(".code").read_text()), stdout, stderr)

    def run(self, *command, **variables):
        return self.end(self.begin(*command, **variables))

    def stop(self):
        self.running.communicate(timeout=agent_test.PATIENCE_S)


class AllocationsTest(containers_test.ContainersFixture):
    def setUp(self):
        super().setUp()
        self.containers = {}

    def open(self, name, *options):
        file = pathlib.Path(f"/var/run/cdi/spillway-test-{name}.json")
        self.addCleanup(file.unlink, missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        ran = self.spillway("cdi", "--no-framework-env", "--allocation", name, *options, "-o", file)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return file

    def start_container(self, name, *options):
        # An image has none of the host's files that this test makes.
        running = self.start_podman("run", "--rm", "--interactive", *self.container_options(f"spillway.dev/job={name}"),
                                    "--tmpfs", "/tmp:notmpcopyup", *options, "--rootfs", "/:O", "sh", stdin=subprocess.PIPE)
        container = self.containers[name] = Container(running, self.folder / "out")
        self.addCleanup(container.stop)

    def inside(self, name, *command, **variables):
        return self.containers[name].run(*command, **variables)

    def socket_of(self, name):
        return self.folder / "allocations" / name / "agent.sock"

    def hello(self, name, path):
        return self.inside(name, sys.executable, "-c", HELLO, path, LD_PRELOAD="").stdout.strip()

    def assert_trains_within(self, name, most_bytes):
        trainer = agent_test.BUILD / "workloads" / TRAINER[0], *TRAINER[1:]
        ran = self.inside(name, *trainer)
        self.assertEqual((ran.returncode, ran.stdout), (0, self.bare(trainer)), ran.stderr)
        report = json.loads((self.folder / "out/report").read_text())
        self.assertGreater(report["wanted_peak_bytes"], most_bytes)
        self.assertLessEqual(report["resident_peak_bytes"], most_bytes)

    def test_each_container_reaches_its_own_socket_alone(self):
        self.begin_agent()
        first = self.open("a", "--budget", "48MiB")
        self.open("b")
        self.start_container("a")
        self.start_container("b", "--volume", f"{self.socket_of('a').parent}:/others:ro")
        # Each trains with an unmodified image under its budget: its own, or that of the rule for containers.
        self.assert_trains_within("a", 48 * MIB)
        self.assert_trains_within("b", 64 * MIB)
        for name, other in ("a", "b"), ("b", "a"):
            inode = str(self.socket_of(name).stat().st_ino)
            seen = self.inside(name, "sh", "-c", f"ls -A /run/spillway; stat -c %i /run/spillway/agent.sock; ls {self.socket_of(other)} 2>&1 | tail -c 28")
            self.assertEqual(seen.stdout.splitlines(), ["agent.sock", inode, ": No such file or directory"], seen.stderr)
        # The operator's mistake: b has a's socket, too.
        self.assertEqual([self.hello("b", path) for path in ("/others/agent.sock", "/run/spillway/agent.sock")], ["Error", "Welcome"])
        command = agent_test.BUILD / "bin/spillway"
        self.assertEqual(self.inside("b", command, "status", "--socket", "/others/agent.sock", LD_PRELOAD="").returncode, 3)
        self.assertEqual(self.inside("a", command, "drain", "--socket", "/run/spillway/agent.sock", LD_PRELOAD="").returncode, 3)
        self.assertRegex(self.log(), "container-[0-9a-f]{12} is refused at the socket of allocation a: ")

        # The agent is killed while a job runs. The next one's sockets are where the containers look.
        trainer = agent_test.BUILD / "workloads" / TRAINER[0], *TRAINER[1:-1], "--steps=60"
        running = self.containers["a"].begin(*trainer)
        agent_test.wait_for(lambda: len(self.status()["jobs"]), lambda jobs: jobs > 0)
        self.stop(signal.SIGKILL)
        self.start()
        self.assertFalse(running.with_suffix(".code").exists())
        ran = Container.end(running)
        self.assertEqual((ran.returncode, ran.stdout), (0, self.bare(trainer)), ran.stderr)
        self.assert_trains_within("a", 48 * MIB)
        self.assertEqual([self.hello("b", path) for path in ("/others/agent.sock", "/run/spillway/agent.sock")], ["Error", "Welcome"])

        self.assertEqual(json.loads(self.spillway("status", "--json").stdout)["allocations"], [{"name": "a", "jobs": 1}, {"name": "b", "jobs": 1}])
        ran = self.spillway("cdi", "--allocation", "a", "--close", "-o", first)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertFalse(first.exists() or self.socket_of("a").parent.exists())
        kept = (self.folder / "agent.sock.state").read_text()
        self.assertRegex(kept, "(?m)^allocation .*: b$")
        self.assertNotRegex(kept, "(?m)^allocation .*: a$")
        self.assertEqual(self.inside("a", "ls", "-A", "/run/spillway").stdout, "")
        # After a reboot the agent knows none, and the file goes all the same.
        first.write_text("{}")
        self.assertEqual(self.spillway("cdi", "--allocation", "a", "--close", "-o", first).returncode, 3)
        self.assertFalse(first.exists())


if __name__ == "__main__":
    containers_test.main()
