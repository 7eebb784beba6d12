"""A real Slurm cluster of one node on loopback: munged, slurmctld and slurmd with files, sockets and ports of their own.

Needs root, and Debian's slurm-wlm and munge. Slurm 22.05 keeps jobs in control groups of version 1 here; where those cannot be
written, `why_not` says so.
"""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from ports import free_ports  # noqa: E402
from waiting import PATIENCE_S, wait_for  # noqa: E402

NODE = socket.gethostname()
PROGRAMS = "munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc", "scontrol", "scancel", "squeue"
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
SHARDS = 16


def why_not(build):
    """What stands against a cluster here; empty: nothing."""
    missing = [program for program in PROGRAMS if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: slurm-wlm, munge)"
    if os.getuid() != 0:
        return "slurmd needs root"
    if not os.access(FREEZER, os.W_OK) or not FREEZER.is_mount():
        return f"{FREEZER} cannot be written: Slurm 22.05 without systemd needs control groups of version 1"
    if not (build / "lib/spillway_spank.so").exists():
        return "the plugin was not built (Debian: libslurm-dev)"
    return ""


def slurm_conf(folder, ports, proctrack):
    return f"""ClusterName=spillwaytest
SlurmctldHost={NODE}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
KillWait=2
PrologFlags=Alloc
SlurmdParameters=config_overrides
GresTypes=gpu,shard
NodeName={NODE} NodeAddr=127.0.0.1 CPUs=8 Gres=gpu:h200:1,shard:{SHARDS}
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PlugStackConfig={folder}/plugstack.conf
"""


class SlurmCluster:
    """In `folder`, which its users can read. `plugin`: the line of plugstack.conf."""

    def __init__(self, folder, plugin, proctrack="cgroup"):
        self.folder = pathlib.Path(folder)
        for name in ("munge", "state", "spool"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "munge").chmod(0o755)
        self.files = {
            "slurm.conf": slurm_conf(self.folder, free_ports(2), proctrack),
            "plugstack.conf": plugin + "\n",
            "gres.conf": f"Name=gpu Type=h200 File=/dev/null\nName=shard Count={SHARDS} File=/dev/null\n",
            "cgroup.conf": "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n",
        }
        for name, text in self.files.items():
            (self.folder / name).write_text(text)
        self.processes = {}
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SPILLWAY_", "SBATCH"))}
        self.environment.update(SLURM_CONF=str(self.folder / "slurm.conf"), PATH=os.environ["PATH"] + ":/usr/sbin")

    def start(self):
        key, folder = self.folder / "munge/key", self.folder / "munge"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.begin("munged", "--foreground", f"--socket={folder}/socket", f"--key-file={key}", f"--pid-file={folder}/pid",
                   f"--log-file={folder}/log", f"--seed-file={folder}/seed", "--num-threads=2")
        wait_for((folder / "socket").exists)
        self.begin("slurmctld", "-D", "-c", "-i")
        self.start_slurmd()

    def start_slurmd(self):
        self.begin("slurmd", "-D", "-N", NODE)
        self.await_idle()

    def await_idle(self):
        """The node takes jobs."""
        wait_for(self.node_state, lambda state: state in ("idle", "mix", "alloc"))

    def node_state(self):
        return self.run("sinfo", "-h", "-o", "%t").stdout.strip()

    def begin(self, program, *arguments):
        with open(self.folder / f"{program}.log", "ab") as log:
            # A killed test leaves no daemon.
            self.processes[program] = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", program, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                                                       stdout=log, stderr=log)

    def stop(self, program, how=signal.SIGTERM):
        process = self.processes.pop(program)
        process.send_signal(how)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end_jobs(self):
        for number in self.run("squeue", "-h", "-o", "%A").stdout.split():
            self.run("scancel", "--full", "--signal=KILL", number)
            self.run("scancel", number)
        wait_for(lambda: self.run("squeue", "-h").stdout.strip(), lambda jobs: not jobs)

    def close(self):
        """Ends all jobs, then the daemons."""
        try:
            self.end_jobs()
        finally:
            for program in reversed(list(self.processes)):
                self.stop(program)

    def popen(self, *command, user=None, **options):
        """Any of Slurm's commands, as that user."""
        who = {} if user is None else {"user": user, "group": "nogroup", "extra_groups": []}
        return subprocess.Popen([str(word) for word in command], env=self.environment, cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **who, **options)

    def run(self, *command, user=None):
        process = self.popen(*command, user=user)
        output, errors = process.communicate(timeout=PATIENCE_S * 2)
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def job(self, number):
        """slurmctld's record of it; none once it is forgotten."""
        words = self.run("scontrol", "-o", "show", "job", number).stdout.split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def await_state(self, number, *states):
        return wait_for(lambda: self.job(number).get("JobState"), lambda state: state in states)

    def start_requeued(self, number):
        """Slurm would hold it, or wait two minutes; while it ends its earlier run, it takes no order."""
        def order():
            self.run("scontrol", "release", number)
            self.run("scontrol", "update", f"JobId={number}", "StartTime=now")
            return self.job(number).get("JobState")

        wait_for(order, lambda state: state in ("RUNNING", "COMPLETED"))

    def processes_of(self, number):
        """All of the job's processes here, Slurm's own among them, by its control groups."""
        lists = FREEZER.glob(f"slurm_{NODE}/uid_*/job_{number}/**/cgroup.procs")
        return [int(pid) for one in lists for pid in one.read_text().split()]

    def logs(self):
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}" for path in sorted(self.folder.glob("slurm*.log")))
