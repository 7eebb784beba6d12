// Replaces NVIDIA's header of this name: threads.h declares threadIdx and its kin.
#pragma once
#include "simulator/kernels/device/threads.h"
