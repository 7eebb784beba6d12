"""spillway-kubernetes beside the real spillwayd, between a fake kubelet and a fake API server."""
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/support"))
import node_agent  # noqa: E402
import skips  # noqa: E402
import waiting  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
PATIENCE_S = 30
wait_for = functools.partial(waiting.wait_for, patience_s=PATIENCE_S)
NODE = "node-1"
GPU = node_agent.uuid_of("h200")
DEVICE = GPU.lower()
build = None  # the build folder


def why_not():
    """What stands against these tests here; empty: nothing."""
    if not (build / "bin/spillway-kubernetes").exists():
        return "spillway-kubernetes is not built (Debian: libgrpc++-dev, protobuf-compiler-grpc, libcpp-httplib-dev)"
    if not shutil.which("protoc"):
        return "not installed: protoc (Debian: protobuf-compiler)"
    for module, package in (("grpc", "python3-grpcio"), ("google.protobuf", "python3-protobuf"), ("jsonschema", "python3-jsonschema"),
                            ("yaml", "python3-yaml")):
        try:
            __import__(module)
        except ImportError:
            return f"not installed: {module} (Debian: {package})"
    if os.getuid() != 0:
        return "the agent takes budgets from root"
    return ""


def claim(name, memory="256Mi", pods=("pod-a",), uid=None, of_class=None, of_claim=None, device=DEVICE, request="gpu"):
    """An allocated ResourceClaim. `of_class`, `of_claim`: settings of its opaque configurations."""
    configs = []
    for source, settings in (("FromClass", of_class), ("FromClaim", of_claim)):
        if settings:
            parameters = {"apiVersion": "spillway.dev/v1alpha1", "kind": "MemoryConfig", **settings}
            configs.append({"source": source, "requests": [request], "opaque": {"driver": "spillway.dev", "parameters": parameters}})
    result = {"request": request, "driver": "spillway.dev", "pool": NODE, "device": device, "shareID": "5aa1"}
    if memory:
        result["consumedCapacity"] = {"memory": memory}
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"namespace": "ml", "name": name, "uid": uid or pod_uid(name)},
        "status": {"allocation": {"devices": {"results": [result], "config": configs}},
                   "reservedFor": [{"resource": "pods", "name": pod, "uid": pod_uid(pod)} for pod in pods]}}


def pod_uid(name):
    """Looks like Kubernetes' uids."""
    digits = name.encode().hex().ljust(32, "0")[:32]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def name_of(item):
    metadata = item["metadata"]
    return metadata["namespace"], metadata["name"], metadata["uid"]


class DriverFixture(unittest.TestCase):
    """An agent, a fake kubelet and a fake API server for each test."""

    memory = GIB  # of the device
    cdi = None  # the folder; None: one of the test's own
    options = ()

    @classmethod
    def setUpClass(cls):
        import fake_kubelet
        cls.code = tempfile.mkdtemp(prefix="spillway-k8s.")
        cls.addClassCleanup(shutil.rmtree, cls.code)
        cls.messages = fake_kubelet.load_messages(cls.code)

    def setUp(self):
        import fake_api_server
        import fake_kubelet
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="spk."))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        (self.folder / "agent").mkdir()
        self.job_socket = self.folder / "agent/jobs/agent.sock"
        settings = node_agent.configuration("h200", self.memory).replace("[agent]\n", f'[agent]\njob_socket = "{self.job_socket}"\n', 1)
        self.agent = node_agent.NodeAgent(build, self.folder / "agent", settings)
        self.agent.start()
        self.addCleanup(self.agent.stop)
        self.api = fake_api_server.FakeApiServer(NODE, self.certificate())
        self.addCleanup(self.api.close)
        self.kubelet = fake_kubelet.FakeKubelet(self.folder / "kubelet", self.messages)
        self.addCleanup(self.kubelet.stop)
        self.token = self.folder / "token"
        self.token.write_text("first\n")
        self.cdi_folder = pathlib.Path(self.cdi or self.folder / "cdi")
        self.drivers = []
        self.addCleanup(self.stop_drivers)

    def certificate(self):
        return None

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before and getattr(self, "last_logs", None):
            print(self.last_logs, file=sys.stderr)

    def logs(self):
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("driver*.log")))

    def stop_drivers(self):
        for process in self.drivers:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.last_logs = self.logs() + self.agent.log()

    def command(self, *options):
        library = build / "lib/libspillway.so"
        return [build / "bin/spillway-kubernetes", "--node", NODE, "--socket", self.agent.socket, "--job-socket", self.job_socket,
                "--kubelet", self.folder / "kubelet", "--cdi", self.cdi_folder, "--library", library, "--gpu-facts", self.folder / "gpus", "--api-server", self.api.url,
                "--token-file", self.token, *self.options, *options]

    def start_driver(self, *options):
        """Returns when kubelet finds it."""
        before = set(self.kubelet.drivers())
        with open(self.folder / f"driver{len(self.drivers)}.log", "ab") as log:
            process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, self.command(*options))], stdout=log, stderr=log,
                                       env={key: value for key, value in os.environ.items() if key not in ("NODE_NAME", "POD_UID")})
        self.drivers.append(process)
        if "--claims=off" in options:
            return process
        socket_name = wait_for(lambda: set(self.kubelet.drivers()) - before).pop()
        self.endpoint = self.kubelet.register_driver(socket_name).endpoint
        return process

    def stop_driver(self, process, how=signal.SIGTERM):
        process.send_signal(how)
        return process.wait(PATIENCE_S)

    def slice(self):
        """The node's ResourceSlice; None: there is none."""
        with self.api.lock:
            items = list(self.api.slices.values())
        return items[0] if len(items) == 1 else None

    def expected_pods(self):
        """The terms that the agent expects of pods, by pod, from the state that it keeps for the next agent."""
        path = self.folder / "agent/agent.sock.state"
        lines = path.read_text().splitlines() if path.exists() else []
        halves = [line.removeprefix("expected ").split(": ") for line in lines if line.startswith("expected ")]
        return {key.removeprefix("pod-"): dict(word.split("=") for word in terms.split()) for terms, key in halves}

    def prepare(self, *items, **options):
        return self.kubelet.prepare(self.endpoint, *map(name_of, items), **options)

    def unprepare(self, *items, **options):
        return self.kubelet.unprepare(self.endpoint, *map(name_of, items), **options)


def main(description):
    global build
    import argparse
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    known, rest = parser.parse_known_args()
    build = known.build
    reason = why_not()
    if reason:
        skips.leave_out(reason)
    skips.main(rest, verbosity=2)
