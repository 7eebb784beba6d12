#include "interposer/ledger/tensor_maps.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace spillway::interposer {
namespace {

CUtensorMap MapOf(std::uint64_t first, std::uint64_t last) {
  CUtensorMap map{};
  map.opaque[0] = first;
  map.opaque[15] = last;
  return map;
}

TEST(TensorMapsTest, MapIsKnownByItsContent) {
  const CUtensorMap map = MapOf(1, 2);
  NoteTensorMap(map, 0x7000);
  CUtensorMap copy;
  std::memcpy(&copy, &map, sizeof map);
  EXPECT_EQ(TensorMapAddress(&copy), 0x7000u);
  copy.opaque[15] = 3;
  EXPECT_EQ(TensorMapAddress(&copy), 0u);
  copy = map;
  copy.opaque[7] = 1;
  EXPECT_EQ(TensorMapAddress(&copy), 0u);
}

TEST(TensorMapsTest, NewestNoteCounts) {
  const CUtensorMap map = MapOf(10, 20);
  NoteTensorMap(map, 0x1000);
  NoteTensorMap(map, 0x2000);
  EXPECT_EQ(TensorMapAddress(&map), 0x2000u);
}

TEST(TensorMapsTest, SearchGoesInStepsOfSixtyFourBytesFromTheStart) {
  const CUtensorMap map = MapOf(100, 200);
  NoteTensorMap(map, 0x3000);
  alignas(64) std::vector<std::byte> bytes(1024);
  std::memcpy(bytes.data() + 16 + 3 * 64, &map, sizeof map);
  std::memcpy(bytes.data() + 16 + 6 * 64 + 8, &map, sizeof map);  // an offset where no map can be
  std::vector<std::size_t> places;
  ForEachTensorMap(bytes.data(), bytes.size(), 16, [&](std::size_t at, CUdeviceptr address) {
    EXPECT_EQ(address, 0x3000u);
    places.push_back(at);
  });
  EXPECT_EQ(places, std::vector<std::size_t>{16 + 3 * 64});
}

TEST(TensorMapsTest, MapBeyondTheEndIsIgnored) {
  const CUtensorMap map = MapOf(1000, 2000);
  NoteTensorMap(map, 0x4000);
  int found = 0;
  ForEachTensorMap(&map, sizeof map - 1, 0, [&](std::size_t, CUdeviceptr) { ++found; });
  EXPECT_EQ(found, 0);
}

TEST(TensorMapsTest, ManyMapsAreDistinguished) {
  for (std::uint64_t i = 0; i < 50'000; ++i) NoteTensorMap(MapOf(i, ~i), 0x100000 + i * 16);
  for (std::uint64_t i = 0; i < 50'000; i += 97) {
    const CUtensorMap map = MapOf(i, ~i);
    EXPECT_EQ(TensorMapAddress(&map), 0x100000 + i * 16);
  }
}

}  // namespace
}  // namespace spillway::interposer
