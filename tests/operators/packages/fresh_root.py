"""A fresh Debian in a folder, with the packages under test still to be installed; programs run in it by chroot.

Needs root, mmdebstrap, and Debian's mirror once: the folder's files are kept beside the packages.
"""
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

# The test's own namespaces: its mounts end with it, it sees no other agent, and the default port is free.
OWN_NAMESPACES = "unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        set_flags, up_and_running = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP, IFF_RUNNING
        fcntl.ioctl(probe, set_flags, struct.pack("16sH14x", b"lo", up_and_running))


def dependencies(packages):
    """Names of other packages that these depend on, of alternatives the first."""
    own = {package_field(path, "Package") for path in packages}
    words = ", ".join(package_field(path, "Depends") for path in packages).split(", ")
    return sorted({re.match(r"[\w.+-]+", word)[0] for word in words} - own)


def package_field(path, field):
    return subprocess.run(["dpkg-deb", "-f", path, field], capture_output=True, text=True, check=True).stdout.strip()


def base_archive(folder, include):
    """A tar file of a minimal Debian with `include`; made at the first call."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    name = hashlib.sha256(" ".join([release, *include]).encode()).hexdigest()[:12]
    archive = folder / f"root-{name}.tar"
    if not archive.exists():
        unfinished = archive.with_suffix(".new.tar")
        made = subprocess.run(["mmdebstrap", "--variant=minbase", f"--include={','.join(include)}", release, unfinished,
                               "http://deb.debian.org/debian"], capture_output=True, text=True)
        if made.returncode != 0:
            raise RuntimeError("mmdebstrap makes no root: " + (made.stderr.strip().splitlines() or [""])[-1])
        unfinished.rename(archive)
    return archive


class FreshRoot:
    def __init__(self, folder, archive, build):
        """`build` is at the same path inside, for the simulated GPU and its programs."""
        self.folder = pathlib.Path(folder)
        subprocess.run(["tar", "-xf", archive, "-C", self.folder], check=True)
        self.mount("-t", "proc", "proc", "/proc")
        self.mount("-t", "tmpfs", "tmpfs", "/dev/shm")
        self.mount("--bind", "-o", "ro", build, str(build))
        (self.folder / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.folder / "usr/sbin/policy-rc.d").chmod(0o755)

    def mount(self, *words):
        *source, place = words
        (self.folder / place[1:]).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", *source, self.folder / place[1:]], check=True)

    def path(self, name):
        return self.folder / name.lstrip("/")

    def copy_in(self, paths):
        self.path("/tmp/packages").mkdir(exist_ok=True)
        return [f"/tmp/packages/{shutil.copy(path, self.path('/tmp/packages')).name}" for path in paths]

    def command(self, *words, user=None, **environment):
        who = [f"--userspec={user}:{user}"] if user else []
        variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                     **environment}
        return ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), "chroot", *who, self.folder, *map(str, words)]

    def run(self, *words, **options):
        return subprocess.run(self.command(*words, **options), capture_output=True, text=True, timeout=300)

    def begin(self, *words, log, **options):
        with open(log, "ab") as output:
            return subprocess.Popen(self.command(*words, **options), stdout=output, stderr=output)

    def files(self):
        """All paths in it, without what dpkg, apt and shadow note for themselves, and what is mounted."""
        notes = re.compile(r"/(proc|dev|tmp|work|var/(cache|log|lib/(dpkg|apt|systemd/deb-systemd-helper\w+/\.dsh)))(/|$)|/etc/\w+-$|/etc/ld\.so\.cache$")
        found = set()
        for folder, folders, names in os.walk(self.folder):
            inside = folder[len(str(self.folder)):]
            folders[:] = [name for name in folders if not notes.match(f"{inside}/{name}")]
            found |= {f"{inside}/{name}" for name in (*folders, *names) if not notes.match(f"{inside}/{name}")}
        return found
