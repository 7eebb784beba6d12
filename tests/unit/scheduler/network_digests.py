#!/usr/bin/env python3
"""Makes tests/fixtures/network_digests.csv from a folder of network traces in JSON.

    network_digests.py FOLDER > tests/fixtures/network_digests.csv

The traces were made by an independent generator; their digests show that ours makes the same buffers, operations, work and
workspaces. networks_test.cpp writes the same text; with --text NAME this prints it, to find a difference.
"""
import json
import pathlib
import sys

KINDS = {"input": 1, "weight": 2, "opt": 3, "wgrad": 4, "act": 5, "aux": 6, "grad": 7}
PHASES = {"F": 0, "B": 1, "U": 2}


def text_of(trace):
    lines = [f"{t['name']}|{KINDS[t['kind']]}|{t['bytes']}" for t in trace["tensors"]]
    for op in trace["ops"]:
        reads, writes = (",".join(map(str, op[side])) for side in ("reads", "writes"))
        choices = ";".join(f"{name} {size} {round(speed * 100)}" for name, size, speed in op.get("ws", []))
        lines.append(f"{op['name']}|{PHASES[op['phase']]}|{reads}|{writes}|{op['flops']}|{op['bytes']}|{choices}")
    return "\n".join(lines) + "\n"


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def main():
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) == 4 and sys.argv[2] == "--text":
        sys.stdout.write(text_of(json.loads((folder / f"{sys.argv[3]}.json").read_text())))
        return
    for path in sorted(folder.glob("*.json")):
        trace = json.loads(path.read_text())
        print(f"{path.stem},{len(trace['tensors'])},{len(trace['ops'])},{fnv1a(text_of(trace)):016x}")


if __name__ == "__main__":
    main()
