"""A fresh Debian in a folder, with the packages under test still to be installed. Its own systemd runs there, in namespaces.

Needs root, mmdebstrap, and Debian's mirror once: the folder's files are kept beside the packages.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from waiting import wait_for  # noqa: E402

# The test's own namespaces: its mounts end with it, it sees no other agent, and the default port is free.
OWN_NAMESPACES = "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"

MIRROR = "http://deb.debian.org/debian"
RELEASE = platform.freedesktop_os_release()["VERSION_CODENAME"]
# What else a node may run: kept in the root's cache of packages, so that apt installs it without the network.
CACHED = "slurm-wlm", "munge", "podman", "runc", "logrotate"
INCOMING = "/srv/packages"
LIBRARIES = "/srv/libraries"
HOST_NAME, ADDRESS = "gpu-1", "192.0.2.1"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# All hierarchies of version 1 and the hybrid one, without links such as cpu -> cpu,cpuacct; or the one of version 2.
CONTROL_GROUPS = [path for path in sorted(CGROUPS.iterdir()) if path.is_dir() and not path.is_symlink()] if (CGROUPS / "systemd").is_dir() else [CGROUPS]
BOOT = """
set -e
for hierarchy in HIERARCHIES; do
  mkdir -p $hierarchy/{group}
  for file in cpuset.cpus cpuset.mems; do
    [ ! -e $hierarchy/{group}/$file ] || cat $hierarchy/$file > $hierarchy/{group}/$file
  done
  echo $$ > $hierarchy/{group}/cgroup.procs
