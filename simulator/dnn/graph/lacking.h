// What the simulator lacks, by name.
#pragma once

#include <string>

namespace spillway::simulator::dnn::graph {

// Prints "cudnn_graph(<what>) is not simulated", once per process and `what`.
void SayNotSimulated(const std::string& what);

}  // namespace spillway::simulator::dnn::graph
