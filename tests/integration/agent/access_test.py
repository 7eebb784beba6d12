#!/usr/bin/env python3
"""Who may read the real spillwayd's pages: token, TLS, Unix socket, and their change by a reload.

    usage: access_test.py --build BUILD [unittest arguments]
"""
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import unittest

import agent_test

TOKEN = "0123456789abcdef0123456789abcdef"
OPEN_PAGES = ("/", "/live.js", "/healthz", "/readyz")
GUARDED_PAGES = ("/metrics", "/api/v1/status", "/api/v1/history", "/api/v1/events", "/api/v1/jobs/local-1", "/api/v1/jobs/local-1/history",
                 "/api/v1/jobs/local-1/plan")


class LocalConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("node", timeout=agent_test.PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class AccessTest(agent_test.AgentFixture):
    def setUp(self):
        super().setUp()
        self.token = self.folder / "token"
        self.write_token(TOKEN)
        self.local = self.folder / "http.sock"

    def write_token(self, text):
        self.token.write_text(text + "\n")
        self.token.chmod(0o600)

    def ask(self, page, token=None, connection=None, method="GET", host=None):
        """Status, fields"""
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=agent_test.PATIENCE_S)
        self.addCleanup(connection.close)
        fields = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request(method, page, headers=fields | ({"Host": host} if host else {}))
        answer = connection.getresponse()
        return answer.status, answer.headers

    def refused_start(self, socket_path=None):
        """What an agent says that cannot start."""
        ended = subprocess.run([agent_test.BUILD / "bin/spillwayd", "--config", self.folder / "spillway.toml", "--socket", socket_path or self.path],
                               capture_output=True, text=True, timeout=agent_test.PATIENCE_S)
        self.assertEqual(ended.returncode, 1)
        return ended.stderr

    def test_pages_about_jobs_want_the_token(self):
        self.configure(f'[http]\ntoken_file = "{self.token}"\n')
        self.start()
        for page in OPEN_PAGES:
            self.assertEqual(self.ask(page)[0], 200, page)
        for page in GUARDED_PAGES:
            for token in None, "", TOKEN[:-1], TOKEN + "0", TOKEN.upper():
                for method in "GET", "HEAD":
                    status, fields = self.ask(page, token, method=method)
                    self.assertEqual((status, fields["WWW-Authenticate"]), (401, 'Bearer realm="spillway"'), (page, token))
        for page in GUARDED_PAGES[:4]:
            self.assertEqual(self.ask(page, TOKEN)[0], 200, page)
        self.assertNotIn(TOKEN, self.log())

    def test_another_sites_page_cannot_read_an_agent_on_loopback(self):
        """By DNS rebinding: its browser asks this address by the site's name."""
        self.start()
        for host in f"localhost:{self.port}", "127.0.0.1", "[::1]:80":
            self.assertEqual(self.ask("/api/v1/status", host=host)[0], 200, host)
        for page in "/", *GUARDED_PAGES:
            for method in "GET", "HEAD":
                self.assertEqual(self.ask(page, host=f"evil.example:{self.port}", method=method)[0], 421, page)
        for page in "/healthz", "/readyz":
            self.assertEqual(self.ask(page, host="evil.example")[0], 200, page)
        self.assertIn("ask this agent by localhost or by its address", self.refusal_by("evil.example"))

    def refusal_by(self, host):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=agent_test.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/", headers={"Host": host})
        return connection.getresponse().read().decode()

    def test_a_proxy_may_keep_its_own_name_over_the_socket_and_with_the_token(self):
        self.configure(f'[http]\nsocket = "{self.local}"\n')
        self.start()
        self.assertEqual(self.ask("/api/v1/status", connection=LocalConnection(self.local), host="gpus.example")[0], 200)
        self.stop()
        self.configure(f'[http]\ntoken_file = "{self.token}"\n')
        self.start()
        self.assertEqual(self.ask("/api/v1/status", TOKEN, host="gpus.example")[0], 200)
        self.assertEqual(self.ask("/", host="gpus.example")[0], 200)

    def test_an_address_beyond_loopback_answers_to_its_machines_names(self):
        """As Prometheus asks it."""
        self.configure("[http]\nopen = true\n")
        file = self.folder / "spillway.toml"
        file.write_text(file.read_text().replace(f'"127.0.0.1:{self.port}"', f'"0.0.0.0:{self.port}"'))
        self.start()
        self.assertEqual(self.ask("/metrics", host=f"node7.example:{self.port}")[0], 200)

    def test_a_reload_with_another_token_ends_the_streams_of_the_old_one(self):
        self.configure(f'[http]\ntoken_file = "{self.token}"\nsocket = "{self.local}"\n')
        self.start()
        streams = [self.stream(TOKEN), self.stream(TOKEN)]
        local = self.stream(None, LocalConnection(self.local))
        self.assertEqual(self.spillway("config", "reload").returncode, 0)
        for stream in *streams, local:
            self.await_event(stream)

        self.write_token("f" * 40)
        self.assertEqual(self.spillway("config", "reload").returncode, 0)
        begin = agent_test.time.monotonic()
        for stream in streams:
            while stream.readline():
                self.assertLess(agent_test.time.monotonic() - begin, agent_test.PATIENCE_S, "the stream goes on")
        self.await_event(local)
        self.await_event(self.stream("f" * 40))

    def stream(self, token, connection=None):
        """The lines of events."""
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=agent_test.PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/api/v1/events", headers={} if token is None else {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.await_event(answer)
        return answer

    def await_event(self, stream):
        while not (line := stream.readline()).startswith(b"data: {"):
            self.assertTrue(line, "the stream has ended")

    def test_a_reload_takes_another_token_and_keeps_the_old_one_if_that_cannot_be_read(self):
        self.configure(f'[http]\ntoken_file = "{self.token}"\n')
        self.start()
        self.write_token("f" * 40)
        self.assertEqual(self.ask("/metrics", TOKEN)[0], 200)
        self.assertEqual(self.spillway("config", "reload").returncode, 0)
        self.assertEqual([self.ask("/metrics", token)[0] for token in (TOKEN, "f" * 40)], [401, 200])

        self.token.unlink()
        refused = self.spillway("config", "reload")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("token_file", refused.stderr)
        self.assertEqual(self.ask("/metrics", "f" * 40)[0], 200)

    def test_a_reload_takes_no_guard_from_the_address_that_stays(self):
        """Regression: the new address took a restart, but the token was gone at once."""
        file = self.folder / "spillway.toml"
        self.configure(f'[http]\ntoken_file = "{self.token}"\n')
        guarded = file.read_text()
        everywhere = f'http = "0.0.0.0:{self.port}"'
        file.write_text(guarded.replace(f'http = "127.0.0.1:{self.port}"', everywhere))
        self.start()
        for without in (guarded, guarded.replace(f'http = "127.0.0.1:{self.port}"\n', "")):
            file.write_text(without.replace(f'token_file = "{self.token}"\n', ""))
            refused = self.spillway("config", "reload")
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn("until a restart [agent] http is 0.0.0.0", refused.stderr)
            self.assertEqual(self.ask("/api/v1/status")[0], 401)

    def test_a_file_in_the_place_of_the_socket_stays(self):
        self.local.write_text("precious")
        self.configure(f'[http]\nsocket = "{self.local}"\n')
        said = self.refused_start()
        self.assertIn(f"cannot listen on {self.local}", said)
        self.assertEqual(self.local.read_text(), "precious")

    def test_a_key_with_a_passphrase_is_an_error(self):
        """Regression: it was asked for on the terminal, and the agent waited."""
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        self.make_certificate("first")
        subprocess.run(["openssl", "pkey", "-in", self.folder / "key.pem", "-aes128", "-passout", "pass:secret",
                        "-out", self.folder / "locked.pem"], check=True, capture_output=True)
        self.configure(f'[http]\ncertificate = "{self.folder}/cert.pem"\nkey = "{self.folder}/locked.pem"\n')
        said = self.refused_start()
        if "without OpenSSL" not in said:
            self.assertIn("a key with a passphrase must be stored without: openssl pkey", said)

    def test_a_readable_token_file_stops_the_start(self):
        self.token.chmod(0o644)
        self.configure(f'[http]\ntoken_file = "{self.token}"\n')
        said = self.refused_start()
        self.assertIn(f"no pages: [http] token_file {self.token} is no secret: all users have rights to it; chmod o= ", said)

    def test_the_local_socket_needs_no_token_but_the_rights_to_it(self):
        self.configure(f'[http]\ntoken_file = "{self.token}"\nsocket = "{self.local}"\nsocket_mode = 0o640\n')
        self.start()
        for _ in range(2):
            self.assertEqual(self.ask("/metrics")[0], 401)
            self.assertEqual(self.ask("/metrics", connection=LocalConnection(self.local))[0], 200)
            self.assertEqual(os.stat(self.local).st_mode & 0o777, 0o640)
            self.stop(agent_test.signal.SIGKILL)  # leaves the socket's file
            self.assertTrue(self.local.exists())
            self.start()
        self.stop()
        self.assertFalse(self.local.exists())

    def test_a_socket_that_another_agent_serves_is_not_taken(self):
        self.configure(f'[http]\nsocket = "{self.local}"\n')
        self.start()
        self.refused_start(self.folder / "b.sock")
        self.assertEqual(self.ask("/metrics", connection=LocalConnection(self.local))[0], 200)

    def make_certificate(self, name):
        """In cert.pem and key.pem."""
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-keyout", self.folder / "key.pem", "-out", self.folder / "cert.pem", "-subj", f"/CN={name}",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)

    def secure(self, **options):
        context = ssl.create_default_context(cafile=self.folder / "cert.pem")
        for name, value in options.items():
            setattr(context, name, value)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=agent_test.PATIENCE_S, context=context)

    def serve_tls(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        self.make_certificate("first")
        self.configure(f'[http]\ntoken_file = "{self.token}"\ncertificate = "{self.folder}/cert.pem"\nkey = "{self.folder}/key.pem"\n')
        try:
            self.start()
        except TimeoutError:
            self.assertIn("this spillwayd was built without OpenSSL", self.log())
            self.skipTest("the agent was built without OpenSSL")

    def test_pages_and_streams_go_over_tls(self):
        self.serve_tls()
        self.assertEqual(self.ask("/metrics", TOKEN, self.secure())[0], 200)
        self.assertEqual(self.ask("/metrics", None, self.secure())[0], 401)
        page = self.secure()
        page.request("GET", "/dygraph.js")
        answer = page.getresponse()
        self.assertEqual(len(answer.read()), int(answer.headers["Content-Length"]))

        stream = self.secure()
        self.addCleanup(stream.close)
        stream.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {TOKEN}"})
        lines = stream.getresponse()
        events = 0
        while events < 3:
            events += lines.readline().startswith(b"data: {")
        with self.assertRaises(ssl.SSLError):
            self.ask("/metrics", TOKEN, self.secure(maximum_version=ssl.TLSVersion.TLSv1_1))

    def test_clients_without_tls_or_without_a_word_delay_no_other(self):
        self.serve_tls()
        for greeting in (b"", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x02\x00", os.urandom(3000)) * 10:
            one = socket.create_connection(("127.0.0.1", self.port), timeout=agent_test.PATIENCE_S)
            self.addCleanup(one.close)
            one.sendall(greeting)
        begin = agent_test.time.monotonic()
        self.assertEqual(self.ask("/metrics", TOKEN, self.secure())[0], 200)
        self.assertLess(agent_test.time.monotonic() - begin, 2)

    def test_a_client_that_leaves_in_the_middle_ends_nothing(self):
        self.serve_tls()
        for _ in range(50):
            one = self.secure()
            one.request("GET", "/dygraph.js")
            one.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one.sock.close()
        self.assertEqual(self.ask("/metrics", TOKEN, self.secure())[0], 200)

    def test_a_reload_takes_the_renewed_certificate(self):
        self.serve_tls()
        self.make_certificate("second")
        self.assertEqual(self.spillway("config", "reload").returncode, 0)
        connection = self.secure()
        self.assertEqual(self.ask("/metrics", TOKEN, connection)[0], 200)

        (self.folder / "key.pem").write_text("no key")
        self.assertEqual(self.spillway("config", "reload").returncode, 3)
        self.assertEqual(self.ask("/metrics", TOKEN, self.secure())[0], 200)


del agent_test.AgentTest

if __name__ == "__main__":
    agent_test.main()
