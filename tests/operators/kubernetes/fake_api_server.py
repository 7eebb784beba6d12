"""A Kubernetes API server of three resources over real HTTP: nodes, ResourceClaims, ResourceSlices, with watches.

It refuses what a real one refuses: unknown tokens, unknown fields of a slice, stale versions, names that exist.
"""
import copy
import http.server
import json
import pathlib
import re
import ssl
import threading
import urllib.parse

import slice_schema
import yaml

ROLE = pathlib.Path(__file__).resolve().parents[3] / "deploy/kubernetes/overlays/claims/rbac.yaml"
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}
GROUP = "/apis/resource.k8s.io/v1"
SLICES = GROUP + "/resourceslices"
CLAIM = re.compile(GROUP + r"/namespaces/([^/]+)/resourceclaims/([^/]+)")
NODE = re.compile(r"/api/v1/nodes/([^/]+)")


class Refusal(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


def granted():
    """(resource, verb) of the role that the manifests give the driver."""
    role, = (one for one in yaml.safe_load_all(ROLE.read_text()) if one["kind"] == "ClusterRole")
    return {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def has(item, selector):
    """Of a fieldSelector such as spec.driver=a,spec.nodeName=b."""
    for term in filter(None, selector.split(",")):
        path, value = term.split("=")
        found = item
        for key in path.split("."):
            found = found.get(key, {})
        if found != value:
            return False
    return True


class FakeApiServer:
    """`certificate`: (certificate, key) files; with them it speaks TLS."""

    def __init__(self, node, certificate=None):
        self.lock = threading.Condition()
        self.version = 100
        self.oldest_version = 0  # watches from before are gone
        self.gone_watches = self.gone_lists = 0  # so many get the HTTP status 410
        self.events = []  # (version, type, slice)
        self.nodes = {node: {"kind": "Node", "metadata": {"name": node, "uid": "node-uid-1"}}}
        self.claims, self.slices = {}, {}
        self.tokens = {"first"}
        self.granted, self.used = granted(), set()
        self.conflicts = 0  # so many updates meet a change by somebody else
        self.unknown_fields = set()  # of devices: left out, as by an older server
        self.end_watches = 0  # counts up: running watches end
        self.requests = []  # (method, path, token, code)
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.http.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        with self.lock:
            self.end_watches += 1
            self.lock.notify_all()
        self.http.shutdown()
        self.http.server_close()

    def handler(self):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                server.serve(self, body)

            do_GET = do_POST = do_PUT = do_DELETE = do

        return Handler

    def serve(self, handler, body):
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        token = (handler.headers.get("Authorization") or "").removeprefix("Bearer ")
        try:
            with self.lock:
                if token not in self.tokens:
                    raise Refusal(401, "Unauthorized")
                self.check_rights(handler.command, url.path, query)
            if query.get("watch") == "true":
                with self.lock:
                    self.refuse_gone("gone_watches")
                self.note(handler, token, 200)
                return self.watch(handler, query)
            with self.lock:
                answer, code = self.answer(handler.command, url.path, query, body), 200
        except Refusal as refusal:
            code = refusal.code
            answer = {"kind": "Status", "status": "Failure", "code": code, "message": refusal.message}
        self.note(handler, token, code)
        payload = json.dumps(answer).encode()
        handler.send_response(code)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(payload)))
        handler.end_headers()
        handler.wfile.write(payload)

    def refuse_gone(self, which):
        """As a real one does whose cache no longer has that version when the request comes."""
        left = getattr(self, which)
        if left:
            setattr(self, which, left - 1)
            raise Refusal(410, "too old resource version")

    def check_rights(self, method, path, query):
        resource = "nodes" if NODE.fullmatch(path) else "resourceclaims" if CLAIM.fullmatch(path) else "resourceslices"
        is_list = method == "GET" and path == SLICES
        verb = ("watch" if query.get("watch") else "list") if is_list else VERBS[method]
        self.used.add((resource, verb))
        if (resource, verb) not in self.granted:
            raise Refusal(403, f"cannot {verb} {resource}")

    def note(self, handler, token, code):
        with self.lock:
            self.requests.append((handler.command, handler.path, token, code))
            self.lock.notify_all()

    def answer(self, method, path, query, body):
        if match := NODE.fullmatch(path):
            return self.found(self.nodes, match[1])
        if match := CLAIM.fullmatch(path):
            return self.found(self.claims, (match[1], match[2]))
        if path == SLICES and method == "GET":
            self.refuse_gone("gone_lists")
            items = [item for item in self.slices.values() if has(item, query.get("fieldSelector", ""))]
            return {"kind": "ResourceSliceList", "metadata": {"resourceVersion": str(self.version)}, "items": items}
        if path == SLICES and method == "POST":
            if body["metadata"]["name"] in self.slices:
                raise Refusal(409, "AlreadyExists")
            return self.store("ADDED", body)
        name = path.removeprefix(SLICES + "/")
        if path.startswith(SLICES + "/") and method == "PUT":
            current = self.found(self.slices, name)
            if self.conflicts:
                self.conflicts -= 1
                self.store("MODIFIED", copy.deepcopy(current))
                raise Refusal(409, "the object has been modified")
            if body["metadata"].get("resourceVersion") != current["metadata"]["resourceVersion"]:
                raise Refusal(409, "the object has been modified")
            if body["spec"]["pool"]["generation"] <= current["spec"]["pool"]["generation"]:
                raise Refusal(422, "the pool's generation must grow")
            return self.store("MODIFIED", body)
        if path.startswith(SLICES + "/") and method == "DELETE":
            self.found(self.slices, name)
            self.delete_slice(name)
            return {"kind": "Status", "status": "Success"}
        raise Refusal(404, f"{method} {path} is not served")

    @staticmethod
    def found(table, key):
        if key not in table:
            raise Refusal(404, f"{key} not found")
        return table[key]

    def store(self, kind, item):
        problems = slice_schema.problems(item)
        if problems:
            raise Refusal(422, "; ".join(problems))
        item = copy.deepcopy(item)
        for device in item["spec"]["devices"]:
            for field in self.unknown_fields:
                device.pop(field, None)
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        item["metadata"].setdefault("uid", f"slice-{self.version}")
        self.slices[item["metadata"]["name"]] = item
        self.record(kind, item)
        return item

    def record(self, kind, item):
        self.events.append((self.version, kind, item))
        self.lock.notify_all()

    def watch(self, handler, query):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

        def send(event):
            line = json.dumps(event).encode() + b"\n"
            half = len(line) // 2  # an event may come in pieces
            for piece in line[:half], line[half:]:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                handler.wfile.flush()

        seen = int(query["resourceVersion"])
        try:
            send({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(seen)}}})
            with self.lock:
                ending = self.end_watches
            while True:
                with self.lock:
                    is_gone = seen < self.oldest_version
                    news = [event for event in self.events if event[0] > seen and has(event[2], query.get("fieldSelector", ""))]
                    if not news and not is_gone:
                        if ending != self.end_watches or not self.lock.wait(30):
                            break
                        continue
                if is_gone:
                    send({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}})
                    break
                for version, kind, item in news:
                    send({"type": kind, "object": item})
                    seen = version
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass  # the client has left
        handler.close_connection = True

    # What tests do, each under the lock.

    def put_claim(self, claim):
        with self.lock:
            self.claims[claim["metadata"]["namespace"], claim["metadata"]["name"]] = claim

    def delete_slice(self, name):
        with self.lock:
            self.version += 1
            self.record("DELETED", self.slices.pop(name))

    def forget_history(self):
        """Watches from before now answer 410, and running ones end with it."""
        with self.lock:
            self.version += 1
            self.oldest_version = self.version
            self.lock.notify_all()

    def put_slice(self, item):
        with self.lock:
            return self.store("MODIFIED" if item["metadata"]["name"] in self.slices else "ADDED", item)

    def asked(self, method, part):
        with self.lock:
            return [request for request in self.requests if request[0] == method and part in request[1]]
