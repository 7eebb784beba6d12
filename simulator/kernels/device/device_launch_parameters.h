// Replaces NVIDIA's header of this name, which declares threadIdx and its kin; threads.h has them.
#pragma once
#include "simulator/kernels/device/threads.h"
