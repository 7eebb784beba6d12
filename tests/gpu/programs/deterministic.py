"""Runs a PyTorch program with deterministic algorithms, so that two runs on the same device print the same.

    deterministic.py SCRIPT [ARGUMENT...]

Where PyTorch has no deterministic algorithm it warns and goes on: such a program may differ from itself.
"""
import pathlib
import runpy
import sys

import torch


def main():
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a launch for each allocation, which users do not have
    # The backward passes of the other kinds of attention add up in any order, whatever was asked for.
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    del sys.argv[0]
    sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
