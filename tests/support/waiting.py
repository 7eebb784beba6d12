"""Waits for what another process does."""
import time

PATIENCE_S = 60
TURN_S = 0.05  # between two looks


def wait_for(look, is_there=bool, patience_s=PATIENCE_S):
    """The first look that is there."""
    deadline = time.monotonic() + patience_s
    while True:
        seen = look()
        if is_there(seen):
            return seen
        if time.monotonic() >= deadline:
            raise TimeoutError(f"did not come within {patience_s} s; last seen: {seen!r}")
        time.sleep(TURN_S)
