#!/usr/bin/env python3
"""The CDI names that the driver gives kubelet, run by podman: containers in pods' control groups train under their claims' budgets.

    usage: container_test.py --build BUILD [unittest arguments]

A container's root is this machine's, under an overlay; podman needs no image then.
"""
import contextlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import driver_fixture  # noqa: E402
from driver_fixture import DEVICE, MIB, DriverFixture, claim, pod_uid  # noqa: E402

CDI = "/var/run/cdi"  # podman 4.3 reads no other folder, but /etc/cdi
TRAINER = "gpt", "--layers=2", "--width=256", "--steps=8"


def why_no_containers():
    missing = [program for program in ("podman", "runc") if not shutil.which(program)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    if not os.access("/sys/fs/cgroup/freezer", os.W_OK):
        return "control groups of version 1 cannot be written"
    return ""


class ContainerTest(DriverFixture):
    cdi = CDI
    options = ("--gpus=leave",)  # there is none here

    def setUp(self):
        if why_no_containers():
            self.skipTest(why_no_containers())
        super().setUp()
        self.addCleanup(shutil.rmtree, self.folder / "podman", ignore_errors=True)

    def podman(self, pod, *options):
        """A container with this machine's files; the simulated GPU comes by the environment, as no CDI specification of NVIDIA's does."""
        # podman's own defaults may be above what this machine allows.
        files, processes = (min(resource.getrlimit(kind)[0], 1000) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        build, folder = driver_fixture.build, self.folder
        environment = {"LD_LIBRARY_PATH": f"{build}/simulator", "SPILLWAY_SIM_PROFILE": "h200", "SPILLWAY_SIM_COMPUTE": "tags",
                       "SPILLWAY_SIM_CAPACITY": self.memory, "SPILLWAY_REPORT": "/out/report", "SPILLWAY_SIM_STATS": "/out/statistics"}
        (folder / "out").mkdir(exist_ok=True)
        command = ["podman", "--root", folder / "podman/root", "--runroot", folder / "podman/run", "--runtime", "runc",
                   "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "--events-backend", "file", "run", "--rm", "--network", "none",
                   "--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}",
                   "--cgroup-parent", f"/kubepods/pod{pod_uid(pod)}", "--volume", f"{folder}/out:/out", "--volume", f"{build}:{build}:ro"]
        for name, value in environment.items():
            command += ["--env", f"{name}={value}"]
        ran = subprocess.run([*map(str, command), *options], capture_output=True, text=True, timeout=120)
        self.addCleanup(self.remove_groups, pod)
        return ran

    @staticmethod
    def remove_groups(pod):
        for group in pathlib.Path("/sys/fs/cgroup").glob(f"*/kubepods/pod{pod_uid(pod)}"):
            for folder in (*sorted(group.glob("**/"), reverse=True), group):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def bare(self):
        environment = dict(os.environ, LD_LIBRARY_PATH=f"{driver_fixture.build}/simulator", SPILLWAY_SIM_COMPUTE="tags")
        program = driver_fixture.build / "workloads" / TRAINER[0]
        return subprocess.run([program, *TRAINER[1:]], env=environment, capture_output=True, text=True, check=True).stdout

    def prepared(self, item):
        self.api.put_claim(item)
        uid = item["metadata"]["uid"]
        self.addCleanup(pathlib.Path(CDI, f"k8s.spillway.dev-claim_{uid}.json").unlink, missing_ok=True)
        answer = self.prepare(item)[uid]
        self.assertEqual(answer.error, "")
        return [name for device in answer.devices for name in device.cdi_device_ids]

    def devices(self, names):
        return [word for name in names for word in ("--device", name)]

    def train(self, pod, names):
        program = str(driver_fixture.build / "workloads" / TRAINER[0])
        return self.podman(pod, *self.devices(names), "--rootfs", "/:O", program, *TRAINER[1:])

    def test_a_claims_container_trains_under_its_budget(self):
        self.start_driver()
        # Less than the trainer wants.
        ran = self.train("pod-a", self.prepared(claim("train", "256Mi", of_claim={"limit": "64Mi"})))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout, self.bare())
        report = json.loads((self.folder / "out/report").read_text())
        self.assertGreater(report["wanted_peak_bytes"], 64 * MIB)
        self.assertLessEqual(report["resident_peak_bytes"], 64 * MIB)
        self.assertGreater(report["offloaded_bytes"] + report["dropped_bytes"] + report["recompute_dropped_bytes"], 0)
        self.assertEqual(json.loads((self.folder / "out/statistics").read_text())["violations"], [])
        self.assertRegex(self.agent.log(), f"pod-{pod_uid('pod-a')[:8]}")

    def test_a_root_in_a_container_changes_nothing_at_the_agent(self):
        self.start_driver()
        item = claim("train", "256Mi", of_claim={"limit": "128Mi"})
        names = self.prepared(item)
        before = self.expected_pods()
        command = driver_fixture.build / "bin/spillway"
        ran = self.podman("pod-a", *self.devices(names), "--rootfs", "/:O", "/bin/sh", "-c",
                          f"cd /run/spillway; id -u; ls -A; for what in drain 'config reload' 'budget set pod-{pod_uid('pod-a')[:8]} 1GiB'; do"
                          f" LD_PRELOAD= {command} $what --socket /run/spillway/agent.sock 2>&1; echo $?; done")
        lines = ran.stdout.splitlines()
        self.assertEqual(lines[:2], ["0", "agent.sock"], ran.stderr)
        self.assertEqual([line for line in lines[2:] if line.isdigit()], ["3"] * 3)
        self.assertEqual(ran.stdout.count("through this socket, which is for jobs, nobody may change something"), 3)
        self.assertEqual(self.expected_pods(), before)
        self.assertFalse(self.agent.status()["draining"])

    def test_a_claims_socket_serves_its_pods_alone(self):
        self.start_driver()
        item = claim("train", "256Mi", of_claim={"limit": "64Mi"})
        names = self.prepared(item)
        folder = self.folder / "agent/allocations" / item["metadata"]["uid"]
        self.assertEqual([path.name for path in folder.iterdir()], ["agent.sock"])
        # Another pod gets the claim's device by mistake.
        command = driver_fixture.build / "bin/spillway"
        ran = self.podman("pod-c", *self.devices(names), "--rootfs", "/:O", "/bin/sh", "-c",
                          f"LD_PRELOAD= {command} status --socket /run/spillway/agent.sock 2>&1; echo $?")
        self.assertIn("this allocation is not this pod's, or not yet", ran.stdout)
        self.assertEqual(ran.stdout.split()[-1], "3")
        # One that joins the claim waits until the driver has told the agent.
        self.api.put_claim(claim("train", "256Mi", of_claim={"limit": "64Mi"}, pods=("pod-a", "pod-b")))
        ran = self.train("pod-b", names)
        self.assertEqual((ran.returncode, ran.stdout), (0, self.bare()), ran.stderr)
        self.assertLessEqual(json.loads((self.folder / "out/report").read_text())["resident_peak_bytes"], 64 * MIB)
        self.unprepare(item)
        self.assertFalse(folder.exists())

    def test_the_sockets_folder_cannot_be_written(self):
        self.start_driver()
        names = self.prepared(claim("train", "256Mi"))
        ran = self.podman("pod-a", *self.devices(names), "--rootfs", "/:O", "/bin/sh", "-c",
                          "touch /run/spillway/x || echo refused; echo $LD_PRELOAD $SPILLWAY_AGENT $SPILLWAY_AGENT_REQUIRED")
        self.assertEqual(ran.stdout.splitlines(), ["refused", "/usr/lib/spillway/libspillway.so /run/spillway/agent.sock 1"], ran.stderr)

    def test_an_unprepared_name_starts_no_container(self):
        self.start_driver()
        item = claim("train", "256Mi")
        names = self.prepared(item)
        self.unprepare(item)
        ran = self.train("pod-a", names)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(f"k8s.spillway.dev/claim={item['metadata']['uid']}-{DEVICE}", ran.stderr)


if __name__ == "__main__":
    driver_fixture.main(__doc__)
