#!/usr/bin/env python3
"""The DRA driver and the device plugin, between a fake kubelet over real gRPC, a fake API server over real HTTP, and the real
spillwayd.

    usage: driver_test.py --build BUILD [unittest arguments]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import driver_fixture  # noqa: E402
from driver_fixture import DEVICE, GPU, MIB, NODE, DriverFixture, claim, pod_uid, wait_for  # noqa: E402


class RegistrationTest(DriverFixture):
    def test_kubelet_finds_the_driver_and_both_versions(self):
        self.start_driver()
        info, = self.kubelet.drivers().values()
        self.assertEqual((info.type, info.name, list(info.supported_versions)), ("DRAPlugin", "spillway.dev", ["v1.DRAPlugin", "v1beta1.DRAPlugin"]))
        self.assertEqual(info.endpoint, f"{self.folder}/kubelet/plugins/spillway.dev/dra.sock")

    def test_probe_tells_whether_it_answers(self):
        def probe():
            return subprocess.run(self.command("--probe"), capture_output=True, text=True).returncode

        self.assertEqual(probe(), 1)
        process = self.start_driver()
        self.assertEqual(probe(), 0)
        self.assertEqual(self.stop_driver(process), 0)
        self.assertEqual(probe(), 1)
        self.assertEqual(list(self.kubelet.registry.iterdir()), [])

    def test_comes_back_when_its_sockets_are_removed(self):
        self.start_driver()
        for path in self.kubelet.registry.iterdir():
            path.unlink()
        wait_for(self.kubelet.drivers)

    def test_a_killed_drivers_socket_is_removed_by_the_next(self):
        self.stop_driver(self.start_driver("--instance=old"), signal.SIGKILL)
        self.assertEqual([path.name for path in self.kubelet.registry.iterdir()], ["spillway.dev-old-reg.sock"])
        self.start_driver("--instance=new")
        self.assertEqual([path.name for path in self.kubelet.registry.iterdir()], ["spillway.dev-new-reg.sock"])


class ClaimTest(DriverFixture):
    def test_prepares_and_unprepares_in_both_versions(self):
        self.start_driver()
        for version in "v1", "v1beta1":
            item = claim(f"train-{version}", "512Mi", pods=[f"p-{version}"], of_class={"limit": "100%", "weight": 3, "priority": 2},
                         of_claim={"limit": "768Mi", "floor": "300Mi"})
            self.api.put_claim(item)
            uid = item["metadata"]["uid"]
            answer = self.prepare(item, version=version)[uid]
            self.assertEqual(answer.error, "")
            device, = answer.devices
            self.assertEqual((list(device.request_names), device.pool_name, device.device_name), (["gpu"], NODE, DEVICE))
            self.assertEqual(list(device.cdi_device_ids), [f"k8s.spillway.dev/claim={uid}-{DEVICE}", f"nvidia.com/gpu={GPU}"])
            self.assertEqual(getattr(device, "share_id", "5aa1"), "5aa1")
            spec = json.loads((self.cdi_folder / f"k8s.spillway.dev-claim_{uid}.json").read_text())
            self.assertEqual((spec["cdiVersion"], spec["kind"]), ("0.5.0", "k8s.spillway.dev/claim"))
            terms = self.expected_pods()[pod_uid(f"p-{version}")]
            self.assertEqual({key: terms[key] for key in ("guaranteed", "limit", "weight", "priority")},
                             {"guaranteed": str(300 * MIB), "limit": str(768 * MIB), "weight": "3", "priority": "2"})
            self.assertEqual(self.unprepare(item, version=version)[uid].error, "")
            self.assertEqual(self.expected_pods(), {})
            self.assertEqual(list(self.cdi_folder.iterdir()), [])

    def test_repeats_are_answered_alike(self):
        self.start_driver()
        item = claim("train")
        self.api.put_claim(item)
        first = self.prepare(item)
        self.assertEqual(self.prepare(item), first)
        self.assertEqual(self.unprepare(item), self.unprepare(item))

    def test_answers_each_claim_of_a_request_by_itself(self):
        self.start_driver()
        good, gone, wrong = claim("good"), claim("gone"), claim("wrong", of_claim={"weight": 5})
        for item in good, wrong:
            self.api.put_claim(item)
        answers = self.prepare(good, gone, wrong)
        self.assertEqual(answers[good["metadata"]["uid"]].error, "")
        self.assertIn("claim ml/gone: the API server answers 404", answers[gone["metadata"]["uid"]].error)
        self.assertIn("the claim sets a weight, which its device class does not", answers[wrong["metadata"]["uid"]].error)

    def test_refuses_another_claim_of_the_same_name(self):
        self.start_driver()
        self.api.put_claim(claim("train", uid=pod_uid("newer")))
        old = claim("train", uid=pod_uid("older"))
        self.assertIn("the claim of this name is another one by now", self.prepare(old)[pod_uid("older")].error)
        self.assertEqual(self.expected_pods(), {})

    def test_unprepares_a_claim_that_is_gone(self):
        process = self.start_driver()
        item = claim("train")
        self.api.put_claim(item)
        self.prepare(item)
        self.stop_driver(process, signal.SIGKILL)
        with self.api.lock:
            self.api.claims.clear()
        self.start_driver()
        self.assertEqual(self.unprepare(item)[item["metadata"]["uid"]].error, "")
        self.assertEqual(self.expected_pods(), {})

    def test_a_restarted_driver_restores_what_is_missing(self):
        process = self.start_driver()
        item = claim("train")
        self.api.put_claim(item)
        self.prepare(item)
        self.stop_driver(process, signal.SIGKILL)
        # As after a reboot: neither the agent's state nor the CDI folder outlives it.
        self.agent.stop()
        (self.folder / "agent/agent.sock.state").unlink()
        for path in self.cdi_folder.iterdir():
            path.unlink()
        self.agent.start()
        self.start_driver()
        wait_for(lambda: pod_uid("pod-a") in self.expected_pods())
        self.assertEqual(len(list(self.cdi_folder.iterdir())), 1)

    def test_an_agent_that_lost_its_state_is_told_again(self):
        self.start_driver()
        item = claim("train")
        self.api.put_claim(item)
        self.prepare(item)
        self.agent.stop()
        (self.folder / "agent/agent.sock.state").unlink()
        self.agent.start()
        wait_for(lambda: pod_uid("pod-a") in self.expected_pods())

    def test_an_absent_agent_delays_no_unprepare(self):
        self.start_driver()
        item = claim("train")
        self.api.put_claim(item)
        self.prepare(item)
        self.agent.stop()
        self.assertEqual(self.unprepare(item)[item["metadata"]["uid"]].error, "")
        self.assertIn(pod_uid("pod-a"), self.expected_pods())
        self.agent.start()
        wait_for(lambda: not self.expected_pods())

    def test_an_absent_agent_fails_a_prepare(self):
        self.start_driver()
        item = claim("train")
        self.api.put_claim(item)
        wait_for(self.slice)
        self.agent.stop()
        self.assertIn("the node agent at", self.prepare(item)[item["metadata"]["uid"]].error)
        self.assertEqual(list(self.cdi_folder.iterdir()), [])

    def test_an_absent_agent_fails_all_claims_of_a_pod_within_kubelets_patience(self):
        self.start_driver()
        items = [*(claim(f"train-{number}") for number in range(4)), claim("other", pods=["pod-b"])]
        for item in items:
            self.api.put_claim(item)
        wait_for(self.slice)
        self.agent.stop()
        began = time.monotonic()
        answers = self.prepare(*items)
        self.assertLess(time.monotonic() - began, 20)  # the agent's patience once, not five times
        for item in items:
            self.assertIn("the node agent at", answers[item["metadata"]["uid"]].error)
        self.agent.start()
        self.prepare(*items)
        self.agent.stop()
        began = time.monotonic()
        for answer in self.unprepare(*items).values():
            self.assertEqual(answer.error, "")
        self.assertLess(time.monotonic() - began, 5)

    def test_a_claim_allocated_anew_replaces_the_old_one(self):
        self.start_driver()
        item = claim("train", "256Mi")
        self.api.put_claim(item)
        self.prepare(item)
        item = claim("train", "512Mi", pods=["pod-b"])
        item["status"]["allocation"]["devices"]["results"][0]["shareID"] = "77bb"
        self.api.put_claim(item)
        answer = self.prepare(item)[item["metadata"]["uid"]]
        self.assertEqual((answer.error, [device.share_id for device in answer.devices]), ("", ["77bb"]))
        terms = self.expected_pods()
        self.assertEqual({pod: terms[pod]["limit"] for pod in terms}, {pod_uid("pod-b"): str(512 * MIB)})

    def test_refuses_admin_access(self):
        self.start_driver()
        item = claim("watch")
        item["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
        self.api.put_claim(item)
        self.assertIn("request gpu has adminAccess", self.prepare(item)[item["metadata"]["uid"]].error)
        self.assertEqual(self.expected_pods(), {})

    def test_a_rolling_update_changes_drivers_under_a_claim(self):
        old = self.start_driver("--instance=old")
        item = claim("train")
        self.api.put_claim(item)
        self.prepare(item)
        self.start_driver("--instance=new")
        self.assertEqual(len(self.kubelet.drivers()), 2)
        self.stop_driver(old)
        self.assertEqual(len(self.kubelet.drivers()), 1)
        self.assertEqual(self.unprepare(item)[item["metadata"]["uid"]].error, "")
        self.assertEqual(self.expected_pods(), {})

    def test_a_claim_without_a_count_has_the_whole_device(self):
        self.start_driver()
        item = claim("train", memory=None)
        self.api.put_claim(item)
        self.prepare(item)
        self.assertEqual(self.expected_pods()[pod_uid("pod-a")]["guaranteed"], str(self.memory))

    def test_a_damaged_state_is_put_aside(self):
        process = self.start_driver()
        self.stop_driver(process)
        state = self.folder / "kubelet/plugins/spillway.dev/state.json"
        state.write_text("{")
        self.start_driver()
        wait_for(state.with_name("state.json.damaged").exists)
        self.assertIn("it is put aside", self.logs())

    def test_a_damaged_state_costs_no_running_pod_its_files(self):
        process = self.start_driver()
        item = claim("train")
        self.api.put_claim(item)
        self.prepare(item)
        state = self.folder / "kubelet/plugins/spillway.dev/state.json"
        for is_damaged in True, False:
            self.stop_driver(process)
            if is_damaged:
                state.write_text("{")
            process = self.start_driver()
            other = claim("other", pods=["pod-b"])
            self.api.put_claim(other)
            self.assertEqual(self.prepare(other)[other["metadata"]["uid"]].error, "")
            self.assertTrue((self.cdi_folder / f"k8s.spillway.dev-claim_{item['metadata']['uid']}.json").exists())


class SliceTest(DriverFixture):
    def devices(self):
        item = self.slice()
        return item and item["spec"]["devices"]

    def taints(self):
        return [taint["key"] for taint in (self.devices() or [{}])[0].get("taints", [])]

    def test_publishes_the_nodes_memory(self):
        facts = self.folder / "gpus/0000:81:00.0"
        facts.mkdir(parents=True)
        (facts / "information").write_text(f"Model: \t NVIDIA H200\nGPU UUID: \t {GPU}\nBus Location: \t 0000:81:00.0\n")
        self.start_driver()
        item = wait_for(self.slice)
        self.assertEqual(item["metadata"]["ownerReferences"], [{"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "node-uid-1"}])
        device, = item["spec"]["devices"]
        self.assertEqual(device["capacity"]["memory"]["value"], "1Gi")
        self.assertEqual(device["attributes"]["resource.kubernetes.io/pciBusID"], {"string": "0000:81:00.0"})
        self.assertTrue(device["allowMultipleAllocations"])

    def test_publishes_again_what_kubelet_deletes(self):
        self.start_driver()
        first = wait_for(self.slice)
        self.api.delete_slice(first["metadata"]["name"])
        wait_for(lambda: self.slice() and self.slice()["metadata"]["uid"] != first["metadata"]["uid"])

    def test_undoes_a_change_by_somebody_else(self):
        self.start_driver()
        item = wait_for(self.slice)
        changed = json.loads(json.dumps(item))
        changed["spec"]["devices"][0]["capacity"]["memory"]["value"] = "64Gi"
        changed["spec"]["pool"]["generation"] += 1
        self.api.put_slice(changed)
        wait_for(lambda: self.devices()[0]["capacity"]["memory"]["value"] == "1Gi")
        self.assertGreater(self.slice()["spec"]["pool"]["generation"], changed["spec"]["pool"]["generation"])

    def test_tries_again_after_a_conflict(self):
        self.start_driver()
        wait_for(self.slice)
        with self.api.lock:
            self.api.conflicts = 3
        self.agent.command("drain")
        wait_for(lambda: self.taints() == ["spillway.dev/drained"])
        self.assertEqual(len([request for request in self.api.asked("PUT", "resourceslices") if request[3] == 409]), 3)
        self.assertNotIn("warn", self.logs())

    def test_lists_again_after_410(self):
        self.start_driver()
        item = wait_for(self.slice)
        wait_for(lambda: self.api.asked("GET", "watch=true"))
        watches = len(self.api.asked("GET", "watch=true"))
        self.api.forget_history()
        wait_for(lambda: len(self.api.asked("GET", "watch=true")) > watches)
        self.api.delete_slice(item["metadata"]["name"])
        wait_for(self.slice)

    def test_lists_again_after_410_as_the_watchs_status(self):
        self.start_driver()
        item = wait_for(self.slice)
        wait_for(lambda: self.api.asked("GET", "watch=true"))
        with self.api.lock:
            self.api.gone_watches = 3
        self.api.delete_slice(item["metadata"]["name"])
        wait_for(self.slice)
        wait_for(lambda: [code for *_, code in self.api.asked("GET", "watch=true")][-4:] == [410, 410, 410, 200])
        self.assertNotIn("warn", self.logs())

    def test_lists_again_after_410_as_the_lists_status(self):
        with self.api.lock:
            self.api.gone_lists = 2
        self.start_driver()
        wait_for(self.slice)
        lists = [code for _, path, _, code in self.api.asked("GET", "/resourceslices") if "watch=true" not in path]
        self.assertEqual(lists[:3], [410, 410, 200])

    def test_goes_on_after_the_server_ends_the_watch(self):
        self.start_driver()
        item = wait_for(self.slice)
        wait_for(lambda: self.api.asked("GET", "watch=true"))
        with self.api.lock:
            self.api.end_watches += 1
            self.api.lock.notify_all()
        wait_for(lambda: len(self.api.asked("GET", "watch=true")) > 1)
        self.api.delete_slice(item["metadata"]["name"])
        wait_for(self.slice)

    def test_takes_a_new_token_from_its_file(self):
        self.start_driver()
        wait_for(self.slice)
        with self.api.lock:
            self.api.tokens = {"second"}
        item = claim("train")
        self.api.put_claim(item)
        self.assertIn("answers 401: Unauthorized", self.prepare(item)[item["metadata"]["uid"]].error)
        self.token.write_text("second")
        self.assertEqual(self.prepare(item)[item["metadata"]["uid"]].error, "")

    def test_draining_taints_devices(self):
        self.start_driver()
        wait_for(self.slice)
        self.agent.command("drain")
        wait_for(lambda: self.taints() == ["spillway.dev/drained"])
        self.agent.command("undrain")
        wait_for(lambda: self.taints() == [])

    def test_an_absent_agent_taints_devices(self):
        self.start_driver()
        wait_for(self.slice)
        self.agent.stop()
        wait_for(lambda: self.taints() == ["spillway.dev/agent-away"])
        self.agent.start()
        wait_for(lambda: self.taints() == [])

    def test_nothing_is_on_offer_before_the_agents_first_answer(self):
        process = self.start_driver()
        wait_for(self.devices)
        self.stop_driver(process)
        self.agent.stop()
        self.start_driver()
        wait_for(lambda: self.devices() == [])
        self.agent.start()
        wait_for(self.devices)
        self.assertEqual(self.taints(), [])

    def test_says_that_the_agent_has_no_socket_for_jobs(self):
        self.start_driver()
        wait_for(self.slice)
        self.assertNotIn("no container can reach the agent", self.logs())
        self.agent.stop()
        path = self.agent.folder / "spillway.toml"
        path.write_text(path.read_text().replace("job_socket", "# job_socket"))
        self.agent.start()
        wait_for(lambda: f"no container can reach the agent: there is no socket at {self.job_socket}" in self.logs())

    def test_gpus_that_disappear_are_on_offer_no_more(self):
        self.start_driver()
        wait_for(self.devices)
        self.agent.stop()
        path = self.agent.folder / "spillway.toml"
        path.write_text(path.read_text().split("[[device]]")[0])
        self.agent.start()
        wait_for(lambda: self.devices() == [])

    def test_an_older_server_is_asked_once(self):
        self.api.unknown_fields = {"allowMultipleAllocations"}
        # Its validation would refuse the policy, too; what counts here is that the driver accepts what is stored.
        self.start_driver()
        wait_for(self.slice)
        wait_for(lambda: self.api.asked("GET", "watch=true"))
        self.assertIn("each GPU goes to one claim, whole", self.logs())
        self.assertEqual(self.api.asked("PUT", "resourceslices"), [])

    def test_says_which_right_is_missing(self):
        with self.api.lock:
            self.api.granted.discard(("resourceslices", "create"))
        self.start_driver()
        wait_for(lambda: "cannot create resourceslices" in self.logs())
        self.assertIn("the driver's account needs the rights in deploy/kubernetes/overlays/claims/rbac.yaml", self.logs())

    def test_uses_every_right_of_its_role(self):
        self.start_driver()
        older = json.loads(json.dumps(wait_for(self.slice)))
        older["metadata"] = {"name": "older"}
        self.api.put_slice(older)
        self.agent.command("drain")
        wait_for(lambda: self.taints() == ["spillway.dev/drained"])
        item = claim("train")
        self.api.put_claim(item)
        self.prepare(item)
        wait_for(lambda: self.api.used == self.api.granted)

    def test_removes_slices_of_other_names(self):
        self.start_driver()
        older = json.loads(json.dumps(wait_for(self.slice)))
        older["metadata"] = {"name": "older"}
        self.api.put_slice(older)
        wait_for(lambda: self.api.asked("DELETE", "older"))
        self.assertEqual([name for name in self.api.slices], [f"{NODE}-spillway.dev"])


class SecureTest(DriverFixture):
    def certificate(self):
        paths = self.folder / "ca.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                        "-subj", "/CN=fake", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", paths[1], "-out", paths[0]],
                       check=True, capture_output=True)
        return tuple(map(str, paths))

    def test_speaks_tls_with_the_named_authority(self):
        self.start_driver("--ca-file", self.folder / "ca.pem")
        wait_for(self.slice)

    def test_refuses_another_authority(self):
        self.start_driver()
        wait_for(lambda: "no answer from the API server" in self.logs())
        self.assertIsNone(self.slice())


class SharedClaimTest(DriverFixture):
    """Pods in control groups as kubelet makes them; a program connects to the agent as a job does."""

    FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")

    def setUp(self):
        if not os.access(self.FREEZER, os.W_OK) or not self.FREEZER.is_mount():
            self.skipTest(f"{self.FREEZER} cannot be written")
        super().setUp()

    def begin_pod(self, pod):
        group = self.FREEZER / f"kubepods/pod{pod_uid(pod)}/{'ab' * 32}"
        group.mkdir(parents=True, exist_ok=True)
        self.addCleanup(lambda: (group.rmdir(), group.parent.rmdir()))
        program = [driver_fixture.build / "bin/spillway", "run", "--quiet", "--simulate=h200", f"--agent={self.agent.socket}", "--",
                   driver_fixture.build / "workloads/gpt", "--layers=1", "--width=64", "--steps=1000000"]
        # The shell enters the group, then becomes the program.
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', group, *program],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=dict(os.environ, SPILLWAY_SIM_COMPUTE="tags", SPILLWAY_SIM_CAPACITY=str(self.memory)))
        self.addCleanup(lambda: (process.kill(), process.wait()))

    def limit(self, pod):
        return self.expected_pods().get(pod_uid(pod), {}).get("limit")

    def test_a_second_pod_of_a_claim_gets_its_part(self):
        self.start_driver()
        item = claim("shared", "512Mi", pods=["pod-a"])
        self.api.put_claim(item)
        self.prepare(item)
        self.assertEqual(self.limit("pod-a"), str(512 * MIB))
        # The scheduler reserves the claim for another pod, of which kubelet tells nothing.
        self.api.put_claim(claim("shared", "512Mi", pods=["pod-a", "pod-b"]))
        self.begin_pod("pod-b")
        wait_for(lambda: self.limit("pod-b") == str(256 * MIB))
        self.assertEqual(self.limit("pod-a"), str(256 * MIB))

    def test_an_ended_pods_part_comes_back(self):
        self.start_driver()
        item = claim("shared", "512Mi", pods=["pod-a", "pod-b"])
        self.api.put_claim(item)
        self.prepare(item)
        self.assertEqual(self.limit("pod-a"), str(256 * MIB))
        self.begin_pod("pod-a")
        # The cluster takes back the reservation of the other one, which kubelet does not tell.
        self.api.put_claim(claim("shared", "512Mi", pods=["pod-a"]))
        wait_for(lambda: self.limit("pod-a") == str(512 * MIB))
        self.assertIsNone(self.limit("pod-b"))

    def test_a_claim_without_reservation_does_not_end_the_others_division(self):
        self.start_driver()
        broken, shared = claim("broken", pods=["pod-c"]), claim("shared", "512Mi", pods=["pod-a"])
        for item in broken, shared:
            self.api.put_claim(item)
        self.prepare(broken, shared)
        self.api.put_claim(claim("broken", pods=[]))
        self.api.put_claim(claim("shared", "512Mi", pods=["pod-a", "pod-b"]))
        self.begin_pod("pod-b")
        wait_for(lambda: self.limit("pod-b") == str(256 * MIB))
        self.assertEqual(self.logs().count("claim ml/broken keeps the pods that it had: the claim is reserved for no pod"), 1)


class DevicePluginTest(DriverFixture):
    def test_offers_slots_and_registers_with_each_kubelet(self):
        self.kubelet.start()
        self.start_driver("--claims=off", "--slots=4")
        request = wait_for(lambda: self.kubelet.registered)[0]
        self.assertEqual((request.version, request.resource_name), ("v1beta1", "spillway.dev/gpu-slot"))
        watch = self.kubelet.watch_devices()
        self.addCleanup(watch.close)
        wait_for(lambda: watch.lists and watch.lists[-1] == {f"{GPU}-s{i}": "Healthy" for i in range(4)})
        self.agent.command("drain")
        wait_for(lambda: watch.lists[-1] == {f"{GPU}-s{i}": "Unhealthy" for i in range(4)})
        for restarts, empties in enumerate((True, False), start=1):
            self.kubelet.stop()
            self.kubelet.start(empties)
            wait_for(lambda: len(self.kubelet.registered) == restarts + 1)

    def test_allocates_slots(self):
        self.kubelet.start()
        self.start_driver("--claims=off", "--slots=4")
        wait_for(lambda: self.kubelet.registered)
        messages = self.messages["device_plugin"]
        request = messages.AllocateRequest()
        request.container_requests.add(devices_ids=[f"{GPU}-s0", f"{GPU}-s3"])
        answer, = self.kubelet.plugin_call("Allocate", request, "AllocateResponse").container_responses
        self.assertEqual(dict(answer.envs), {"SPILLWAY_BUDGET": str(512 * MIB)})
        self.assertEqual([device.name for device in answer.cdi_devices], ["k8s.spillway.dev/slot=gpu", f"nvidia.com/gpu={GPU}"])
        self.assertTrue((self.cdi_folder / "k8s.spillway.dev-slot.json").exists())
        preferred = messages.PreferredAllocationRequest()
        preferred.container_requests.add(available_deviceIDs=[f"{GPU}-s{i}" for i in range(4)], must_include_deviceIDs=[f"{GPU}-s2"],
                                         allocation_size=2)
        chosen, = self.kubelet.plugin_call("GetPreferredAllocation", preferred, "PreferredAllocationResponse").container_responses
        self.assertEqual(list(chosen.deviceIDs), [f"{GPU}-s2", f"{GPU}-s0"])


if __name__ == "__main__":
    driver_fixture.main(__doc__)
