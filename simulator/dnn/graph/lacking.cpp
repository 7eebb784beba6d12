#include "simulator/dnn/graph/lacking.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace spillway::simulator::dnn::graph {

void SayNotSimulated(const std::string& what) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(what).second)
    std::fprintf(stderr, "spillway simulator: cudnn_graph(%s) is not simulated\n", what.c_str());
}

}  // namespace spillway::simulator::dnn::graph
