"""Pictures of what a terminal of 80x24 shows, and of the page of `spillway view`, as people see them: they fit, and stay in
BUILD/live_page to be looked at. Run by live_page_test.py.
"""
import html
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import unittest.mock

import browser

import agent_test
import node_agent
import top_test

MIB = 1 << 20
ROWS, COLUMNS = 24, 80
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SEQUENCE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")
INVERTED = re.compile(r"\x1b\[7m(.*?)\x1b\[0m")
# A job that moves memory within 140 MiB, and one beside it.
TRAINER = ("convnet", "--model=resnet18", "--batch=64", "--image=64", "--steps=100000")
DIGITS = ("workloads/digits_cnn", "--epochs=1")


def written_lines(shown):
    """What the terminal's lines were, one after the other: a line that is written again counts again."""
    return [SEQUENCE.sub("", line) for line in re.split(r"[\r\n]+", shown)]


def last_lines(shown):
    """What the terminal shows at the end."""
    return [SEQUENCE.sub("", line.rstrip("\r").split("\r")[-1]) for line in shown.split("\n")]


class PicturesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.build = agent_test.BUILD
        cls.pictures = cls.build / "live_page"
        cls.pictures.mkdir(exist_ok=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="spillway-pictures.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        state = unittest.mock.patch.dict(os.environ, XDG_STATE_HOME=str(self.folder / "state"))  # of earlier runs: none
        state.start()
        self.addCleanup(state.stop)
        self.browser.complaints.clear()

    def take(self, name, lines):
        """A picture of a terminal with these lines; they are HTML."""
        page = self.folder / f"{name}.html"
        page.write_text(f"""<!DOCTYPE html><meta charset="utf-8"><title>{name}</title><style>
            body {{ margin: 0; background: #1d1f21; color: #d6d8d6; display: inline-block }}
            pre {{ margin: 12px; width: {COLUMNS}ch; white-space: pre-wrap; line-break: anywhere; font: 15px/1.25 "DejaVu Sans Mono", monospace }}
            b {{ background: #d6d8d6; color: #1d1f21; font-weight: normal }}</style><pre>{chr(10).join(lines)}</pre>""")
        self.browser.show(900, 400, False)
        self.browser.open(page.as_uri())
        self.assertTrue(self.browser.wait_for(f"document.title === '{name}' && document.readyState === 'complete'"))
        self.browser.screenshot(self.pictures / f"{name}.png")

    def assert_within(self, lines):
        for line in lines:
            self.assertLessEqual(len(line), COLUMNS, repr(line))

    def run_on_a_terminal(self, *words):
        terminal = top_test.Terminal([self.build / "bin/spillway", *words], ROWS, COLUMNS)
        self.addCleanup(terminal.close)
        code = terminal.end()
        shown = terminal.shown.decode()
        self.assertEqual(code, 0, shown)
        return shown

    def start_node(self):
        self.agent = node_agent.NodeAgent(self.build, self.folder, node_agent.configuration("h200", 280 * MIB))
        self.agent.start()
        self.addCleanup(self.agent.stop)
        machine = node_agent.Machine(self.build, self.folder)
        for i, program in enumerate((TRAINER, ("convnet", "--model=resnet18", "--batch=32", "--image=64", "--steps=100000"))):
            job = machine.begin(f"trainer{i}", 0, program, f"--agent={self.agent.socket}")
            self.addCleanup(job.wait)
            self.addCleanup(job.kill)
        return agent_test.wait_for(self.agent.tenancies, lambda jobs: len(jobs) == 2 and any(one["state"] == "planned" for one in jobs.values()), 60)

    def test_a_runs_report_and_progress_on_a_terminal(self):
        # The program's own lines go to a file: they would continue the line that shows the progress.
        program = ("sh", "-c", f"exec {self.build / DIGITS[0]} {' '.join(DIGITS[1:])} > {self.folder / 'output'}")
        shown = self.run_on_a_terminal("run", "--simulate", "--budget=64MiB", "--", *program)
        reports = [line for line in written_lines(shown) if line.startswith("spillway: ")]
        self.assertTrue([line for line in reports if "on the device" in line], "no progress was shown")
        for line in ("held at most 64.0 MiB", "moved out ", "waited "):
            self.assertIn(line, shown)
        first = next(i for i, line in enumerate(reports) if "wanted" in line and "held at most" in line)
        self.assert_within(reports[first:])
        self.assert_within([line for line in reports if "on the device" in line])
        self.take("run-80", [html.escape(line) for line in last_lines(shown)])

    def test_top_and_status_on_a_terminal(self):
        jobs = self.start_node()
        terminal = top_test.Terminal([self.build / "bin/spillway", "top", "--socket", self.agent.socket], ROWS, COLUMNS)
        self.addCleanup(terminal.close)
        for _ in range(4):  # rates are known from the second page on
            terminal.await_shown(b"q quits", after=len(terminal.shown))
        frame = [page for page in terminal.shown.decode().split("\x1b[H") if "q quits" in page][-1].replace("\r", "").split("\n")
        plain = [SEQUENCE.sub("", line) for line in frame]
        self.assertLessEqual(len(plain), ROWS)
        self.assert_within(plain)
        for job in jobs:
            self.assertIn(job, "\n".join(plain))
        self.take("top-80", [SEQUENCE.sub("", INVERTED.sub(r"<b>\1</b>", html.escape(line))) for line in frame])
        status = self.run_on_a_terminal("status", "--socket", self.agent.socket)
        self.assert_within(written_lines(status))
        self.take("status-80", [html.escape(line) for line in last_lines(status)])

        name = next(iter(jobs))
        number = name.removeprefix("local-")
        self.assertIn(f"{name}: ", self.agent.command("job", number).stdout)
        done = self.agent.command("budget", "set", number, "100MiB")
        self.assertEqual(done.stdout, f"the terms of {name} are changed\n", done.stderr)
        both = self.agent.command("job", "local-")
        self.assertEqual(both.returncode, 3)
        for job in jobs:
            self.assertIn(job, both.stderr)

    def test_the_page_of_a_run_at_every_width_and_scheme(self):
        trace, page = self.folder / "trace.json", self.folder / "report.html"
        subprocess.run([self.build / "bin/spillway", "run", "--quiet", "--simulate", "--budget=64MiB", f"--trace={trace}", "--", self.build / DIGITS[0],
                        *DIGITS[1:]], check=True, capture_output=True)
        subprocess.run([self.build / "bin/spillway", "view", trace, "-o", page], check=True, capture_output=True)
        colours = set()
        for width, height in ((1280, 900), (390, 844)):
            for is_dark in (False, True):
                self.browser.show(width, height, is_dark)
                self.browser.open("about:blank")
                self.browser.open(page.as_uri())
                self.assertTrue(self.browser.wait_for("document.readyState === 'complete' && document.querySelector('svg') !== null"))
                self.browser.screenshot(self.pictures / f"view-{width}-{'dark' if is_dark else 'light'}.png")
                self.assertLessEqual(self.browser.run(OVERFLOW), 0, f"the page scrolls sideways at {width} px")
                colours.add(self.browser.run("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(colours), 2, "dark and light look the same")
        self.assertEqual(self.browser.complaints, [])
