"""Looks for a batch that fits the device, as notebooks do, trains with it, and prints what PyTorch says of the memory."""
import argparse
import re

import torch
from torch import nn

MIB = 1 << 20


def show_memory(when):
    free, total = torch.cuda.mem_get_info()
    used, by_tensors = torch.cuda.device_memory_used(), torch.cuda.memory_allocated()  # the first is NVML's, as nvidia-smi prints it
    assert by_tensors <= used == total - free, "the figures contradict each other"
    print(f"{when}: {free / MIB} of {total / MIB} MiB are free, {by_tensors / MIB} in tensors", flush=True)


def step(model, optimizer, batch):
    optimizer.zero_grad()
    loss = model(torch.randn(batch, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def largest_fitting(model, optimizer, batch, factor):
    while True:
        try:
            step(model, optimizer, batch)
            return batch
        except torch.OutOfMemoryError as error:
            print("batch", batch, error, flush=True)
        torch.cuda.empty_cache()
        show_memory("after the failure")
        batch //= factor


def need_what_is_cached(total):
    """Frees tensors, which PyTorch keeps, then asks for a larger one: PyTorch gives back what it keeps, and asks again."""
    freed = [torch.ones(total // 8 // 4, device="cuda") for _ in range(6)]
    del freed
    larger = torch.ones(total // 2 // 4, device="cuda")
    print("a larger tensor", larger.sum().item(), "after", torch.cuda.memory_stats()["num_alloc_retries"], "retries", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--batch", type=int, default=65536, help="the first that is tried")
    options.add_argument("--factor", type=int, default=64, help="how much smaller the next one is")
    chosen = options.parse_args()
    torch.manual_seed(1)
    total = torch.cuda.get_device_properties(0).total_memory
    print("the device has", total / MIB, "MiB")
    show_memory("at the beginning")
    need_what_is_cached(total)
    torch.cuda.empty_cache()
    model = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 64)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batch = largest_fitting(model, optimizer, chosen.batch, chosen.factor)
    for number in range(chosen.steps):
        print("step", number, "of batch", batch, "loss", step(model, optimizer, batch), flush=True)
    show_memory("after training")
    print(torch.cuda.memory_summary())
    print(re.sub(r"process +\d+", "process", torch.cuda.list_gpu_processes()))


main()
