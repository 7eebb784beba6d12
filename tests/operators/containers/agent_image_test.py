#!/usr/bin/env python3
"""The agent's image, built by podman from its Containerfile and the packages beside the build, and run: the host's command asks the agent
in the container.

    usage: agent_image_test.py --build BUILD [unittest arguments]

No registry is asked: the base image is a root made by mmdebstrap, which the packages' tests keep beside the packages (tools/package.sh).
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path += [str(pathlib.Path(__file__).resolve().parents[2] / "integration/agent"), str(pathlib.Path(__file__).resolve().parents[1] / "packages")]
import agent_test  # noqa: E402
import fresh_root  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
BASE, IMAGE = "localhost/spillway-test-base", "localhost/spillway-test-agent"
SKIPPED = 77
UUID = "GPU-01000000-0000-0000-0000-000000000000"


def packages():
    """The newest of both packages, or none."""
    found = [sorted((agent_test.BUILD / "packages").glob(f"{name}_*.deb"), key=os.path.getmtime)[-1:] for name in ("spillway", "spillway-agent")]
    return [path for paths in found for path in paths]


def why_not():
    missing = [program for program in ("podman", "runc", "mmdebstrap") if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if os.geteuid() != 0 or not os.access("/sys/fs/cgroup/freezer", os.W_OK):
        return "root, and control groups of version 1 that it can write, are needed"
    if len(packages()) != 2:
        return "there are no packages beside the build: tools/package.sh makes them"
    return fresh_root.make_base(agent_test.BUILD / "packages", packages())


class AgentImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="spillway-image.", dir="/var/tmp", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.podman("import", fresh_root.base_archive(agent_test.BUILD / "packages", packages()), BASE)
        # What the Containerfile copies, and nothing else: podman reads the whole context.
        context = cls.folder / "context/build/packages"
        context.mkdir(parents=True)
        for path in packages():
            shutil.copy(path, context)
        limits = cls.limits()
        cls.podman("build", "--layers=false", "--isolation=chroot", "--network=host", *limits, "--build-arg", f"BASE={BASE}",
                   "--file", ROOT / "deploy/container/Containerfile", "--tag", IMAGE, cls.folder / "context")

    @staticmethod
    def limits():
        """podman's own defaults may be above what this machine allows."""
        files, processes = (min(resource.getrlimit(kind)[0], 1000) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        return "--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}"

    @classmethod
    def command(cls, *words):
        return [*map(str, ("podman", "--root", cls.folder / "root", "--runroot", cls.folder / "run", "--runtime", "runc", "--cgroup-manager", "cgroupfs",
                           "--storage-driver", "vfs", "--events-backend", "file", *words))]

    @classmethod
    def podman(cls, *words):
        ran = subprocess.run(cls.command(*words), capture_output=True, text=True, timeout=250)
        if ran.returncode != 0:
            raise AssertionError(f"podman {words[0]}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return ran.stdout

    def test_it_has_the_packages_program_and_nothing_of_the_build(self):
        self.assertIn("spillwayd", self.podman("run", "--rm", *self.limits(), "--network", "none", IMAGE, "--version"))
        left = self.podman("run", "--rm", *self.limits(), "--network", "none", "--entrypoint", "/bin/ls", IMAGE, "/tmp")
        self.assertEqual(left, "")

    def test_the_hosts_command_asks_the_agent_in_the_container(self):
        shared = self.folder / "shared"
        shared.mkdir()
        (shared / "spillway.toml").write_text(f'[devices]\nfind = false\n[[device]]\nuuid = "{UUID}"\nmemory = "16GiB"\n')
        agent = subprocess.Popen(self.command("run", "--rm", *self.limits(), "--network", "none", "--pid", "host", "--cgroupns", "host", "--volume",
                                              f"{shared}:/run/spillway", IMAGE, "--config", "/run/spillway/spillway.toml"),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(agent.stdout.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.terminate)

        def status():
            return subprocess.run([agent_test.BUILD / "bin/spillway", "status", "--socket", shared / "agent.sock"], capture_output=True, text=True)

        seen = agent_test.wait_for(status, lambda ran: ran.returncode == 0, 60)
        self.assertIn("15.5 GiB", seen.stdout, seen.stderr)  # less the reserve
        agent.terminate()
        self.assertIn("stopped; jobs keep what they have", agent.communicate(timeout=60)[0])


if __name__ == "__main__":

    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    agent_test.BUILD = parser.parse_known_args()[0].build.resolve()
    reason = why_not()
    if reason:
        print(reason)
        sys.exit(SKIPPED)
    agent_test.main()
