// What the simulator lacks, by name.
//
// Called from: graphs and engines when they are finalized, on the program's threads.
#pragma once

#include <string>

namespace spillway::simulator::dnn::graph {

// Prints "cudnn_graph(<what>) is not simulated", once per process and `what`.
void SayNotSimulated(const std::string& what);

}  // namespace spillway::simulator::dnn::graph
