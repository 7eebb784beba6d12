"""Trains a small convolutional network on random images by SGD with momentum, and prints each step's loss."""
import argparse

import torch
from torch import nn


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--image", type=int, default=32)
    chosen = options.parse_args()
    torch.manual_seed(1)
    model = nn.Sequential(block(3, 32), nn.MaxPool2d(2), block(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
    images = torch.randn(chosen.batch, 3, chosen.image, chosen.image)
    labels = torch.randint(0, 10, (chosen.batch,))
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
