// The encoder must make exactly the bytes that docs/protocol.md shows.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "protocol/codec.h"
#include "tests/support/paths.h"
#include "tests/unit/protocol/samples.h"

namespace spillway::protocol {
namespace {

std::string HexOf(const Frame& frame) {
  size_t size = frame.size();
  while (size > kHeaderBytes && frame[size - 1] == 0) --size;
  std::string hex;
  for (size_t i = 0; i < size; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", frame[i]);
    hex += byte;
  }
  return hex;
}

// From blocks that begin with "```golden KIND".
std::map<std::string, std::string> GoldenBytes() {
  std::ifstream page(test::SourcePath("docs/protocol.md"));
  std::map<std::string, std::string> found;
  std::string line, kind;
  while (std::getline(page, line)) {
    if (line.rfind("```golden ", 0) == 0) {
      kind = line.substr(10);
    } else if (line == "```") {
      kind.clear();
    } else if (!kind.empty()) {
      std::istringstream words(line);
      for (std::string word; words >> word;) found[kind] += word;
    }
  }
  return found;
}

TEST(GoldenTest, EncoderMakesTheDocumentedBytes) {
  const std::map<std::string, std::string> golden = GoldenBytes();

  EXPECT_EQ(golden.size(), std::variant_size_v<Message>);
  for (const Message& message : Samples()) {
    const auto found = golden.find(NameOf(message));
    EXPECT_EQ(found == golden.end() ? "not on the page" : found->second, HexOf(Encode(message)))
        << NameOf(message);
  }
}

}  // namespace
}  // namespace spillway::protocol
