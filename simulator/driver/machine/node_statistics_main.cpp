#include <cstdio>

#include "simulator/driver/machine/node_statistics.h"

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: node_statistics FILE (what SPILLWAY_SIM_NODE named)\n");
    return 2;
  }
  const auto json = spillway::simulator::ReadNodeStatistics(words[1]);
  if (!json) {
    std::fprintf(stderr, "node_statistics: %s\n", json.text().c_str());
    return 1;
  }
  std::fputs(json->c_str(), stdout);
  return 0;
}
