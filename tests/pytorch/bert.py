"""Trains an encoder in the manner of BERT to guess hidden words in padded random sentences, with evaluations, and prints each loss."""
import argparse
import contextlib
import sys

import torch
from torch import nn

PADDING, HIDDEN, FIRST_WORD = 0, 1, 2
IGNORED = -100


class Bert(nn.Module):
    def __init__(self, words, length, layers, width, heads):
        super().__init__()
        self.words, self.places, self.segments = nn.Embedding(words, width, padding_idx=PADDING), nn.Embedding(length, width), nn.Embedding(2, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.guess = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, words))

    def forward(self, words, segments):
        places = torch.arange(words.shape[1], device=words.device)
        x = self.dropout(self.norm(self.words(words) + self.places(places) + self.segments(segments)))
        return self.guess(self.encoder(x, src_key_padding_mask=words == PADDING))


class Sentences(torch.utils.data.Dataset):
    """Pairs of sentences of varied lengths; about one word in seven is hidden."""

    def __init__(self, count, words, length):
        lengths = torch.randint(length // 2, length + 1, (count, 1))
        places = torch.arange(length)
        self.words = torch.randint(FIRST_WORD, words, (count, length)).masked_fill(places >= lengths, PADDING)
        self.segments = (places >= lengths // 2).long()
        hidden = (torch.rand(count, length) < 0.15) & (places < lengths)
        self.targets = self.words.masked_fill(~hidden, IGNORED)
        self.words = self.words.masked_fill(hidden, HIDDEN)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        return self.words[index], self.segments[index], self.targets[index]


class Trainer:
    def __init__(self, chosen):
        self.model = Bert(chosen.words, chosen.length, chosen.layers, chosen.width, chosen.heads).cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.01, fused=chosen.fused)
        self.warm_up = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / 4))
        self.scaler = torch.amp.GradScaler("cuda", enabled=chosen.fp16)
        self.precision = torch.autocast("cuda", torch.float16) if chosen.fp16 else contextlib.nullcontext()
        self.accumulate = chosen.accumulate
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.step = 0

    def loss_of(self, batch):
        words, segments, targets = (part.cuda(non_blocking=True) for part in batch)
        with self.precision:
            logits = self.model(words, segments)
            return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)

    def train(self, loader):
        self.model.train()
        for number, batch in enumerate(loader):
            if number % self.accumulate == 0:
                self.begin.record()
            loss = self.loss_of(batch)
            self.scaler.scale(loss / self.accumulate).backward()
            if (number + 1) % self.accumulate == 0:
                self.update(loss)

    def update(self, loss):
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.warm_up.step()
        self.optimizer.zero_grad()
        self.end.record()
        print("step", self.step, "loss", loss.item(), flush=True)
        print("step", self.step, "took", self.begin.elapsed_time(self.end), "ms", file=sys.stderr)
        self.step += 1

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        print("evaluation", sum(self.loss_of(batch).item() for batch in loader), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("epochs", 2), ("steps", 6), ("accumulate", 1), ("layers", 4), ("width", 512), ("heads", 8), ("length", 128), ("batch", 32),
                          ("words", 8192)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--fp16", action="store_true", help="autocast to half precision, with a gradient scaler")
    parser.add_argument("--fused", action="store_true", help="the optimiser in one kernel")
    chosen = parser.parse_args()
    torch.manual_seed(1)
    trainer = Trainer(chosen)
    sentences = Sentences(chosen.steps * chosen.accumulate * chosen.batch, chosen.words, chosen.length)
    loader = torch.utils.data.DataLoader(sentences, chosen.batch, shuffle=True, pin_memory=True)
    unseen = torch.utils.data.DataLoader(Sentences(2 * chosen.batch, chosen.words, chosen.length), chosen.batch, pin_memory=True)
    for _ in range(chosen.epochs):
        trainer.train(loader)
        trainer.evaluate(unseen)
    print("sum of the weights", sum(parameter.sum().item() for parameter in trainer.model.parameters()))


main()
