"""What kubelet does with plugins, over real gRPC and with kubelet's folders: it finds sockets, registers drivers, prepares claims,
and takes device plugins.
"""
import concurrent.futures
import importlib
import pathlib
import subprocess
import sys
import threading

import grpc

PROTO = pathlib.Path(__file__).resolve().parents[3] / "deploy/kubernetes/proto"
DEADLINE_S = 45  # kubelet's own for a claim


def load_messages(folder):
    """Python's classes of the interfaces, made in `folder`."""
    files = sorted(path.name for path in PROTO.glob("*.proto"))
    subprocess.run(["protoc", "-I", PROTO, f"--python_out={folder}", *files], check=True)
    sys.path.insert(0, str(folder))
    return {path.removesuffix(".proto"): importlib.import_module(path.removesuffix(".proto") + "_pb2") for path in files}


def call(address, path, request, answer_class, deadline_s=DEADLINE_S):
    # As recent kubelets dial; their authority is "localhost".
    with grpc.insecure_channel(f"unix:{address}", options=[("grpc.default_authority", "localhost")]) as channel:
        method = channel.unary_unary(path, request_serializer=type(request).SerializeToString, response_deserializer=answer_class.FromString)
        return method(request, timeout=deadline_s)


class FakeKubelet:
    """Its folders are in `folder`; `messages`: of load_messages."""

    def __init__(self, folder, messages):
        self.folder, self.messages = pathlib.Path(folder), messages
        self.registry = self.folder / "plugins_registry"
        self.plugins = self.folder / "device-plugins"
        self.registry.mkdir(parents=True, exist_ok=True)
        self.plugins.mkdir(exist_ok=True)
        self.registered = []  # RegisterRequests of device plugins
        self.server = None

    # Drivers.

    def drivers(self):
        """GetInfo of each socket in the registry, by the socket's name; only those that answer."""
        found = {}
        for path in sorted(self.registry.glob("*.sock")):
            try:
                found[path.name] = call(path, "/pluginregistration.Registration/GetInfo", self.messages["registration"].InfoRequest(),
                                        self.messages["registration"].PluginInfo, deadline_s=1)
            except grpc.RpcError:
                pass
        return found

    def register_driver(self, socket_name):
        info = self.drivers()[socket_name]
        call(self.registry / socket_name, "/pluginregistration.Registration/NotifyRegistrationStatus",
             self.messages["registration"].RegistrationStatus(plugin_registered=True), self.messages["registration"].RegistrationStatusResponse)
        return info

    def node_call(self, endpoint, version, name, claims):
        messages = self.messages[f"dra_{version}"]
        request = getattr(messages, f"{name}Request")()
        for namespace, claim, uid in claims:
            request.claims.add(namespace=namespace, name=claim, uid=uid)
        answer = call(endpoint, f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin/{name}", request, getattr(messages, f"{name}Response"))
        assert set(answer.claims) == {uid for _, _, uid in claims}, "every claim needs an entry"
        return answer.claims

    def prepare(self, endpoint, *claims, version="v1"):
        return self.node_call(endpoint, version, "NodePrepareResources", claims)

    def unprepare(self, endpoint, *claims, version="v1"):
        return self.node_call(endpoint, version, "NodeUnprepareResources", claims)

    # Device plugins.

    def start(self, empties=True):
        """As at kubelet's start: the folder of device plugins is emptied. A plugin that listens again before kubelet does keeps its socket:
        `empties` is False.
        """
        for path in self.plugins.glob("*.sock" if empties else "kubelet.sock"):
            path.unlink()
        messages = self.messages["device_plugin"]

        def register(request, _):
            self.registered.append(request)
            return messages.Empty()

        handler = grpc.method_handlers_generic_handler("v1beta1.Registration", {
            "Register": grpc.unary_unary_rpc_method_handler(register, messages.RegisterRequest.FromString, messages.Empty.SerializeToString)})
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers([handler])
        self.server.add_insecure_port(f"unix:{self.plugins}/kubelet.sock")
        self.server.start()

    def stop(self):
        if self.server:
            self.server.stop(0).wait()
        self.server = None

    def plugin_call(self, name, request, answer):
        messages = self.messages["device_plugin"]
        return call(self.plugins / self.registered[-1].endpoint, f"/v1beta1.DevicePlugin/{name}", request, getattr(messages, answer))

    def watch_devices(self):
        return DeviceWatch(self.plugins / self.registered[-1].endpoint, self.messages["device_plugin"])


class DeviceWatch:
    """ListAndWatch; `lists` grows. End it with close."""

    def __init__(self, socket_path, messages):
        self.lists = []
        self.channel = grpc.insecure_channel(f"unix:{socket_path}", options=[("grpc.default_authority", "localhost")])
        method = self.channel.unary_stream("/v1beta1.DevicePlugin/ListAndWatch", request_serializer=messages.Empty.SerializeToString,
                                           response_deserializer=messages.ListAndWatchResponse.FromString)
        self.stream = method(messages.Empty())
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            for devices in self.stream:
                self.lists.append({device.ID: device.health for device in devices.devices})
        except grpc.RpcError:
            pass

    def close(self):
        self.stream.cancel()
        self.thread.join()
        self.channel.close()
