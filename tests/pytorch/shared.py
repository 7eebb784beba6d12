"""Two processes share a tensor on the device: the second adds to it, the first prints it before and after."""
import argparse

import torch
from torch import multiprocessing


def add(queue, done):
    tensor = queue.get()
    tensor.add_(1)
    torch.cuda.synchronize()
    del tensor  # tells the producer
    done.set()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mebibytes", type=int, default=32)
    chosen = options.parse_args()
    context = multiprocessing.get_context("spawn")
    torch.manual_seed(1)
    tensor = torch.randn(chosen.mebibytes << 18).cuda()
    others = [torch.randn(8 << 18).cuda() for _ in range(8)]
    print("before", tensor.sum().item(), flush=True)
    done = context.Event()
    queue = context.Queue()
    child = context.Process(target=add, args=(queue, done))
    child.start()
    queue.put(tensor)
    done.wait(60)
    child.join()
    print("after", tensor.sum().item(), "exit code", child.exitcode, flush=True)
    print("others", [other.sum().item() for other in others])
    torch.cuda.ipc_collect()  # else PyTorch may crash in its own destructors at the end


if __name__ == "__main__":  # the child imports this file
    main()
