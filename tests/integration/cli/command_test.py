#!/usr/bin/env python3
"""Calls the built `spillway` as users do and checks its visible behaviour."""
import argparse
import fcntl
import itertools
import json
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import skips  # noqa: E402

BUILT = None  # paths from the command line

PEAK = 268435456


def job_pid_is_ready(process):
    """Waits for the line that the job prints when it starts; the launcher prints nothing to
    standard output."""
    return process.stdout.readline().strip()


class CommandTest(unittest.TestCase):
    def setUp(self):
        """An installation of its own: bin/spillway, lib/libspillway.so and simulator/ with stand-ins."""
        folder = tempfile.TemporaryDirectory(prefix="spillway-cli-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.root.chmod(0o755)
        for place in ("bin", "lib", "simulator/profiles", "work"):
            (self.root / place).mkdir(parents=True)
        self.spillway = shutil.copy(BUILT.spillway, self.root / "bin" / "spillway")
        self.preload = shutil.copy(BUILT.preload, self.root / "lib" / "libspillway.so")
        self.driver = shutil.copy(BUILT.driver, self.root / "simulator" / "libcuda.so.1")
        (self.root / "simulator/profiles/h200.profile").write_text("")
        (self.root / "simulator/profiles/a100.profile").write_text("")
        self.environment = {"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(self.root / "state"),
                            "SPILLWAY_DRIVER": str(self.driver)}

    def call(self, *arguments, stdin=None, **environment):
        return subprocess.run([self.spillway, *arguments], env={**self.environment, **environment}, input=stdin,
                              capture_output=True, text=True, cwd=self.root / "work")

    def variables(self, *options, **environment):
        """The job's environment."""
        result = self.call("run", *options, "--", "env", "-0", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return dict(entry.split("=", 1) for entry in result.stdout.split("\0") if entry)

    def refusal(self, exit_code, *arguments, **environment):
        """The message of a refused call; the job must not have run."""
        result = self.call(*arguments, **environment)
        self.assertEqual(result.returncode, exit_code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"(?s)^spillway: .*\n  why: .*\n  do:  ")
        return result.stderr


class InstallationTest(CommandTest):
    """ldconfig must not find the library, which has the driver's SONAME, so packages give it a folder of its own."""

    def test_library_in_its_own_folder_comes_first(self):
        self.assertEqual(self.variables()["LD_PRELOAD"], str(self.preload))
        own = self.root / "lib/spillway/libspillway.so"
        own.parent.mkdir()
        shutil.copy(self.preload, own)
        self.assertEqual(self.variables()["LD_PRELOAD"], str(own))


class JobTest(CommandTest):
    """The command becomes the job: pid, signals, exit code and files are the job's own."""

    def test_exit_code_is_the_commands(self):
        for code in (0, 1, 2, 7, 125, 255):
            self.assertEqual(self.call("run", "--", "sh", "-c", f"exit {code}").returncode, code)

    def test_pid_is_the_launchers(self):
        process = subprocess.Popen([self.spillway, "run", "-q", "--", "sh", "-c", "echo $$"], env=self.environment,
                                   stdout=subprocess.PIPE, text=True)
        self.assertEqual(int(process.communicate()[0]), process.pid)

    def test_signal_reaches_the_command(self):
        script = "trap 'echo caught; exit 42' TERM; echo ready; while :; do sleep 0.01; done"
        process = subprocess.Popen([self.spillway, "run", "-q", "--", "sh", "-c", script], env=self.environment,
                                   stdout=subprocess.PIPE, text=True)
        self.assertEqual(job_pid_is_ready(process), "ready")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate()
        self.assertEqual((output, process.returncode), ("caught\n", 42))

    def test_death_by_signal_is_the_commands(self):
        self.assertEqual(self.call("run", "--", "sh", "-c", "kill -KILL $$").returncode, -signal.SIGKILL)

    def test_standard_input_passes(self):
        self.assertEqual(self.call("run", "--", "cat", stdin="one\ntwo\n").stdout, "one\ntwo\n")

    def test_arguments_pass_unchanged(self):
        words = ["", "two words", "--budget", "-q", "$HOME", "a\nb"]
        result = self.call("run", "-q", "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
        self.assertEqual(result.stdout, repr(words) + "\n")

    def test_no_file_child_or_driver_remains(self):
        bare = subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True).stdout
        self.assertEqual(self.call("run", "--", "ls", "/proc/self/fd").stdout, bare)
        self.assertEqual(self.call("run", "-q", "--", "sh", "-c", "cat /proc/$$/task/*/children").stdout.split()[1:], [])
        self.assertNotIn("libcuda", self.call("run", "--", "cat", "/proc/self/maps").stdout)

    def test_querying_the_device_writes_no_statistics(self):
        statistics = self.root / "work/statistics.json"
        self.assertEqual(self.call("run", "--simulate", "--", "true", SPILLWAY_SIM_STATS=str(statistics)).returncode, 0)
        self.assertFalse(statistics.exists())

    def test_signal_mask_and_actions_stay_as_they_were(self):
        command = ["grep", "Sig[BI]", "/proc/self/status"]
        bare = subprocess.run(command, capture_output=True, text=True).stdout
        self.assertEqual(self.call("run", "--", *command).stdout, bare)

    def test_script_runs_by_its_interpreter(self):
        script = self.root / "work/train.sh"
        script.write_text("#!/bin/sh\necho trained $1\n")
        script.chmod(0o755)
        self.assertEqual(self.call("run", "--", "./train.sh", "well").stdout, "trained well\n")


class EnvironmentTest(CommandTest):
    def test_budget_and_paths_reach_the_library(self):
        seen = self.variables("--budget", "1.5GiB", "--host", "64GB", "--park", "off", "--report", "report.json")
        self.assertEqual(seen["SPILLWAY_BUDGET"], "1610612736")
        self.assertEqual(seen["SPILLWAY_HOST_LIMIT"], "64000000000")
        self.assertEqual(seen["SPILLWAY_PARK"], "off")
        self.assertEqual(seen["SPILLWAY_REPORT"], str(self.root / "work/report.json"))
        self.assertEqual(seen["SPILLWAY_DRIVER"], str(self.driver))
        self.assertEqual(seen["LD_PRELOAD"], str(self.preload))
        self.assertEqual(seen["SPILLWAY_SUMMARY"], "1")
        self.assertNotIn("SPILLWAY_PROGRESS", seen)  # standard error is no terminal here

    def test_percentages_of_the_device(self):
        self.assertEqual(self.variables("--budget", "25%")["SPILLWAY_BUDGET"], str(2 << 30))

    def test_without_options_old_settings_are_removed(self):
        old = {name: "old" for name in ("SPILLWAY_BUDGET", "SPILLWAY_HOST_LIMIT", "SPILLWAY_PARK", "SPILLWAY_REPORT",
                                        "SPILLWAY_PROGRESS")}
        seen = self.variables("--quiet", **old)
        for name in [*old, "SPILLWAY_SUMMARY"]:
            self.assertNotIn(name, seen)

    def test_preloads_of_the_user_come_after_ours(self):
        other = shutil.copy(BUILT.preload, self.root / "work/libother.so")
        self.assertEqual(self.variables(LD_PRELOAD=str(other))["LD_PRELOAD"], f"{self.preload}:{other}")

    def test_simulated_gpu_is_found_first(self):
        seen = self.variables("--simulate=a100", LD_LIBRARY_PATH="/opt/lib")
        self.assertEqual(seen["LD_LIBRARY_PATH"], f"{self.root}/simulator:/opt/lib")
        self.assertEqual(seen["SPILLWAY_SIM_PROFILE"], "a100")
        self.assertEqual(seen["SPILLWAY_DRIVER"], str(self.driver))

    def test_frameworks_allocate_per_tensor_by_default(self):
        seen = self.variables(TF_GPU_ALLOCATOR="mine")
        for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
            self.assertEqual(seen[name], "backend:cudaMallocAsync")
        self.assertEqual(seen["TF_GPU_ALLOCATOR"], "mine")
        self.assertEqual(seen["XLA_PYTHON_CLIENT_ALLOCATOR"], "platform")
        self.assertEqual(seen["XLA_PYTHON_CLIENT_PREALLOCATE"], "false")
        self.assertNotIn("PYTORCH_ALLOC_CONF", self.variables("--no-framework-env"))

    def test_pytorchs_allocator_is_the_users_once_either_variable_is_set(self):
        for name, other in itertools.permutations(("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")):
            seen = self.variables(**{name: "max_split_size_mb:64"})
            self.assertEqual(seen[name], "max_split_size_mb:64")
            self.assertNotIn(other, seen)

    def test_pytorch_is_found_and_the_start_line_says_so(self):
        venv = self.root / "venv"
        (venv / "bin").mkdir(parents=True)
        (venv / "bin/python3").symlink_to("/bin/true")
        version = venv / "lib/python3.11/site-packages/torch/version.py"
        version.parent.mkdir(parents=True)
        version.write_text("__all__ = []\n__version__ = '2.12.1+cu130'\n")
        script = self.root / "work/torchrun"
        script.write_text(f"#!{venv}/bin/python3\n")
        script.chmod(0o755)
        for command in (str(venv / "bin/python3"), str(script)):
            said = self.call("run", "--", command).stderr
            self.assertIn("spillway: PyTorch 2.12.1+cu130: each tensor gets its own allocation", said)
        self.assertNotIn("PyTorch", self.call("run", "--quiet", "--", command).stderr)

    def test_off_runs_bare(self):
        seen = self.variables("--off", "--simulate")
        self.assertEqual(seen["LD_LIBRARY_PATH"], f"{self.root}/simulator")
        for name in ("LD_PRELOAD", "SPILLWAY_JOB_PID", "SPILLWAY_PEAK_FILE", "PYTORCH_CUDA_ALLOC_CONF"):
            self.assertNotIn(name, seen)

    def test_off_needs_neither_driver_nor_library(self):
        self.driver.unlink()
        self.preload.unlink()
        self.assertEqual(self.call("run", "--off", "--", "echo", "here").stdout, "here\n")

    def test_progress_is_for_terminals(self):
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        result = subprocess.run([self.spillway, "run", "--", "env"], env=self.environment, stdout=subprocess.PIPE,
                                stderr=follower, text=True)
        os.close(follower)
        self.assertIn("SPILLWAY_PROGRESS=1\n", result.stdout)

    def test_start_line_fits_the_terminal_and_stays_one_line_elsewhere(self):
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 25, 80, 0, 0))
        words = "run", "--simulate", "--budget", "25%", "--", "true"
        subprocess.run([self.spillway, *words], env=self.environment, stderr=follower, check=True)
        os.close(follower)
        shown = b""
        try:
            while part := os.read(leader, 4096):
                shown += part
        except OSError:  # the end
            pass

        lines = shown.decode().splitlines()
        self.assertGreater(len(lines), 1)
        self.assertLessEqual(max(map(len, lines)), 80, lines)
        self.assertEqual(" ".join(line.strip() for line in lines) + "\n", self.call(*words).stderr)

    def test_start_line_names_the_limit_of_another_system(self):
        line = self.call("run", "--", "env", CUDA_DEVICE_MEMORY_LIMIT_0="1600m")
        self.assertIn("spillway: budget 1572864000 bytes (1.4 GiB, by CUDA_DEVICE_MEMORY_LIMIT_0=1600m)", line.stderr)
        self.assertIn("CUDA_DEVICE_MEMORY_LIMIT_0=1600m\n", line.stdout)  # the library reads it itself
        self.assertNotIn("SPILLWAY_BUDGET", line.stdout)

    def test_the_command_line_comes_before_limits_of_other_systems(self):
        line = self.call("run", "--budget", "2GiB", "--", "true", CUDA_DEVICE_MEMORY_LIMIT="much").stderr
        self.assertIn("budget 2147483648 bytes (2.0 GiB, 2GiB)", line)
        line = self.call("run", "--budget", "2GiB", "--", "true", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=1600M").stderr
        self.assertIn("budget 1572864000 bytes (1.4 GiB, by CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1600M)", line)

    def test_a_limit_that_cannot_be_kept_is_refused(self):
        why = self.refusal(125, "run", "--", "echo", "ran", NVIDIA_GPU_MEMORY_LIMIT="8Gi")
        self.assertIn("NVIDIA_GPU_MEMORY_LIMIT=8Gi is not understood: it may be a whole number of MiB", why)
        why = self.refusal(125, "run", "--", "echo", "ran", NVIDIA_GPU_MEMORY_LIMIT="3")
        self.assertIn("the budget by NVIDIA_GPU_MEMORY_LIMIT=3 cannot work", why)

    def test_start_line_shows_the_settings_and_quiet_hides_it(self):
        line = self.call("run", "--simulate", "--budget", "25%", "--", "true").stderr
        for part in ("2147483648 bytes", "25%", "Stand-in", "[simulated]", "8.0 GiB", str(self.preload)):
            self.assertIn(part, line)
        self.assertEqual(self.call("run", "-q", "--simulate", "--", "true").stderr, "")

    def test_budget_above_the_device_is_cut_with_a_warning(self):
        result = self.call("run", "-q", "--budget", "9GiB", "--", "sh", "-c", "echo $SPILLWAY_BUDGET")
        self.assertEqual(result.stdout, f"{8 << 30}\n")
        self.assertIn("warning", result.stderr)


class PeakTest(CommandTest):
    def test_percentage_of_the_peak_after_a_run_of_the_same_command(self):
        command = ["bash", "-c", "echo budget $SPILLWAY_BUDGET", "it's"]  # dash leaves by _exit, past exit handlers
        # Given no earlier run, then the refusal names the command that measures the peak
        message = self.refusal(125, "run", "--simulate", "--budget", "25%peak", "--", *command)
        self.assertIn("spillway run --simulate=h200 -- bash -c 'echo budget $SPILLWAY_BUDGET' 'it'\\''s'", message)
        # When that command has run, then a quarter of its peak is the budget
        self.call("run", "--simulate", "--", *command, STAND_IN_PEAK=str(PEAK))
        result = self.call("run", "--simulate", "--budget", "25%peak", "--", *command)
        self.assertEqual(result.stdout, f"budget {PEAK // 4}\n")
        # And other arguments and devices count as other commands
        self.refusal(125, "run", "--simulate", "--budget", "25%peak", "--", *command, "more")
        self.refusal(125, "run", "--simulate=a100", "--budget", "25%peak", "--", *command)
        self.refusal(125, "run", "--budget", "25%peak", "--", *command)

    def test_program_is_identified_by_its_resolved_path(self):
        (self.root / "work/alias").symlink_to(shutil.which("true"))
        self.call("run", "--", "true", STAND_IN_PEAK=str(PEAK))
        self.assertEqual(self.call("run", "--budget", "50%peak", "--", "./alias").returncode, 0)

    def test_without_a_place_for_peaks_jobs_run_with_a_warning(self):
        result = self.call("run", "--", "echo", "here", XDG_STATE_HOME="/proc/nowhere")
        self.assertEqual(result.stdout, "here\n")
        self.assertIn("will not be remembered", result.stderr)


class RefusalTest(CommandTest):
    """Each refusal names the error, the reason and the remedy, before anything has started."""

    def test_command_line(self):
        self.assertIn("no subcommand", self.refusal(2))
        self.assertIn("spillway run -- train", self.refusal(2, "train"))
        self.assertIn("no command to run", self.refusal(2, "run", "--budget", "1GiB"))
        self.assertIn("cannot be 'much'", self.refusal(2, "run", "--budget", "much", "--", "true"))
        self.assertIn("cannot be zero", self.refusal(2, "run", "--budget", "0", "--", "true"))
        self.assertIn("--nonsense", self.refusal(2, "run", "--nonsense", "--", "true"))
        self.assertIn("'more'", self.refusal(2, "doctor", "more"))

    def test_budget_too_small(self):
        self.assertIn("smallest", self.refusal(125, "run", "--budget", "1MiB", "--", "true"))

    def test_missing_and_unusable_commands(self):
        (self.root / "work/plain").write_text("#!/bin/sh\n")
        self.assertIn("no such file", self.refusal(127, "run", "--", "./missing"))
        self.assertIn("in PATH", self.refusal(127, "run", "--", "no-such-command"))
        self.assertIn("chmod +x", self.refusal(126, "run", "--", "./plain"))
        self.assertIn("folder", self.refusal(126, "run", "--", "/tmp"))

    def test_static_command(self):
        self.assertIn("statically linked", self.refusal(126, "run", "--", BUILT.static_program))

    def test_privileged_command(self):
        if os.getuid() != 0:
            self.skipTest("only root can make a program that changes user")
        program = shutil.copy(shutil.which("true"), self.root / "work/privileged")
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
        self.assertIn("set-user-id", self.refusal(126, "run", "--", str(program)))

    def test_missing_parts_of_the_installation(self):
        self.preload.unlink()
        self.assertIn("libspillway.so", self.refusal(125, "run", "--", "true"))

    def test_missing_simulator_and_profile(self):
        self.assertIn("a100 h200", self.refusal(125, "run", "--simulate=h300", "--", "true"))
        self.driver.unlink()
        self.assertIn("no simulated GPU", self.refusal(125, "run", "--simulate", "--", "true"))

    def test_drivers_that_do_not_work(self):
        self.assertIn("no CUDA driver", self.refusal(125, "run", "--", "true", SPILLWAY_DRIVER="/nowhere/libcuda.so.1"))
        self.assertIn("stub", self.refusal(125, "run", "--", "true", STAND_IN_INIT="34"))
        self.assertIn("Abort", self.refusal(125, "run", "--", "true", STAND_IN_CRASH="1"))
        self.assertIn("virtual memory", self.refusal(125, "run", "--", "true", STAND_IN_ATTRIBUTES="0"))
        self.assertIn("too old", self.refusal(125, "run", "--", "true", STAND_IN_VERSION="12030"))
        self.assertIn("lacks cuInit", self.refusal(125, "run", "--", "true", SPILLWAY_DRIVER=str(self.preload)))

    def test_report_that_cannot_be_written(self):
        self.assertIn("No such file", self.refusal(125, "run", "--report", "none/report.json", "--", "true"))
        self.assertIn("folder", self.refusal(125, "run", "--report", ".", "--", "true"))

    def test_run_inside_a_run(self):
        result = self.call("run", "-q", "--", str(self.spillway), "run", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn("already inside a job", result.stderr)


class DoctorTest(CommandTest):
    def findings(self, exit_code, **environment):
        result = self.call("doctor", "--json", **environment)
        self.assertEqual(result.returncode, exit_code, result.stdout)
        report = json.loads(result.stdout)
        self.assertEqual(report["problems"], sum(f["level"] == "problem" for f in report["findings"]))
        return {finding["subject"]: finding for finding in report["findings"]}

    def test_healthy_machine_ends_with_zero(self):
        found = self.findings(0)
        self.assertEqual(found["device"]["fact"], "Stand-in, 8.0 GiB")
        self.assertEqual(found["driver"]["level"], "ok")

    def test_missing_driver_is_a_problem_with_a_remedy(self):
        found = self.findings(1, SPILLWAY_DRIVER="/nowhere/libcuda.so.1")
        self.assertEqual(found["driver"]["level"], "problem")
        self.assertIn("install", found["driver"]["remedy"])

    def test_old_driver_is_a_problem(self):
        self.assertEqual(self.findings(1, STAND_IN_VERSION="12030")["driver"]["level"], "problem")

    def test_broken_preload_is_a_problem(self):
        self.preload.write_text("not ELF")
        self.assertEqual(self.findings(1)["preload"]["level"], "problem")

    def test_text_ends_with_the_verdict(self):
        result = self.call("doctor", "--simulate")
        self.assertRegex(result.stdout.splitlines()[-1], r"^(nothing stands in the way|\d+ problems?, \d+ warnings?)$")


class HelpTest(CommandTest):
    def test_every_form_of_the_help_option(self):
        for words in (["--help"], ["help"], ["help", "run"], ["run", "--help"], ["help", "doctor"], ["doctor", "--help"]):
            result = self.call(*words)
            self.assertEqual((result.returncode, result.stderr), (0, ""), words)
            self.assertIn("spillway", result.stdout)
        self.assertRegex(self.call("--version").stdout, r"^spillway \d+\.\d+\.\d+\n$")


def main():
    global BUILT
    parser = argparse.ArgumentParser()
    for name in ("--spillway", "--driver", "--preload", "--static-program"):
        parser.add_argument(name, required=True)
    BUILT, rest = parser.parse_known_args()
    skips.main(rest)


if __name__ == "__main__":
    main()
