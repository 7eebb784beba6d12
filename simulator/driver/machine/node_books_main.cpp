// node_books FILE: prints the books of a machine that several simulated processes share.
#include <cstdio>

#include "simulator/driver/machine/node_books.h"

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: node_books FILE (what SPILLWAY_SIM_NODE named)\n");
    return 2;
  }
  const auto json = spillway::simulator::ReadNodeBooks(words[1]);
  if (!json) {
    std::fprintf(stderr, "node_books: %s\n", json.text().c_str());
    return 1;
  }
  std::fputs(json->c_str(), stdout);
  return 0;
}
