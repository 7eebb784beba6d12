// The worker that makes slabs of the driver's memory, for tests of the pool alone.
#include "agent/pool/driver_worker.h"

int main() { return spillway::agent::RunSlabWorker(); }
