"""Loads a plug-in with RTLD_DEEPBIND that allocates device memory: deepbind.py PLUGIN BYTES. Prints the plug-in's answer and
waits for a line."""
import ctypes
import os
import sys

plugin = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
print("answer", plugin.AllocateByPlugin(ctypes.c_size_t(int(sys.argv[2]))), flush=True)
sys.stdin.readline()
