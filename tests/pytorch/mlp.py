"""Trains a perceptron with two hidden layers on random data by SGD with momentum, and prints each step's loss."""
import argparse

import torch
from torch import nn


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--batch", type=int, default=4096)
    options.add_argument("--width", type=int, default=4096)
    chosen = options.parse_args()
    torch.manual_seed(1)
    width = chosen.width
    model = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)).cuda()
    images, labels = torch.randn(chosen.batch, 784), torch.randint(0, 10, (chosen.batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for step in range(chosen.steps):
        optimizer.zero_grad()
        loss = criterion(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item(), flush=True)
    print("sum of the weights", sum(parameter.sum().item() for parameter in model.parameters()))


main()
