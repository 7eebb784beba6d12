#!/usr/bin/env python3
"""Writes a linker version script that leaves a driver only the functions of CUDA 11.4.

    older_driver.py SYMBOLS CUDA_INCLUDE ENTRIES_FOLDER OUTPUT

SYMBOLS lists the driver's functions. ENTRIES_FOLDER holds entries.py, which reads the first
version of each function's form from cudaTypedefs.h.
"""
import sys
from pathlib import Path

VERSION = 11040

symbols_file, include, entries_folder, output = sys.argv[1:]
sys.path.insert(0, entries_folder)
sys.dont_write_bytecode = True
import entries  # noqa: E402

symbols = Path(symbols_file).read_text().split()
younger = {symbol for _, version, _, symbol in entries.table(symbols, include) if version > VERSION}
kept = [symbol for symbol in symbols if symbol not in younger]
Path(output).write_text("{ global: " + " ".join(f"{symbol};" for symbol in kept) + " local: *; };\n")
