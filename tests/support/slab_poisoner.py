#!/usr/bin/env python3
"""A process that leases slabs of the node's host pool, fills them with its own word, and checks
their earlier contents.

It takes and returns slabs at random, keeps some returned ones mapped and goes on writing there,
and reconnects when the connection is lost. It runs until it is killed. It ends with a message on
standard error when a new slab holds anything but zeros or its own word (3), or when its slab
changes (4). Each new slab is a line on standard output.

    slab_poisoner.py --socket SOCKET --device GPU-UUID --slab BYTES --word NUMBER [--user NUMBER]
"""
import argparse
import array
import mmap
import os
import random
import select
import socket
import struct
import sys
import time

HELLO, WELCOME, REGISTER, ADMISSION, GRANT, OBEYED, USAGE, GOODBYE, ERROR = range(1, 10)
ASK_SLABS, SLABS, RETURN_SLABS, HELD_SLABS = range(15, 19)
HOST_NEED, DRIVER_SLABS = 25, 28
VERSION = 5
MOST_NAMES = 8
CROSSED, CHANGED = 3, 4
MIB = 1 << 20
MOST_CLUNG_TO = 2


class Slab:
    def __init__(self, name, file, size_bytes):
        self.name, self.size_bytes = name, size_bytes
        self.memory = mmap.mmap(file, size_bytes)

    def words(self):
        """The distinct words in the slab."""
        view = memoryview(self.memory).cast("Q")
        found = set(view)
        view.release()
        return found

    def fill(self, word):
        self.memory.seek(0)
        self.memory.write(struct.pack("<Q", word) * (self.size_bytes // 8))


class Poisoner:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.word)
        self.slabs, self.clung_to = [], []
        self.host_bytes, self.budget_bytes = 0, 0
        self.socket = None
        self.ask_after = 0

    def say(self, kind, body):
        version = 1 if kind == HELLO else VERSION
        self.socket.send((struct.pack("<4sHHII", b"SPWY", version, kind, 256, 0) + body).ljust(256, b"\0"))

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(self.options.socket)
        self.say(HELLO, struct.pack("<HHBi", 1, VERSION, 1, 0))
        while self.hear() != WELCOME:
            pass
        names = [slab.name for slab in self.slabs]
        while True:
            some, names = names[:MOST_NAMES], names[MOST_NAMES:]
            self.say(HELD_SLABS, struct.pack(f"<BI{len(some)}Q", not names, len(some), *some))
            if not names:
                break
        uuid = bytes.fromhex(self.options.device.removeprefix("GPU-").replace("-", ""))
        held = len(self.slabs) * self.options.slab
        self.say(REGISTER, struct.pack("<I16s6q", 0, uuid, 1 << 40, MIB, 0, 0, self.budget_bytes, held))
        self.say(HOST_NEED, struct.pack("<Iq", 0, 64 * MIB))

    def hear(self):
        """Handles the next message; returns its kind."""
        data, ancillary, _, _ = self.socket.recvmsg(300, socket.CMSG_SPACE(4 * MOST_NAMES))
        if not data:
            raise ConnectionError
        files = array.array("i")
        for _, _, rights in ancillary:
            files.frombytes(rights)
        kind, body = struct.unpack_from("<H", data, 6)[0], data[16:]
        if kind == GRANT:
            self.obey(body)
        elif kind == SLABS:
            self.take(body, 20, files)
        elif kind == DRIVER_SLABS:
            self.take(body, 12, files)  # the simulated driver's slabs are files in memory, too
        elif kind == ERROR:
            raise ConnectionError
        for file in files:
            socket.close(file)
        return kind

    def obey(self, body):
        _, serial, self.budget_bytes, self.host_bytes = struct.unpack_from("<IQqq", body)
        while len(self.slabs) * self.options.slab > self.host_bytes:
            self.give_back()
        self.say(OBEYED, struct.pack("<IQqq", 0, serial, self.budget_bytes, self.host_bytes))
        # Only holders of device memory get slabs.
        self.say(USAGE, struct.pack("<IBB10q", 0, 1, 3, MIB, self.budget_bytes, *[0] * 8))

    def take(self, body, count_at, files):
        size_bytes, = struct.unpack_from("<q", body, 4)
        count, = struct.unpack_from("<I", body, count_at)
        for name, file in zip(struct.unpack_from(f"<{count}Q", body, count_at + 4), files):
            slab = Slab(name, file, size_bytes)
            if not (words := slab.words()) <= {0, self.options.word}:
                self.end(CROSSED, words)
            slab.fill(self.options.word)
            self.slabs.append(slab)
            print(f"{name:x}", flush=True)

    def give_back(self):
        slab = self.slabs.pop(self.random.randrange(len(self.slabs)))
        self.look(slab)
        self.clung_to.append(slab)
        if self.random.random() < 0.5 or len(self.clung_to) > MOST_CLUNG_TO:
            self.clung_to.pop(0).memory.close()
        self.say(RETURN_SLABS, struct.pack("<IQ", 1, slab.name))

    def look(self, slab):
        if (words := slab.words()) != {self.options.word}:
            self.end(CHANGED, words)

    def end(self, code, words):
        what = "a slab that came" if code == CROSSED else "a slab that it has"
        print(f"{what} holds {[f'{word:016x}' for word in sorted(words)[:4]]}, its word is {self.options.word:016x}", file=sys.stderr)
        sys.exit(code)

    def turn(self):
        if select.select([self.socket], [], [], 0.01)[0]:
            self.hear()
        if self.slabs:
            self.look(self.random.choice(self.slabs))
        for slab in self.clung_to:
            slab.fill(self.options.word)
        if self.random.random() < 0.2 and self.slabs:
            self.give_back()
        missing = min(16 * MIB, self.host_bytes) // self.options.slab - len(self.slabs)
        if missing > 0 and time.monotonic() > self.ask_after:
            self.ask_after = time.monotonic() + 0.1
            self.say(ASK_SLABS, struct.pack("<Iq", 0, missing * self.options.slab))

    def run(self):
        while True:
            try:
                self.connect()
                while True:
                    self.turn()
            except OSError:
                self.socket.close()
                time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--slab", type=int, required=True)
    parser.add_argument("--word", type=int, required=True)
    parser.add_argument("--user", type=int, help="to be; takes root")
    options = parser.parse_args()
    # Set here and not by the parent: other users may be unable to start an interpreter in someone's
    # home.
    if options.user is not None:
        os.setgroups([])
        os.setresgid(*[options.user] * 3)
        os.setresuid(*[options.user] * 3)
    Poisoner(options).run()


if __name__ == "__main__":
    main()
