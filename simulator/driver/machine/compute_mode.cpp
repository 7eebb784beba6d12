#include "simulator/driver/machine/compute_mode.h"

namespace spillway::simulator {
namespace {

ComputeMode the_mode = ComputeMode::kFull;

}  // namespace

ComputeMode TheComputeMode() { return the_mode; }

void SetComputeMode(ComputeMode mode) { the_mode = mode; }

}  // namespace spillway::simulator
