"""Which PyTorch programs run, by which allocators, in how much memory."""
import dataclasses

ALLOCATORS = {"async": "backend:cudaMallocAsync", "caching": "backend:native", "expandable": "expandable_segments:True"}

# A budget of what the bare run holds, beside shares of what the program wants at its peak. PyTorch's allocators hold more than that.
AS_BARE = "as bare"

# The driver's pools keep freed memory, as PyTorch asks them to; Spillway's count it as free. PyTorch's own allocator keeps the same
# segments in both.
POOLS_FIGURES = (r"(?<=Free \(according to CUDA\): )\S+ MiB|\S+(?= of \S+ MiB are free)|(?<=process uses) +\S+ MB"
                 r"|(?<=\| GPU reserved memory ) .*(?= \|)")

# Shares of the program's own peak, in percent, by allocator. Memory of expandable segments cannot move, and cuDNN's workspaces then
# depend on what is free: at 100 % a bare device of that size prints the same, a larger one does not.
SHARES = {"async": (AS_BARE, 100, 75, 50, 25), "caching": (50,), "expandable": ()}
ASYNC = {"async": (AS_BARE, 100, 50, 25)}


@dataclasses.dataclass(frozen=True)
class SmallDevice:
    """The bare run has a device of this size; under Spillway a whole device has this budget, with little host memory.

    So both run out of memory, and must say the same.
    """
    capacity_mib: int
    host_mib: int


@dataclasses.dataclass(frozen=True)
class Trial:
    name: str
    script: str  # in tests/pytorch, or a path
    arguments: tuple = ()
    shares: dict = dataclasses.field(default_factory=lambda: SHARES)
    devices: int = 1
    small_device: SmallDevice | None = None  # then there are no shares
    # Of the output, by allocator: a pattern of figures that differ from the bare run's, and may.
    may_differ: dict = dataclasses.field(default_factory=dict)


def words(text):
    return tuple(text.split())


FIRST = [
    Trial("resnet50", "images.py", words("--batch 32 --epochs 1 --steps 16")),
    Trial("gpt2", "gpt2.py", words("--steps 14")),
]

ALL = [
    Trial("convnet", "convnet.py", shares={"async": (100, 50), "caching": (50,)}),
    Trial("resnet50, evaluated, saved and loaded", "images.py", words("--evaluate --checkpoint --workers 2")),
    Trial("resnet50, bf16, channels_last, clipped", "images.py", words("--bf16 --channels-last --clip 1")),
    Trial("vit_b_16", "images.py", words("--model vit_b_16 --batch 8"), ASYNC),
    Trial("gpt2, adamw", "gpt2.py", words("--optimizer adamw"), {"caching": (50,), "expandable": ()}),
    Trial("gpt2, adamw fused, bf16, flash attention", "gpt2.py", words("--optimizer adamw-fused --bf16 --attention flash --clip 1"), ASYNC),
    Trial("gpt2, activations computed again", "gpt2.py", words("--checkpoint --attention efficient --accumulate 2"), ASYNC),
    Trial("bert", "bert.py", words("--epochs 2 --steps 6"), {"async": (50,)}),
    Trial("bert, fp16, accumulated", "bert.py", words("--epochs 2 --steps 3 --accumulate 2 --fp16 --fused"), {"async": (50,)}),
    Trial("compiled", "compiled.py", shares={"async": (100, 50)}),
    Trial("compiled, cudagraphs", "compiled.py", words("--backend cudagraphs"), {"caching": (100,)}),
    Trial("graphs", "graphed.py", shares={"async": (100, 75), "caching": (100, 75)}),
    Trial("tensor of two processes", "shared.py", shares={"caching": (100, 50)}),
    Trial("two ranks", "ranks.py", devices=2, shares={"async": (100, 50), "caching": (50,)}),
    Trial("batch that fits", "fits.py", shares=dict.fromkeys(ALLOCATORS, ()), small_device=SmallDevice(256, 64),
          may_differ={"async": POOLS_FIGURES}),
]