done
hostname HOST
mount --bind {root} {root}
mount -t proc proc {root}/proc
# A /dev of its own: systemd would mount the kernel's, which this machine's programs share.
for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs {root}/$folder; done
chmod 1777 {root}/tmp
for device in console full null random tty urandom zero; do cp -a /dev/$device {root}/dev; done
mkdir -m 1777 {root}/dev/shm
mkdir {root}/dev/pts
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts {root}/dev/pts
ln -s pts/ptmx {root}/dev/ptmx
ln -s /proc/self/fd {root}/dev/fd
mount --bind -o ro {build} {root}{build}
exec unshare --cgroup sh -ec '
mount -t sysfs -o ro sysfs {root}/sys
if [ -d /sys/fs/cgroup/systemd ]; then
  mount -t tmpfs tmpfs {root}/sys/fs/cgroup
  for hierarchy in HIERARCHIES; do
    mkdir {root}$hierarchy
    case ${{hierarchy##*/}} in
      unified) mount -t cgroup2 cgroup2 {root}$hierarchy ;;
      systemd) mount -t cgroup -o none,name=systemd cgroup {root}$hierarchy ;;
      *) mount -t cgroup -o ${{hierarchy##*/}} cgroup {root}$hierarchy ;;
    esac
  done
else
  mount -t cgroup2 cgroup2 {root}/sys/fs/cgroup
fi
exec env container=test chroot {root} /lib/systemd/systemd --log-target=console'
""".replace("HIERARCHIES", " ".join(map(str, CONTROL_GROUPS))).replace("HOST", HOST_NAME)


def raise_loopback():
    """With a second address, that of the host's name: the C library resolves no names where all addresses are loopback's own."""
    set_flags, up_and_running = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP, IFF_RUNNING
    set_address = 0x8916  # SIOCSIFADDR
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        fcntl.ioctl(probe, set_flags, struct.pack("16sH14x", b"lo", up_and_running))
        fcntl.ioctl(probe, set_address, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(ADDRESS)))


def dependencies(packages):
    """Names of other packages that these depend on, of alternatives the first."""
    own = {package_field(path, "Package") for path in packages}
    words = ", ".join(package_field(path, "Depends") for path in packages).split(", ")
    return sorted({re.match(r"[\w.+-]+", word)[0] for word in words} - own)


def package_field(path, field):
    return subprocess.run(["dpkg-deb", "-f", path, field], capture_output=True, text=True, check=True).stdout.strip()


def base_archive(folder, packages):
    """The path of a tar file: a minimal Debian with what the packages depend on."""
    contents = " ".join((RELEASE, *dependencies(packages), "cached", *CACHED))
    return folder / f"root-{hashlib.sha256(contents.encode()).hexdigest()[:12]}.tar"


def make_base(folder, packages):
    """Why there is no such archive; empty: it is there."""
    archive = base_archive(folder, packages)
    if archive.exists():
        return ""
    unfinished = archive.with_suffix(".new.tar")
    download = f'chroot "$1" apt-get install -y --no-install-recommends --download-only {" ".join(CACHED)}'
    made = subprocess.run(["mmdebstrap", "--variant=minbase", f"--include={','.join(dependencies(packages))}", "--skip=cleanup/apt",
                           '--customize-hook=chroot "$1" apt-get clean', f"--customize-hook={download}", RELEASE, unfinished, MIRROR],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return f"mmdebstrap makes no root of {MIRROR}: {(made.stderr.strip().splitlines() or [''])[-1]}"
    unfinished.rename(archive)
    return ""


class FreshRoot:
    """Debian in `folder`, with its own systemd once `boot` returned. `build` is at the same path inside, for the simulated GPU and its programs."""

    def __init__(self, folder, archive, build):
        self.folder = pathlib.Path(folder)
        self.machine = self.init = None
        subprocess.run(["tar", "-xf", archive, "-C", self.folder], check=True)
        self.path("/etc/dpkg/dpkg.cfg.d/test").write_text("force-unsafe-io\n")  # nobody needs this root after a power cut
        self.path("/etc/hostname").write_text(f"{HOST_NAME}\n")
        self.path("/etc/hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {HOST_NAME}\n")
        self.copy_libraries(build)
        (self.folder / str(build)[1:]).mkdir(parents=True, exist_ok=True)
        self.script = self.folder.parent / "boot"
        self.script.write_text(BOOT.format(root=self.folder, build=build, group=self.group()))

    def group(self):
        """The name of its control group. The folder is unique; a process's number is not, in namespaces."""
        return self.folder.parent.name

    def removed_groups(self):
        """Whether its control groups are gone: they stay until the last of its processes has ended."""
        groups = [hierarchy / self.group() for hierarchy in CONTROL_GROUPS]
        for group in groups:
            for folder in (*sorted(group.glob("**/"), reverse=True), group):
                with contextlib.suppress(OSError):
                    folder.rmdir()
        return not any(group.exists() for group in groups)

    def copy_libraries(self, build):
        """What the simulated GPU's libraries need and a fresh root lacks."""
        loaded = subprocess.run(["ldd", build / "workloads/gpt"], env=dict(os.environ, LD_LIBRARY_PATH=f"{build}/simulator"),
                                capture_output=True, text=True, check=True).stdout
        self.path(LIBRARIES).mkdir(parents=True)
        for library in re.findall(r"=> (/(?:usr/)?lib\S+)", loaded):
            if not self.path(library).exists():
                shutil.copy(library, self.path(LIBRARIES))

    def boot(self):
        """Whether systemd runs, in namespaces of its own."""
        with open(self.folder.parent / "boot.log", "wb") as log:
            self.machine = subprocess.Popen(["unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "sh", self.script],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        children = pathlib.Path(f"/proc/{self.machine.pid}/task/{self.machine.pid}/children")
        try:
            self.init = int(wait_for(lambda: children.read_text().split() if self.machine.poll() is None else ["0"])[0])
            wait_for(lambda: self.run("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))
        except (TimeoutError, OSError):
            return False
        return True

    def shut_down(self):
        if self.machine is not None:
            self.machine.kill()
            self.machine.wait()
        wait_for(self.removed_groups)

    def path(self, name):
        return self.folder / name.lstrip("/")

    def copy_in(self, paths):
        place = self.path(INCOMING)
        place.mkdir(exist_ok=True)
        return [f"{INCOMING}/{pathlib.Path(shutil.copy(path, place)).name}" for path in paths]

    def command(self, *words, user=None, **environment):
        who = [f"--userspec={user}:{user}"] if user else []
        variables = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                     **environment}
        return ["nsenter", "-t", str(self.init), "-m", "-p", "-i", "-u", "env", "-i", *(f"{name}={value}" for name, value in variables.items()),
                "chroot", *who, self.folder, *map(str, words)]

    def run(self, *words, **options):
        return subprocess.run(self.command(*words, **options), capture_output=True, text=True, timeout=300)

    def files(self):
        """All paths in it, without what dpkg, apt and shadow note for themselves, and what is mounted."""
        notes = re.compile(r"/(proc|sys|run|dev|tmp|srv|var/(cache|tmp|log|lib/(dpkg|apt|systemd)))(/|$)|/etc/\w+-$|/etc/ld\.so\.cache$")
        found = set()
        for folder, folders, names in os.walk(self.folder):
            inside = folder[len(str(self.folder)):]
            folders[:] = [name for name in folders if not notes.match(f"{inside}/{name}")]
            found |= {f"{inside}/{name}" for name in (*folders, *names) if not notes.match(f"{inside}/{name}")}
        return found
