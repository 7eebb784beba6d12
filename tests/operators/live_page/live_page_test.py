#!/usr/bin/env python3
"""The agent's live page in headless Chromium: what it shows of real jobs, hostile names, keyboard, narrow and dark screens, a
restart of the agent, its token, and its charts. Screenshots stay in BUILD/live_page.

    usage: live_page_test.py --build BUILD [unittest arguments]
"""
import argparse
import ctypes
import json
import os
import pathlib
import signal
import socket
import sys
import tempfile
import unittest

import browser

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/support"), str(ROOT / "tests/integration/agent")]
import agent_test  # noqa: E402
import node_agent  # noqa: E402
import skips  # noqa: E402
from pictures_test import PicturesTest  # noqa: E402, F401

BUILD = None
MIB = 1 << 20
HOSTILE = "<img src=x id=p"  # a process's name has at most 15 bytes
TOKEN = "0123456789abcdef-the-token"
TRAINER = ("convnet", "--model=resnet18", "--batch=64", "--image=64", "--steps=100000")  # wants 370 MiB
LIVE = "document.querySelector('#connection.live') !== null"
DRAWN = "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('canvas') !== null)"
# Whether each canvas has a pixel.
INKED = """[...document.querySelectorAll('.plot canvas')].filter((canvas) => canvas.width > 0 &&
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0)).length"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class HostileJob:
    """A job whose process is called like an element of a page; it holds a session."""

    def __init__(self, path, uuid):
        ready, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            ctypes.CDLL(None).prctl(15, HOSTILE.encode(), 0, 0, 0)  # PR_SET_NAME
            session = agent_test.Session(path)
            session.hello()
            session.register(8 * MIB, device=bytes.fromhex(uuid.removeprefix("GPU-").replace("-", "")))
            os.write(tell, b"x")
            signal.pause()
            os._exit(0)
        os.close(tell)
        os.read(ready, 1)
        os.close(ready)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class LivePageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.pictures = BUILD / "live_page"
        cls.pictures.mkdir(exist_ok=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spillway-live.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.port = agent_test.free_port()
        self.address = f"http://127.0.0.1:{self.port}/"
        self.browser.show(1280, 900, False)
        self.browser.open("about:blank")
        self.browser.complaints.clear()

    def start(self, more=""):
        settings = node_agent.configuration("h200", 280 * MIB, more).replace("[agent]", f'[agent]\nhttp = "127.0.0.1:{self.port}"')
        self.agent = node_agent.NodeAgent(BUILD, self.folder, settings)
        self.agent.start()
        self.addCleanup(self.agent.stop)

    def start_trainer(self):
        """A job that the agent has made a plan for."""
        machine = node_agent.Machine(BUILD, self.folder)
        trainer = machine.begin("trainer", 0, TRAINER, f"--agent={self.agent.socket}")
        self.addCleanup(trainer.wait)
        self.addCleanup(trainer.kill)
        seen = agent_test.wait_for(self.agent.tenancies, lambda jobs: any(one["state"] == "planned" for one in jobs.values()), 60)
        self.assertIn("planned", [one["state"] for one in seen.values()], machine.errors("trainer"))
        return next(iter(seen))

    def open(self, fragment=""):
        self.browser.open(self.address + fragment)
        self.assertTrue(self.browser.wait_for(LIVE), self.browser.complaints)

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent").replace("\u00a0", " ")

    def assert_no_complaints(self):
        self.assertEqual(self.browser.complaints, [])

    def test_the_node_and_a_job_at_every_width_and_scheme(self):
        self.start(f'[http]\nsocket = "{self.folder}/http.sock"\n')
        job = self.start_trainer()
        for name, fragment in (("node", ""), ("job", f"#job={job}")):
            colours = set()
            for width, height in ((1280, 900), (390, 844)):
                for is_dark in (False, True):
                    self.browser.show(width, height, is_dark)
                    self.browser.open("about:blank")
                    self.open(fragment)
                    self.assertTrue(self.browser.wait_for(f"{DRAWN} && {INKED} >= 3"), f"{name}: charts are empty")
                    self.assertIn("Device memory", self.text("main"))
                    self.assertLessEqual(self.browser.run(OVERFLOW), 0, f"{name} at {width} px scrolls sideways")
                    colours.add(self.browser.run("getComputedStyle(document.body).backgroundColor"))
                    self.browser.screenshot(self.pictures / f"{name}-{width}-{'dark' if is_dark else 'light'}.png")
            self.assertEqual(len(colours), 2, "dark and light look the same")
        plan = self.text("main > div > section:last-child")
        self.assertIn("Plans are hidden at this address", plan)
        self.assertIn("docs/live_page.md", plan)
        self.assert_no_complaints()  # in particular no request that is refused

    def test_figures_change_and_rows_keep_the_keyboards_focus(self):
        self.start()
        job = self.start_trainer()
        self.open()
        self.browser.wait_for("document.querySelector('td a') !== null")
        self.browser.run("document.querySelector('td a').focus()")
        before = self.browser.run("newest.tick")
        self.browser.wait_for(f"newest.tick >= {before} + 3")
        self.assertEqual(self.browser.run("document.activeElement.textContent"), job)
        self.assertIn(job, self.text("table"))
        state = self.agent.status()["jobs"][0]["devices"][0]
        self.assertGreater(state["budget_bytes"], 0)
        self.assertIn(f"{state['budget_bytes'] / MIB:.0f} MiB", self.text("tbody tr"))
        self.assert_no_complaints()

    def test_the_keyboard_reaches_jobs_and_the_values_of_charts(self):
        self.start()
        job = self.start_trainer()
        self.open()
        self.browser.wait_for("document.querySelector('td a') !== null")
        self.browser.press("Tab", 9)
        self.assertEqual(self.browser.run("document.activeElement.textContent"), "Skip to the figures")
        for _ in range(20):
            self.browser.press("Tab", 9)
            if self.browser.run("document.activeElement.textContent") == job:
                break
        self.browser.press("Enter", 13, "\r")
        self.assertTrue(self.browser.wait_for(f"document.querySelector('h1').textContent === {json.dumps(job)}"))
        self.assertTrue(self.browser.wait_for("document.activeElement.id === 'main'"))
        self.assertEqual(self.browser.run("document.title"), f"{job} – Spillway")

        self.browser.wait_for(DRAWN)
        self.browser.run("document.querySelector('.plot').focus()")
        self.browser.press("Home", 36)
        self.assertRegex(self.text("h3"), r"^Device memory, at \d\d:\d\d:\d\d$")
        first = self.browser.run("document.querySelector('.plot').getAttribute('aria-label')")
        self.assertIn("resident", first)
        self.browser.press("End", 35)
        self.assertNotEqual(self.browser.run("document.querySelector('.plot').getAttribute('aria-label')"), first)
        self.browser.press("Escape", 27)
        self.assertEqual(self.text("h3"), "Device memory")

    def test_names_are_text_whatever_they_hold(self):
        self.start()
        hostile = HostileJob(self.agent.socket, node_agent.uuid_of("h200"))
        self.addCleanup(hostile.kill)
        self.open()
        self.assertTrue(self.browser.wait_for("document.querySelector('tbody tr') !== null"))
        self.assertIn(HOSTILE, self.text("tbody tr"))
        self.browser.run("document.querySelector('td a').click()")
        self.assertTrue(self.browser.wait_for(f"document.querySelector('.figures').textContent.includes({json.dumps(HOSTILE)})"))
        self.browser.run(f"location.hash = 'job=' + encodeURIComponent({json.dumps(HOSTILE + '>')})")
        self.assertTrue(self.browser.wait_for(f"document.querySelector('h1').textContent === {json.dumps(HOSTILE + '>')}"))
        self.assertEqual(self.browser.run("document.querySelectorAll('img, #p').length"), 0)

    def test_it_survives_a_restart_of_the_agent(self):
        self.start()
        self.open()
        self.assertTrue(self.browser.wait_for("view.histories.get(0).history.samples.length >= 4"))
        oldest = self.browser.run("view.histories.get(0).history.samples[0].at")
        agent = self.browser.run("newest.agent_instance")
        self.agent.stop(signal.SIGKILL)
        self.assertTrue(self.browser.wait_for("document.querySelector('#connection.lost') !== null"))
        self.assertIn("The agent does not answer", self.text("#connection"))

        self.agent.start()
        self.assertTrue(self.browser.wait_for(f"{LIVE} && newest.agent_instance !== {agent}"))
        self.assertTrue(self.browser.wait_for("newest.tick >= 3"))
        self.assertEqual(self.browser.run("view.histories.get(0).history.samples[0].at"), oldest, "what it saw before is gone")
        self.assertEqual(self.browser.run("document.body.classList.contains('stale')"), False)
        times = self.browser.run("view.histories.get(0).history.samples.map((one) => one.at)")
        self.assertEqual(times, sorted(set(times)))

    def test_a_token_opens_the_node_and_the_plans(self):
        token = self.folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        self.start(f'[http]\ntoken_file = "{token}"\n')
        job = self.start_trainer()
        self.browser.open(f"{self.address}#job={job}")
        shown = "document.getElementById('token-form')?.hidden === false"
        self.assertTrue(self.browser.wait_for(shown))
        self.assertEqual(self.browser.run("document.activeElement.id"), "token")
        self.browser.ask("Input.insertText", text="not the token, but as long")
        self.browser.press("Enter", 13, "\r")
        self.assertTrue(self.browser.wait_for(f"{shown} && !document.getElementById('token-wrong').hidden"))
        self.browser.screenshot(self.pictures / "token.png")
        self.browser.ask("Input.insertText", text=TOKEN)
        self.browser.press("Enter", 13, "\r")
        self.assertTrue(self.browser.wait_for(LIVE))

        self.assertTrue(self.browser.wait_for("document.querySelectorAll('h3').length >= 5"), self.text("main"))
        self.assertTrue(self.browser.wait_for(f"{DRAWN} && {INKED} >= 5"), "the plan's charts are empty")
        plan = self.text("main > div > section:last-child")
        self.assertIn("Its largest moves", plan)
        self.assertRegex(plan, r"leaves|is dropped")
        self.browser.screenshot(self.pictures / "plan-1280-light.png")
        self.browser.show(390, 844, True)
        self.assertTrue(self.browser.wait_for(f"{OVERFLOW} <= 0"))
        self.browser.screenshot(self.pictures / "plan-390-dark.png")

    def test_without_charts_it_shows_the_figures_and_says_so(self):
        self.start()
        self.browser.ask("Network.enable")
        self.addCleanup(self.browser.ask, "Network.setBlockedURLs", urls=[])
        self.browser.ask("Network.setBlockedURLs", urls=["*/dygraph.js"])
        self.open()
        self.assertIn("built without charts", self.text("main"))
        self.assertTrue(self.browser.wait_for("document.querySelector('main section')?.textContent.includes('280\\u00a0MiB')"), self.text("main section"))
        self.assertEqual(self.browser.run("document.querySelectorAll('canvas').length"), 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    known, rest = parser.parse_known_args()
    BUILD = agent_test.BUILD = known.build
    reason = browser.why_not()
    if reason:
        skips.leave_out(reason)
    skips.main(rest, verbosity=2)
