"""Jobs of the tests of turns, which call the simulated driver. Each has ten ranges of 16 MiB.

    usage: turning_job.py steady | dependent | renewing FOLDER

steady      sets its ranges again and again, until FOLDER/end exists.
dependent   enqueues work that waits for a later call of its own, and makes that call after three
            seconds: by then it is another job's turn.
renewing    computes nothing until FOLDER/renew exists, then sets memory of a new context.
"""
import ctypes as c
import os
import sys
import time

RANGE_BYTES = 16 << 20
driver = c.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(driver, name)(*arguments)
    if result:
        raise SystemExit(f"{name}: {result}")


def stream():
    made = c.c_void_p()
    call("cuStreamCreate", c.byref(made), 1)
    return made


def ranges(count):
    made = [c.c_uint64() for _ in range(count)]
    for one in made:
        call("cuMemAlloc_v2", c.byref(one), c.c_size_t(RANGE_BYTES))
        call("cuMemsetD8_v2", one, c.c_ubyte(1), c.c_size_t(RANGE_BYTES))
    return made


def fill(memory, value, on):
    for one in memory:
        call("cuMemsetD8Async", one, c.c_ubyte(value), c.c_size_t(RANGE_BYTES), on)


def work(memory, until):
    on = stream()
    while not until():
        fill(memory, 7, on)
        call("cuStreamSynchronize", on)
        time.sleep(0.002)


def work_for(memory, seconds):
    end = time.monotonic() + seconds
    work(memory, lambda: time.monotonic() > end)


def holds(one, value):
    out = (c.c_ubyte * RANGE_BYTES)()
    call("cuMemcpyDtoH_v2", out, one, c.c_size_t(RANGE_BYTES))
    return bytes(out) == bytes([value]) * RANGE_BYTES


def be_dependent(memory):
    waits, works, signals = stream(), stream(), stream()
    flag, on_device, event = c.c_void_p(), c.c_uint64(), c.c_void_p()
    call("cuMemHostAlloc", c.byref(flag), c.c_size_t(4096), 2)
    c.memset(flag, 0, 4096)
    call("cuMemHostGetDevicePointer_v2", c.byref(on_device), flag, 0)
    call("cuEventCreate", c.byref(event), 2)
    work_for(memory, 4)
    call("cuStreamWaitValue32_v2", waits, on_device, c.c_uint32(1), 0)
    call("cuEventRecord", event, waits)
    call("cuStreamWaitEvent", works, event, 0)
    fill(memory[:4], 9, works)
    time.sleep(3)
    call("cuMemsetD32Async", on_device, c.c_uint32(1), c.c_size_t(1), signals)
    call("cuStreamSynchronize", works)
    if not all(holds(one, 9) for one in memory[:4]):
        raise SystemExit("wrong bytes")


def be_renewed(context, folder):
    while not os.path.exists(f"{folder}/renew"):
        time.sleep(0.02)
    call("cuCtxDestroy_v2", context)
    call("cuCtxCreate_v2", c.byref(context), 0, 0)
    print("renewed", flush=True)
    ranges(10)


def main():
    kind, folder = sys.argv[1:]
    context = c.c_void_p()
    call("cuInit", 0)
    call("cuCtxCreate_v2", c.byref(context), 0, 0)
    memory = ranges(10)
    if kind == "steady":
        work(memory, lambda: os.path.exists(f"{folder}/end"))
    elif kind == "dependent":
        be_dependent(memory)
    else:
        be_renewed(context, folder)
    print("done", flush=True)


main()
