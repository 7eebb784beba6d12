"""Headless Chromium, driven over its DevTools pipe: no port, and no library."""
import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE_S = 30


def why_not():
    """Why there is no browser here; None: there is one."""
    return None if shutil.which("chromium") else "chromium is not installed: the agent's page is not tried in a browser"


class Browser:
    """One page of one browser. Its console's errors and warnings are kept in `complaints`."""

    def __init__(self, width=1280, height=900, is_dark=False):
        # The browser's last processes may still write there when it has ended.
        self.folder = tempfile.TemporaryDirectory(prefix="spillway-browser.", ignore_cleanup_errors=True)
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        # Chromium reads commands from descriptor 3 and writes to 4.
        script = f"exec 3<&{to_read} 4>&{to_write}; exec \"$@\""
        self.log = open(os.path.join(self.folder.name, "log"), "wb")
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.folder.name}/profile",
             "about:blank"], pass_fds=(to_read, to_write), stdout=self.log, stderr=self.log)
        os.close(to_read)
        os.close(to_write)
        self.numbers = itertools.count(1)
        self.received = b""
        self.complaints = []
        self.session = None
        target = next(one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.ask(f"{domain}.enable")
        self.show(width, height, is_dark)

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        os.close(self.write_end)
        os.close(self.read_end)
        self.log.close()
        self.folder.cleanup()

    def show(self, width, height, is_dark):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setScrollbarsHidden", hidden=True)  # a screenshot has none, and would be cut by its width
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, method, **parameters):
        """The command's result."""
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.write_end, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            message = self.next_message(deadline)
            if message.get("id") != number:
                self.take(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            else:
                return message["result"]

    def next_message(self, deadline):
        while b"\0" not in self.received:
            if not select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self.received += piece
        message, _, self.received = self.received.partition(b"\0")
        return json.loads(message)

    def take(self, event):
        details = event.get("params", {})
        if event.get("method") == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{details['entry']['text']} {details['entry'].get('url', '')}")
        elif event.get("method") == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            self.complaints.append(thrown.get("exception", {}).get("description", thrown["text"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(details["args"]))

    def open(self, address):
        self.ask("Page.navigate", url=address)

    def run(self, expression):
        """The value of a JavaScript expression; promises are awaited."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression, patience_s=PATIENCE_S):
        """Polls the expression until it is true; returns its last value."""
        deadline = time.monotonic() + patience_s
        while not (value := self.run(expression)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return value

    def press(self, key, code=0, text=None):
        for kind in "keyDown", "keyUp":
            what = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
            if text and kind == "keyDown":
                what["text"] = text
            self.ask("Input.dispatchKeyEvent", **what)

    def screenshot(self, path):
        """The whole page, not only what fits the window."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        taken = self.ask("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        path.write_bytes(base64.b64decode(taken["data"]))
