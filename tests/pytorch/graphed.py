"""Trains a perceptron whose forward and backward passes PyTorch replays as CUDA graphs (make_graphed_callables)."""
import argparse

import torch
from torch import nn


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--batch", type=int, default=2048)
    options.add_argument("--width", type=int, default=2048)
    chosen = options.parse_args()
    torch.manual_seed(1)
    width = chosen.width
    body = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()).cuda()
    head = nn.Linear(width, 10).cuda()
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    graphed = torch.cuda.make_graphed_callables(body, (torch.randn(chosen.batch, 784, device="cuda"),))
    images, labels = torch.randn(chosen.batch, 784), torch.randint(0, 10, (chosen.batch,))
    for step in range(chosen.steps):
        optimizer.zero_grad(set_to_none=False)
        loss = criterion(head(graphed(images.cuda())), labels.cuda())
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item(), flush=True)
    print("sum of the weights", sum(parameter.sum().item() for parameter in body.parameters()))


main()
