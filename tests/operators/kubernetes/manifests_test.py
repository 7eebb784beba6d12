#!/usr/bin/env python3
"""The manifests, built by `kubectl kustomize` without a cluster: strict schemas, and whether they agree with the programs.

    usage: manifests_test.py --build BUILD [unittest arguments]
"""
import copy
import http.client
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import driver_fixture  # noqa: E402
import node_agent  # noqa: E402
import ports  # noqa: E402

FOLDER = driver_fixture.ROOT / "deploy/kubernetes"
SETS = ["base", "examples", *sorted(f"overlays/{path.name}" for path in (FOLDER / "overlays").iterdir())]


def documents(name):
    import yaml
    built = subprocess.run(["kubectl", "kustomize", FOLDER / name], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(built.stdout))


def problems(document):
    import jsonschema
    import manifest_schemas
    kind = document.get("kind")
    if kind not in manifest_schemas.KINDS:
        return [f"no schema for the kind {kind}"]
    found = [f"{kind} {'.'.join(map(str, error.path))}: {error.message}"
             for error in jsonschema.Draft7Validator(manifest_schemas.KINDS[kind]).iter_errors(document)]
    if ("namespace" in document["metadata"]) and kind in manifest_schemas.CLUSTER_WIDE:
        found.append(f"{kind}: it belongs to no namespace")
    return found


def of_kind(name, kind):
    return [document for document in documents(name) if document["kind"] == kind]


