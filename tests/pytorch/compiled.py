"""Trains a perceptron through torch.compile, and prints each step's loss."""
import argparse

import torch
from torch import nn


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=8)
    options.add_argument("--batch", type=int, default=1024)
    options.add_argument("--width", type=int, default=2048)
    options.add_argument("--backend", default="aot_eager", help="of torch.compile, such as eager, aot_eager, cudagraphs or inductor")
    chosen = options.parse_args()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(784, chosen.width), nn.GELU(), nn.Dropout(0.1), nn.Linear(chosen.width, 10)).cuda()
    compiled = torch.compile(model, backend=chosen.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    images, labels = torch.randn(chosen.batch, 784), torch.randint(0, 10, (chosen.batch,))
    for step in range(chosen.steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(compiled(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item(), flush=True)
    print("sum of the weights", sum(parameter.sum().item() for parameter in model.parameters()))


main()
