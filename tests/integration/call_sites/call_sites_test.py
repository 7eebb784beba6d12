#!/usr/bin/env python3
"""The report lists the call sites of device allocations: by libunwind where installed, else by
return addresses.

    Usage: call_sites_test.py BUILD_FOLDER PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD, PROGRAM = pathlib.Path(), ""
MIB = 1 << 20


def run(*options, libraries=()):
    """Runs the program under the launcher; returns the report and the exit."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for library in libraries:
            (folder / library).write_text("not a library")
        command = [BUILD / "bin/spillway", "run", "-q", "--simulate", "--report", folder / "report.json", *options, "--",
                   PROGRAM]
        environment = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": name, "XDG_STATE_HOME": name}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        report = folder / "report.json"
        return (json.loads(report.read_text()) if report.exists() else {}), ended


def brief(site):
    return pathlib.Path(site["library"]).name, site["function"], site["bytes"], site["allocations"]


class CallSitesTest(unittest.TestCase):
    def expect_ended_well(self, ended):
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout, "caught by libgcc_s.so.1\nfailures 0\n")

    def test_without_the_option_nothing_is_sampled(self):
        report, ended = run()
        self.expect_ended_well(ended)
        self.assertNotIn("call_sites", report)

    def test_sites_are_listed_by_library_and_function_the_largest_first(self):
        report, ended = run("--call-sites=1")
        self.expect_ended_well(ended)
        found = report["call_sites"]
        self.assertEqual((found["every"], found["sampled_allocations"], found["sampled_bytes"]), (1, 16, 28 * MIB))
        self.assertEqual(brief(found["sites"][0]), ("libcall_sites_hoarder.so", "hoarder_take", 24 * MIB, 12))
        library, _, size_bytes, allocations = brief(found["sites"][1])
        self.assertEqual((library, size_bytes, allocations), ("libcall_sites_hoarder.so", 4 * MIB, 4))

    def test_every_fourth_allocation_is_sampled(self):
        report, _ = run("--call-sites=4")
        self.assertEqual(report["call_sites"]["sampled_allocations"], 4)
        self.assertEqual(sum(site["bytes"] for site in report["call_sites"]["sites"]), (3 * 2 + 1) * MIB)

    def test_without_libunwind_return_addresses_are_used_and_reported(self):
        report, ended = run("--call-sites=1", libraries=("libunwind.so.8", "libunwind.so.1"))
        self.expect_ended_well(ended)
        self.assertEqual(report["call_sites"]["source"], "return addresses")
        self.assertEqual(brief(report["call_sites"]["sites"][0]),
                         ("libcall_sites_hoarder.so", "hoarder_take", 24 * MIB, 12))


if __name__ == "__main__":
    BUILD, PROGRAM = pathlib.Path(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1])