class ManifestsTest(unittest.TestCase):
    def setUp(self):
        if not shutil.which("kubectl"):
            self.skipTest("not installed: kubectl (Debian: kubernetes-client)")

    def pod(self, name):
        return of_kind(name, "DaemonSet")[0]["spec"]["template"]["spec"]

    def containers(self, name):
        return {container["name"]: container for container in self.pod(name)["containers"]}

    def test_all_fields_are_known(self):
        for name in SETS:
            for document in documents(name):
                self.assertEqual(problems(document), [], name)

    def test_a_mistyped_field_is_a_problem(self):
        for document in documents("overlays/claims") + documents("examples"):
            wrong = copy.deepcopy(document)
            wrong["spce"] = {}
            self.assertNotEqual(problems(wrong), [])
        # Only a claim's settings are for some of its requests.
        of_requests = copy.deepcopy(of_kind("overlays/claims", "DeviceClass")[1])
        of_requests["spec"]["config"][0]["requests"] = ["gpu"]
        self.assertNotEqual(problems(of_requests), [])
        pod = copy.deepcopy(of_kind("base", "DaemonSet")[0])
        pod["spec"]["template"]["spec"]["hostPID"] = "yes"
        self.assertNotEqual(problems(pod), [])

    def test_volumes_and_mounts_agree(self):
        for name in SETS:
            for document in of_kind(name, "DaemonSet"):
                pod = document["spec"]["template"]["spec"]
                volumes = [volume["name"] for volume in pod["volumes"]]
                mounts = [mount["name"] for container in pod["containers"] + pod["initContainers"] for mount in container["volumeMounts"]]
                self.assertEqual(set(volumes), set(mounts), name)
                self.assertEqual(len(volumes), len(set(volumes)))

    def test_only_the_agent_is_privileged(self):
        for name in ("base", "overlays/claims", "overlays/prometheus", "overlays/metrics-token", "overlays/device-plugin"):
            pod = self.pod(name)
            self.assertTrue(pod["hostPID"])
            privileged = [container["name"] for container in pod["containers"] if container["securityContext"].get("privileged")]
            self.assertEqual(privileged, ["agent"], name)
        host = self.pod("overlays/host-agent")
        self.assertFalse(host["hostPID"])
        self.assertEqual([container["name"] for container in host["containers"]], ["driver"])
        for container in host["containers"] + host["initContainers"]:
            self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
            self.assertFalse(container["securityContext"]["allowPrivilegeEscalation"])

    def test_drivers_run_side_by_side_only_without_the_agent(self):
        for name, surge in (("overlays/claims", 0), ("overlays/host-agent", 1)):
            update = of_kind(name, "DaemonSet")[0]["spec"]["updateStrategy"]["rollingUpdate"]
            self.assertEqual(update.get("maxSurge", 0), surge, name)

    def test_the_driver_takes_its_arguments(self):
        for name in SETS:
            for document in of_kind(name, "DaemonSet"):
                driver, = (one for one in document["spec"]["template"]["spec"]["containers"] if one["name"] == "driver")
                program = driver_fixture.build / "bin" / pathlib.Path(driver["command"][0]).name
                asked = subprocess.run([program, *driver["args"], "--version"], capture_output=True, text=True)
                self.assertEqual(asked.returncode, 0, asked.stderr)
                self.assertEqual({one["name"] for one in driver["env"]}, {"NODE_NAME", "POD_UID"})

    def test_the_agent_takes_its_configuration(self):
        data = of_kind("base", "ConfigMap")[0]["data"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "spillway.toml")
            path.write_text(data["spillway.toml"])
            checked = subprocess.run([driver_fixture.build / "bin/spillwayd", "--check", "--config", path], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
        ports = self.containers("base")["agent"]["ports"]
        self.assertIn(f":{ports[0]['containerPort']}", data["spillway.toml"])

    def test_pods_see_nothing_of_the_agent_but_the_jobs_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "spillway.toml")
            path.write_text(of_kind("base", "ConfigMap")[0]["data"]["spillway.toml"])
            program = driver_fixture.build / "bin/spillwayd"
            shown = subprocess.run([program, "--show", "--json", "--config", path], capture_output=True, text=True, check=True).stdout
            settings = json.loads(shown)["configuration"]
        agent, store = settings["agent"], settings["planning"]["store"]
        seen = pathlib.Path(agent["job_socket"]).parent
        for other in agent["socket"], agent["state"], store:
            self.assertTrue(other, "a place of its own")
            self.assertNotIn(seen, (pathlib.Path(other), *pathlib.Path(other).parents))
        # Plans are kept on the node, not in the container.
        self.assertIn(store, [mount["mountPath"] for mount in self.containers("base")["agent"]["volumeMounts"]])
        help_text = subprocess.run([driver_fixture.build / "bin/spillway-kubernetes", "--help"], capture_output=True, text=True).stdout
        self.assertIn(f"(default: {agent['job_socket']})", " ".join(help_text.split()))

    def test_the_policys_port_is_the_agents(self):
        policy, = of_kind("base", "NetworkPolicy")
        self.assertEqual(policy["spec"]["ingress"][0]["ports"][0]["port"], self.containers("base")["agent"]["ports"][0]["containerPort"])

    def test_selectors_find_the_pods(self):
        labels = of_kind("base", "DaemonSet")[0]["spec"]["template"]["metadata"]["labels"]
        for document in documents("overlays/metrics-token"):
            spec = document.get("spec", {})
            selector = spec.get("podSelector") or spec.get("selector")
            if selector and document["kind"] != "ValidatingAdmissionPolicy":
                self.assertEqual(selector.get("matchLabels", selector), labels, document["kind"])

    def test_examples_use_the_classes(self):
        classes = {document["metadata"]["name"] for document in of_kind("overlays/claims", "DeviceClass")} | {"gpu.nvidia.com"}
        templates = of_kind("examples", "ResourceClaimTemplate")
        for template in templates:
            for request in template["spec"]["spec"]["devices"]["requests"]:
                self.assertIn(request["exactly"]["deviceClassName"], classes)
        names = {template["metadata"]["name"] for template in templates}
        for pod in of_kind("examples", "Pod"):
            for claim in pod["spec"].get("resourceClaims", []):
                self.assertIn(claim["resourceClaimTemplateName"], names)


