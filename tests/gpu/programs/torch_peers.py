"""Problems that PyTorch users of similar layers reported, one check by name: torch_peers.py
CHECK. Prints the same bare and under a budget; memory figures go to standard error as JSON.
"""
import json
import os
import sys

import torch
from torch import nn

MIB = 1 << 20


def train_steps(count, width=1024, batch=512):
    """Bits of the losses of a few steps of a plain network."""
    torch.manual_seed(1)
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs = torch.randn(batch, width).cuda()
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        yield loss.item().hex()


def over_budget():
    """T21: a request beyond the limit is torch.cuda.OutOfMemoryError; after a cache flush the job
    continues."""
    total = torch.cuda.mem_get_info()[1]
    try:
        torch.empty(total + (64 << 20), dtype=torch.uint8, device="cuda")
        print("granted")
    except torch.cuda.OutOfMemoryError:
        print("refused")
    torch.cuda.empty_cache()
    for bits in train_steps(5):
        print(bits)
    free, total = torch.cuda.mem_get_info()
    print("more in use than there is:", torch.cuda.memory_reserved() > total or free > total)
    print("summary:", "CUDA memory summary" in torch.cuda.memory_summary())


def allocator():
    """T22: the same bits with every allocator of PYTORCH_CUDA_ALLOC_CONF or
    PYTORCH_NO_CUDA_MEMORY_CACHING."""
    for bits in train_steps(8):
        print(bits)


def convolution():
    """T24: convolutions whose workspaces hardly fit find a plan."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(2)
    layers = nn.Sequential(nn.Conv2d(64, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 256, 5, padding=2)).cuda()
    images = torch.randn(64, 64, 56, 56, device="cuda")
    for _ in range(3):
        layers(images).square().mean().backward()
    torch.cuda.synchronize()
    print("all", sum(parameter.grad is not None for parameter in layers.parameters()), "gradients")


def all_reduce_rank(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
    values = torch.full((4 * MIB,), float(rank + 1), device="cuda")
    torch.distributed.all_reduce(values)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.distributed.all_reduce(values)
    graph.replay()
    torch.cuda.synchronize()
    if rank == 0:
        print("sum", values[0].item(), values[-1].item())
    torch.distributed.destroy_process_group()


def all_reduce():
    """T23: NCCL between two processes, plain and captured in a graph; the devices' peer
    attributes stay."""
    print("peer access", torch.cuda.can_device_access_peer(0, 1))
    torch.multiprocessing.spawn(all_reduce_rank, args=(29541,), nprocs=2)


CHECKS = {check.__name__: check for check in (over_budget, allocator, convolution, all_reduce)}

if __name__ == "__main__":
    CHECKS[sys.argv[1]]()
    free_bytes, total_bytes = torch.cuda.mem_get_info()
    print(json.dumps({"free_bytes": free_bytes, "total_bytes": total_bytes}), file=sys.stderr)
