#!/usr/bin/env python3
"""What `spillway cdi` writes, run by podman: containers with an unmodified image train under Spillway.

    usage: containers_test.py --build BUILD [unittest arguments]

A container's root is this machine's, under an overlay; podman needs no image then. The simulated GPU comes by the environment.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "integration/agent"))
import agent_test  # noqa: E402
import job_socket_test  # noqa: E402
import job_test  # noqa: E402
import skips  # noqa: E402

SPECIFICATION = pathlib.Path("/var/run/cdi/spillway-test.json")  # podman 4.3 reads no other folder, but /etc/cdi
DEVICE = "spillway.dev/job=shared"
TRAINER = "gpt", "--layers=2", "--width=256", "--steps=8"
MIB = 1 << 20


def why_not():
    missing = [program for program in ("podman", "runc") if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    return "" if os.access("/sys/fs/cgroup/freezer", os.W_OK) else "control groups of version 1 cannot be written"


class ContainersFixture(job_socket_test.JobSocketFixture):
    def setUp(self):
        super().setUp()
        self.addCleanup(shutil.rmtree, self.folder / "podman", ignore_errors=True)

    def begin_agent(self):
        self.configure(f'[[device]]\nuuid = "{job_test.UUID}"\nmemory = "1GiB"\n[[rule]]\njob = "container-*"\nlimit = "64MiB"\n'
                       "[defaults]\nfloor = 0\n")
        self.start()

    def start_podman(self, *command, stdin=None):
        words = ["podman", "--root", self.folder / "podman/root", "--runroot", self.folder / "podman/run", "--runtime", "runc",
                 "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "--events-backend", "file", *command]
        return subprocess.Popen([*map(str, words)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def podman(self, *command):
        with self.start_podman(*command) as running:
            stdout, stderr = running.communicate(timeout=200)
            return subprocess.CompletedProcess(command, running.returncode, stdout, stderr)

    def container_options(self, device):
        # podman's own defaults may be above what this machine allows.
        files, processes = (min(resource.getrlimit(kind)[0], 1000) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        build = agent_test.BUILD
        environment = {"LD_LIBRARY_PATH": f"{build}/simulator", "SPILLWAY_SIM_PROFILE": "h200", "SPILLWAY_SIM_COMPUTE": "tags",
                       "SPILLWAY_REPORT": "/out/report"}
        (self.folder / "out").mkdir(exist_ok=True)
        words = ["--network", "none", "--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}",
                 "--device", device, "--volume", f"{self.folder}/out:/out", "--volume", f"{build}:{build}:ro"]
        for name, value in environment.items():
            words += ["--env", f"{name}={value}"]
        return words

    def bare(self, trainer):
        return subprocess.run(trainer, capture_output=True, text=True, check=True,
                              env=dict(os.environ, LD_LIBRARY_PATH=f"{agent_test.BUILD}/simulator", SPILLWAY_SIM_COMPUTE="tags")).stdout


class ContainersTest(ContainersFixture):
    def setUp(self):
        super().setUp()
        self.addCleanup(SPECIFICATION.unlink, missing_ok=True)

    def write(self, *options):
        SPECIFICATION.parent.mkdir(parents=True, exist_ok=True)
        ran = subprocess.run([agent_test.BUILD / "bin/spillway", "cdi", "--no-framework-env", *options, "-o", SPECIFICATION],
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(f"podman run --device {DEVICE}", ran.stderr)

    def run_container(self, *command):
        return self.podman("run", "--rm", *self.container_options(DEVICE), "--rootfs", "/:O", *command)

    def assert_trains_within(self, most_bytes):
        trainer = agent_test.BUILD / "workloads" / TRAINER[0], *TRAINER[1:]
        ran = self.run_container(*trainer)
        self.assertEqual((ran.returncode, ran.stdout), (0, self.bare(trainer)), ran.stderr)
        report = json.loads((self.folder / "out/report").read_text())
        self.assertGreater(report["wanted_peak_bytes"], most_bytes)
        self.assertLessEqual(report["resident_peak_bytes"], most_bytes)

    def test_a_container_trains_under_the_agents_budget(self):
        self.begin_agent()
        self.write("--job-socket", self.jobs)
        self.assert_trains_within(64 * MIB)
        self.assertRegex(self.log(), "container-[0-9a-f]{12}")

    def test_a_container_trains_under_the_specifications_budget(self):
        self.write("--no-agent", "--budget", "48MiB")
        self.assert_trains_within(48 * MIB)

    def test_a_containers_root_finds_the_socket_for_jobs_alone(self):
        self.begin_agent()
        self.write("--job-socket", self.jobs)
        ran = self.run_container("/bin/sh", "-c", f"ls -A /run/spillway;"
                          f" touch /run/spillway/x 2>/dev/null || echo refused; LD_PRELOAD= {agent_test.BUILD}/bin/spillway drain"
                          " --socket /run/spillway/agent.sock 2>/dev/null; echo $?")
        self.assertEqual(ran.stdout.splitlines(), ["agent.sock", "refused", "3"], ran.stderr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    agent_test.BUILD = options.build.resolve()
    reason = why_not()
    if reason:
        skips.leave_out(reason)
    skips.main(rest, warnings="ignore")


if __name__ == "__main__":
    main()
