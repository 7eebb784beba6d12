"""Trains an image classifier of torchvision on random images, as its users do, and prints each step's loss."""
import argparse
import contextlib
import io
import sys
import zlib

import torch
import torchvision
from torch import nn


def loader_of(chosen, examples):
    images = torch.randn(examples, 3, chosen.image, chosen.image)
    labels = torch.randint(0, 1000, (examples,))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=chosen.batch, shuffle=True,
                                       num_workers=chosen.workers, pin_memory=True, drop_last=True)


class Trainer:
    def __init__(self, chosen):
        self.chosen = chosen
        self.layout = torch.channels_last if chosen.channels_last else torch.contiguous_format
        sizes = {"image_size": chosen.image} if chosen.model.startswith("vit") else {}
        self.model = torchvision.models.get_model(chosen.model, weights=None, **sizes).cuda().to(memory_format=self.layout)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        self.criterion = nn.CrossEntropyLoss()
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.step = 0

    def precision(self):
        return torch.autocast("cuda", dtype=torch.bfloat16) if self.chosen.bf16 else contextlib.nullcontext()

    def loss_of(self, images, labels):
        images = images.cuda(non_blocking=True).to(memory_format=self.layout)
        with self.precision():
            return self.criterion(self.model(images), labels.cuda(non_blocking=True))

    def train(self, loader):
        self.model.train()
        for images, labels in loader:
            self.begin.record()
            self.optimizer.zero_grad()
            loss = self.loss_of(images, labels)
            loss.backward()
            if self.chosen.clip:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.chosen.clip)
            self.optimizer.step()
            self.end.record()
            print("step", self.step, "loss", loss.item(), flush=True)
            print("step", self.step, "took", self.begin.elapsed_time(self.end), "ms", file=sys.stderr)
            self.step += 1

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        losses = [self.loss_of(images, labels) for images, labels in loader]
        print("evaluation", sum(loss.item() for loss in losses), flush=True)

    def save_and_load(self):
        checkpoint = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, checkpoint)
        print("checkpoint", zlib.crc32(checkpoint.getvalue()), flush=True)
        checkpoint.seek(0)
        loaded = torch.load(checkpoint, map_location="cuda")
        self.model.load_state_dict(loaded["model"])
        self.optimizer.load_state_dict(loaded["optimizer"])


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="resnet50", help="of torchvision, such as resnet50 or vit_b_16")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--steps", type=int, default=4, help="of an epoch")
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--image", type=int, default=224)
    options.add_argument("--workers", type=int, default=0, help="processes that load data")
    options.add_argument("--bf16", action="store_true", help="automatic mixed precision")
    options.add_argument("--channels-last", action="store_true")
    options.add_argument("--benchmark", action="store_true", help="let cuDNN measure its algorithms")
    options.add_argument("--clip", type=float, default=0.0, help="the gradients' norm")
    options.add_argument("--evaluate", action="store_true", help="between epochs")
    options.add_argument("--checkpoint", action="store_true", help="save and load the state between epochs")
    chosen = options.parse_args()
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = chosen.benchmark
    trainer = Trainer(chosen)
    loader, unseen = loader_of(chosen, chosen.steps * chosen.batch), loader_of(chosen, chosen.batch)
    for _ in range(chosen.epochs):
        trainer.train(loader)
        if chosen.evaluate:
            trainer.evaluate(unseen)
        if chosen.checkpoint:
            trainer.save_and_load()
    print("weights", zlib.crc32(b"".join(value.cpu().numpy().tobytes() for value in trainer.model.state_dict().values())))


if __name__ == "__main__":  # workers may import this file
    main()
