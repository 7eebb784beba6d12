"""Workers started by multiprocessing in each of its ways, all using CUDA: workers.py
spawn|forkserver|fork|fork_after."""

import ctypes
import multiprocessing
import sys

BUFFERS, BUFFER_BYTES = 11, 8 << 20  # more than a budget of 64 MiB
CUDA = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    return getattr(CUDA, name)(*arguments)


def begin():
    context = ctypes.c_void_p()
    results = (call("cuInit", 0), call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0),
               call("cuCtxSetCurrent", context))
    return max(results)


def compute(number):
    """The error of the first call that failed, or the sum over all buffers."""
    if error := begin():
        return f"refused with {error}"
    addresses = [ctypes.c_uint64() for _ in range(BUFFERS)]
    for i, address in enumerate(addresses):
        assert call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(BUFFER_BYTES)) == 0
        assert call("cuMemsetD32_v2", address, number + i, ctypes.c_size_t(BUFFER_BYTES // 4)) == 0
    word, total = ctypes.c_uint32(), 0
    for address in addresses:
        end = ctypes.c_uint64(address.value + BUFFER_BYTES - 4)
        assert call("cuMemcpyDtoH_v2", ctypes.byref(word), end, ctypes.c_size_t(4)) == 0
        total += word.value
    return f"computed {total}"


def main(way):
    if way == "fork_after":
        print("parent", compute(1000), flush=True)
    context = multiprocessing.get_context("fork" if way == "fork_after" else way)
    with context.Pool(3) as pool:
        for line in sorted(pool.map(compute, range(3))):
            print("worker", line)
    if way == "fork_after":
        print("parent", compute(2000))


if __name__ == "__main__":
    main(sys.argv[1])
