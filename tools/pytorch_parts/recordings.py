"""Records what PyTorch programs allocate and launch, as text without addresses (docs/trace_format.md): tests/fixtures/pytorch.

Each program runs at half of what it wants, until Spillway has planned its iteration. So a recording ends with measured durations.
"""
import pathlib
import tempfile

from pytorch_parts.trials import Trial, words

RECORDED = [
    Trial("gpt2", "gpt2.py", words("--steps 7")),
    Trial("gpt2_accumulated", "gpt2.py", words("--steps 7 --checkpoint --attention efficient --accumulate 2 --optimizer adamw-fused --bf16")),
    Trial("resnet50", "images.py", words("--batch 16 --epochs 1 --steps 7")),
    Trial("resnet18_evaluated", "images.py", words("--batch 16 --epochs 3 --steps 3 --evaluate --model resnet18")),
    Trial("vit_b_16", "images.py", words("--model vit_b_16 --batch 8 --epochs 1 --steps 7")),
]


def record(runner_of, trial, folder):
    """`runner_of` makes a Runner of the trial's program behind the given words. Returns the recording's path."""
    peak_bytes = runner_of().run("no budget", 0).peak_bytes()
    recording = folder / f"{trial.name}.events"
    with tempfile.TemporaryDirectory() as name:
        written = pathlib.Path(name) / "events"
        runner_of("env", f"SPILLWAY_EVENTS={written}").run("50 %", peak_bytes // 2)
        recording.write_bytes(written.read_bytes())
    return recording