class MetricsTokenTest(unittest.TestCase):
    """The overlay's agent, with the Secret as kubelet would mount it, asked as its ServiceMonitor says."""

    overlay = "overlays/metrics-token"
    token = "0123456789abcdef0123456789abcdef"

    def setUp(self):
        if not shutil.which("kubectl"):
            self.skipTest("not installed: kubectl (Debian: kubernetes-client)")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="spk."))
        self.addCleanup(shutil.rmtree, self.folder)
        pod = of_kind(self.overlay, "DaemonSet")[0]["spec"]["template"]["spec"]
        self.agent_container, = (one for one in pod["containers"] if one["name"] == "agent")
        self.volumes = {volume["name"]: volume for volume in pod["volumes"]}
        self.endpoint, = of_kind(self.overlay, "ServiceMonitor")[0]["spec"]["endpoints"]

    def mounted(self):
        """Each of the agent's Secrets, by the path of its mount; the key is the file's name."""
        return {mount["mountPath"]: self.volumes[mount["name"]]["secret"] for mount in self.agent_container["volumeMounts"]
                if "secret" in self.volumes[mount["name"]]}

    @staticmethod
    def settings(name):
        settings, = of_kind(name, "ConfigMap")
        return settings["data"]["spillway.toml"]

    def agent(self, port, mode=None):
        text = self.settings(self.overlay)
        (path, secret), = self.mounted().items()
        key = self.endpoint["authorization"]["credentials"]["key"]
        file = self.folder / key
        file.write_text(self.token + "\n")
        file.chmod(mode or secret["defaultMode"])
        for old, new in ((f'"{path}/{key}"', f'"{file}"'), ("0.0.0.0:9477", f"127.0.0.1:{port}"), ("/run/spillway", str(self.folder)),
                         ("/var/lib/spillway", str(self.folder))):
            self.assertIn(old, text)
            text = text.replace(old, new)
        device = f'[devices]\nfind = false\n[[device]]\nuuid = "{driver_fixture.GPU}"\nmemory = "1GiB"\n'
        return node_agent.NodeAgent(driver_fixture.build, self.folder, text + device)

    @staticmethod
    def ask(port, page, authorization=None):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=driver_fixture.PATIENCE_S)
        client.request("GET", page, headers={"Authorization": authorization} if authorization else {})
        answer = client.getresponse()
        return answer.status, answer.read().decode()

    def test_the_monitor_and_the_probes_are_answered_and_nobody_else(self):
        port = ports.free_port()
        agent = self.agent(port)
        agent.start()
        self.addCleanup(agent.stop)
        status, text = self.ask(port, "/metrics", f"{self.endpoint['authorization']['type']} {self.token}")
        self.assertEqual((status, "spillway_" in text), (200, True))
        self.assertEqual(self.ask(port, "/metrics")[0], 401)
        self.assertEqual(self.ask(port, "/metrics", f"Bearer {self.token}0")[0], 401)
        for probe in "livenessProbe", "readinessProbe":
            asked = self.agent_container[probe]["httpGet"]
            self.assertNotIn("httpHeaders", asked)
            # It is ready once jobs of an agent before it had the time to return.
            driver_fixture.wait_for(lambda: self.ask(port, asked["path"]), lambda answer: answer[0] == 200)

    def test_the_mode_matters(self):
        agent = self.agent(ports.free_port(), mode=0o644)  # a Secret's by default
        refused = subprocess.run([driver_fixture.build / "bin/spillwayd", "--config", agent.folder / "spillway.toml"], capture_output=True,
                                 text=True, timeout=driver_fixture.PATIENCE_S)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("is no secret", refused.stderr)

    def test_agent_and_monitor_name_one_secret(self):
        (path, secret), = self.mounted().items()
        credentials = self.endpoint["authorization"]["credentials"]
        self.assertEqual(credentials["name"], secret["secretName"])
        self.assertIn(f'token_file = "{path}/{credentials["key"]}"', self.settings(self.overlay))

    def test_the_configuration_differs_from_the_bases_in_one_line(self):
        base, own = (self.settings(name).splitlines() for name in ("base", self.overlay))
        self.assertEqual(len(base), len(own))
        (former, line), = ((one, other) for one, other in zip(base, own) if one != other)
        self.assertTrue(former.startswith("open = true"), former)
        self.assertTrue(line.startswith("token_file = "), line)


class ExampleClaimTest(driver_fixture.DriverFixture):
    """The example's class and claim, as the scheduler would allocate them, prepared by the driver."""

    memory = 64 * driver_fixture.GIB

    def test_the_driver_takes_the_example(self):
        if not shutil.which("kubectl"):
            self.skipTest("not installed: kubectl (Debian: kubernetes-client)")
        template, = (one for one in of_kind("examples", "ResourceClaimTemplate") if one["metadata"]["name"] == "gpu-memory-16gi")
        device_class, = (one for one in of_kind("overlays/claims", "DeviceClass") if one["metadata"]["name"] == "spillway-shared")
        wanted = template["spec"]["spec"]["devices"]
        item = driver_fixture.claim("example", wanted["requests"][0]["exactly"]["capacity"]["requests"]["memory"])
        configs = [{"source": "FromClass", "requests": ["gpu"], **config} for config in device_class["spec"]["config"]]
        configs += [{"source": "FromClaim", **config} for config in wanted["config"]]
        item["status"]["allocation"]["devices"]["config"] = configs
        self.api.put_claim(item)
        self.start_driver()
        self.assertEqual(self.prepare(item)[item["metadata"]["uid"]].error, "")
        terms = self.expected_pods()[driver_fixture.pod_uid("pod-a")]
        self.assertEqual({key: terms[key] for key in ("guaranteed", "limit", "weight")},
                         {"guaranteed": str(16 << 30), "limit": str(40 << 30), "weight": "5"})


if __name__ == "__main__":
    driver_fixture.main(__doc__)
