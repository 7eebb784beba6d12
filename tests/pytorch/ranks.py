"""Two ranks train a perceptron, each on its device, and average their gradients by gloo: torchrun --nproc-per-node 2 ranks.py"""
import os
import sys
import zlib

import torch
from torch import distributed, nn


def main():
    distributed.init_process_group("gloo")
    rank, device = distributed.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
    model = nn.parallel.DistributedDataParallel(model, device_ids=[device])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(rank)
    images, labels = torch.randn(1024, 784), torch.randint(0, 10, (1024,))
    for step in range(8):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        losses = [torch.zeros(1) for _ in range(distributed.get_world_size())]
        distributed.all_gather(losses, loss.detach().cpu().reshape(1))
        if rank == 0:
            print("step", step, "losses", [value.item() for value in losses], flush=True)
    weights = zlib.crc32(b"".join(value.cpu().numpy().tobytes() for value in model.state_dict().values()))
    checksums = [torch.zeros(1, dtype=torch.int64) for _ in range(distributed.get_world_size())]
    distributed.all_gather(checksums, torch.tensor([weights]))
    if rank == 0:
        print("weights", [value.item() for value in checksums])
    distributed.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        main()
    else:  # as torchrun would
        os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__])
