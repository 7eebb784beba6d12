#!/usr/bin/env python3
"""The images of the agent and of the manifests, each built by podman and by buildah from its Containerfile and the packages beside the build,
and run: the host's command asks the agent in its container, and the DaemonSet's commands find what they need.

    usage: images_test.py --build BUILD [unittest arguments]

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

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(TESTS / "integration/agent"), str(TESTS / "operators/packages")]
import agent_test  # noqa: E402
import fresh_root  # noqa: E402
import packing  # noqa: E402
import skips  # noqa: E402

try:
    import yaml
except ImportError:  # its one test says so
    yaml = None

DEPLOY = packing.ROOT / "deploy"
BASE = "localhost/spillway-test-base"
BUILDERS = "podman", "buildah"
# The packages that each Containerfile copies: the builders read the whole context.
AGENT = "container", ("spillway", "spillway-agent")
KUBERNETES = "kubernetes/image", ("spillway", "spillway-agent", "spillway-kubernetes")
UUID = "GPU-01000000-0000-0000-0000-000000000000"


def why_not():
    missing = [program for program in (*BUILDERS, "runc", "mmdebstrap") if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if os.geteuid() != 0 or not os.access("/sys/fs/cgroup/freezer", os.W_OK):
        return "root, and control groups of version 1 that it can write, are needed"
    try:
        packages = packing.packed(packing.PACKAGES)
    except StopIteration:
        return "there are no packages beside the build: tests/operators/packages/packing.py makes them"
    return fresh_root.make_base(packing.PACKAGES, packages)


class ImagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="spillway-image.", dir="/var/tmp", ignore_cleanup_errors=True)
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.driver = "overlay"
        if subprocess.run(cls.command("podman", "info"), capture_output=True).returncode != 0:
            cls.driver = "vfs"  # copies the whole root for each container
        cls.podman("import", fresh_root.base_archive(packing.PACKAGES, packing.packed(packing.PACKAGES)), BASE)
        cls.images = {}

    @classmethod
    def image(cls, recipe, builder="buildah"):
        place, names = recipe
        image = f"localhost/spillway-test-{pathlib.Path(place).parts[0]}-{builder}"
        if image not in cls.images:
            context = cls.folder / image
            (context / "build/packages").mkdir(parents=True)
            for path in packing.packed(packing.PACKAGES, names):
                shutil.copy(path, context / "build/packages")
            cls.run_builder(builder, "bud" if builder == "buildah" else "build", "--layers=false", "--isolation=chroot", "--network=host", *cls.limits(),
                            "--build-arg", f"BASE={BASE}", "--file", DEPLOY / place / "Containerfile", "--tag", image, context)
            cls.images[image] = image
        return image

    @staticmethod
    def limits():
        """podman's own defaults may be above what this machine allows."""
        files, processes = (min(resource.getrlimit(kind)[0], 1000) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        return "--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}"

    @classmethod
    def command(cls, builder, *words):
        own = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "file") if builder == "podman" else ()
        return [*map(str, (builder, "--root", cls.folder / "root", "--runroot", cls.folder / "run", "--storage-driver", cls.driver, *own, *words))]

    @classmethod
    def run_builder(cls, builder, *words):
        ran = subprocess.run(cls.command(builder, *words), capture_output=True, text=True, timeout=250)
        if ran.returncode != 0:
            raise AssertionError(f"{builder} {words[0]}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return ran.stdout

    @classmethod
    def podman(cls, *words):
        return cls.run_builder("podman", *words)

    def run_in(self, image, *command, options=()):
        return self.podman("run", "--rm", *self.limits(), "--network", "none", *options, "--entrypoint", command[0], image, *command[1:])

    def test_both_builders_install_the_packages_and_leave_nothing_of_the_build(self):
        for recipe in (AGENT, KUBERNETES):
            installed = {}
            for builder in BUILDERS:
                image = self.image(recipe, builder)
                installed[builder] = self.run_in(image, "/usr/bin/dpkg-query", "-W", "-f=${Package} ${Version} ${db:Status-Status}\n").splitlines()
                self.assertEqual(self.run_in(image, "/bin/ls", "/tmp", "/var/lib/apt/lists").split(), ["/tmp:", "/var/lib/apt/lists:"], image)
            ours = [line for line in installed["podman"] if line.startswith("spillway")]
            self.assertEqual([line.split()[0] for line in ours], list(recipe[1]))
            self.assertTrue(all(line.endswith(" installed") for line in ours), ours)
            self.assertEqual(installed["buildah"], installed["podman"])

    def test_the_agents_image_starts_the_agent(self):
        for builder in BUILDERS:
            ran = self.podman("run", "--rm", *self.limits(), "--network", "none", self.image(AGENT, builder), "--version")
            self.assertIn("spillwayd", ran)

    @unittest.skipUnless(yaml, "not installed: python3-yaml")
    def test_the_image_for_kubernetes_has_what_the_daemon_set_runs(self):
        pod = yaml.safe_load((DEPLOY / "kubernetes/base/daemonset.yaml").read_text())["spec"]["template"]["spec"]
        image = self.image(KUBERNETES)
        for container in pod["containers"]:
            program, = container["command"]
            self.assertIn(pathlib.Path(program).name, self.run_in(image, program, "--version"))
        install, = pod["initContainers"]
        library = self.folder / "library"
        library.mkdir()
        mounted, = (mount["mountPath"] for mount in install["volumeMounts"])
        confined = "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--user=0", f"--volume={library}:{mounted}"
        for _ in range(2):  # a new pod on the node finds the file of the last one
            self.run_in(image, *install["command"], *install["args"], options=confined)
            self.assertEqual([path.name for path in library.iterdir()], ["libspillway.so"])
        unpacked = self.folder / "unpacked"
        subprocess.run(["dpkg-deb", "-x", *packing.packed(packing.PACKAGES, ["spillway"]), unpacked], check=True)
        self.assertEqual((library / "libspillway.so").read_bytes(), (unpacked / "usr/lib/spillway/libspillway.so").read_bytes())

    def test_the_hosts_command_asks_the_agent_in_the_container(self):
        shared = self.folder / "shared"
        shared.mkdir()
        (shared / "spillway.toml").write_text(f'[devices]\nfind = false\n[[device]]\nuuid = "{UUID}"\nmemory = "16GiB"\n')
        agent = subprocess.Popen(self.command("podman", "run", "--rm", *self.limits(), "--network", "none", "--pid", "host", "--cgroupns", "host",
                                              "--volume", f"{shared}:/run/spillway", self.image(AGENT), "--config", "/run/spillway/spillway.toml"),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(agent.stdout.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.terminate)

        def status():
            return subprocess.run([packing.BUILD / "bin/spillway", "status", "--socket", shared / "agent.sock"], capture_output=True, text=True)

        seen = agent_test.wait_for(status, lambda ran: ran.returncode == 0, 60)
        self.assertIn("15.5 GiB", seen.stdout, seen.stderr)  # less the reserve
        agent.terminate()
        self.assertIn("stopped; jobs keep what they have", agent.communicate(timeout=60)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    packing.use(options.build)
    reason = why_not()
    if reason:
        skips.leave_out(reason)
    skips.main(rest)
