"""Trains a small convolutional network for a few steps and prints every loss with all its bits.

Deterministic: fixed seeds, deterministic algorithms, no autotuning. Two runs on the same device print the same lines
whatever lies under the driver. Time and memory go to standard error as JSON.
"""
import json
import sys
import time

import torch
from torch import nn

STEPS = 12
BATCH = 256


def network():
    layers, width = [], 3
    for out in (64, 128, 256, 256):
        layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.Conv2d(out, out, 3, padding=1),
                   nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
        width = out
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width * 4 * 4, 10)).cuda()


def main():
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(BATCH, 3, 64, 64).cuda()
    labels = torch.randint(0, 10, (BATCH,)).cuda()
    start = time.monotonic()
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item().hex()}", flush=True)
        if step == 1:
            torch.cuda.synchronize()
            start = time.monotonic()
    torch.cuda.synchronize()
    seconds = time.monotonic() - start
    checksum = sum(parameter.double().sum().item() for parameter in model.parameters())
    print(f"weights {checksum.hex()}")
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({"seconds_per_step": seconds / (STEPS - 2), "allocator": torch.cuda.get_allocator_backend(),
                      "free_bytes": free, "total_bytes": total}), file=sys.stderr)


if __name__ == "__main__":
    main()
