"""Reads interposer/driver/hook_table.inc, the list of the driver's symbols, for the checks of that list."""
import re
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).resolve().parent.parent / "interposer" / "driver" / "hook_table.inc"
ROW = re.compile(r'^SPILLWAY_(HOOK|PASS)\((\w+), (k\w+)(?:, "([^"]+)")?\)$')


class Row(NamedTuple):
    symbol: str
    what: str
    is_hooked: bool
    reason: str

    @property
    def function(self):
        """The common name of a function's forms: cuMemcpyHtoDAsync for cuMemcpyHtoDAsync_v2_ptsz."""
        return re.sub(r"(_v\d+)?(_ptds|_ptsz)?$", "", self.symbol)


def read(file=FILE):
    rows = []
    for line in file.read_text().splitlines():
        if line.startswith("SPILLWAY_"):
            match = ROW.match(line)
            if not match:
                raise ValueError(f"{file.name}: not a row: {line}")
            rows.append(Row(match[2], match[3], match[1] == "HOOK", match[4] or ""))
    return rows
