"""Trains GPT-2 on random words and prints each step's loss. The options choose its size and how it is trained."""
import argparse
import contextlib
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

ATTENTION = {"flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}


def attention_by(name):
    return sdpa_kernel(ATTENTION[name]) if name else contextlib.nullcontext()


class Attention(nn.Module):
    def __init__(self, width, heads, dropout, kind):
        super().__init__()
        self.heads, self.dropout, self.kind = heads, dropout, kind
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.inputs(x).split(width, dim=2))
        with attention_by(self.kind):
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return functional.dropout(self.output(mixed.transpose(1, 2).reshape(batch, length, width)), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, width, heads, dropout, kind):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, dropout, kind)
        self.norm2 = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.perceptron(self.norm2(x))


class GPT2(nn.Module):
    def __init__(self, words, length, layers, width, heads, dropout, kind, with_checkpoints):
        super().__init__()
        self.with_checkpoints = with_checkpoints
        self.words, self.places, self.dropout = nn.Embedding(words, width), nn.Embedding(length, width), nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout, kind) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, words, targets):
        x = self.dropout(self.words(words) + self.places(torch.arange(words.shape[1], device=words.device)))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.with_checkpoints else block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def optimizer_for(model, kind):
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    decayed = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    how = {"adamw": {"foreach": False}, "adamw-foreach": {"foreach": True}, "adamw-fused": {"fused": True}}[kind]
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), **how)


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("steps", 8), ("layers", 4), ("width", 512), ("heads", 8), ("length", 256), ("batch", 16), ("words", 8192), ("accumulate", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--optimizer", choices=["sgd", "adamw", "adamw-foreach", "adamw-fused"], default="adamw-foreach")
    parser.add_argument("--attention", choices=ATTENTION, help="unless given, PyTorch chooses")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--clip", type=float, help="the gradients' largest norm")
    parser.add_argument("--checkpoint", action="store_true", help="compute activations again instead of keeping them")
    parser.add_argument("--dropout", type=float, default=0.0)
    return parser.parse_args()


def main():
    chosen = options()
    torch.manual_seed(1)
    model = GPT2(chosen.words, chosen.length, chosen.layers, chosen.width, chosen.heads, chosen.dropout, chosen.attention, chosen.checkpoint).cuda()
    optimizer = optimizer_for(model, chosen.optimizer)
    text = torch.randint(0, chosen.words, (chosen.batch, chosen.length + 1)).cuda()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for step in range(chosen.steps):
        begin.record()
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for _ in range(chosen.accumulate):
            with torch.autocast("cuda", torch.bfloat16, enabled=chosen.bf16):
                loss = model(text[:, :-1], text[:, 1:]) / chosen.accumulate
            loss.backward()
            total += loss.item()
        if chosen.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), chosen.clip)
        optimizer.step()
        end.record()
        end.synchronize()
        print("step", step, "loss", total, flush=True)
        print("step", step, "took", begin.elapsed_time(end), "ms", file=sys.stderr)
    print("sum of the weights", sum(parameter.sum().item() for parameter in model.parameters()))


main()
