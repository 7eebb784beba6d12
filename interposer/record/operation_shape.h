// An operation's identity as a 64-bit number: equal in another iteration or another run.
//
// Note [Shapes]
// A hook mixes its call's properties: of a launch the function's name, grid, block and shared
// bytes, of a copy or set its kind and bytes. CallRecorder adds the stream (numbered by first use)
// and the sizes of the named ranges in order. Addresses and handles differ from run to run.
//
// Pure; any thread; a few nanoseconds.
#pragma once

#include <cstdint>

namespace spillway::interposer {

using Shape = std::uint64_t;

// The order counts. (The finalizer of MurmurHash3, A. Appleby, public domain.)
constexpr Shape MixShape(Shape shape, std::uint64_t word) {
  word ^= shape + 0x9e3779b97f4a7c15u + (shape << 6) + (shape >> 2);
  word = (word ^ word >> 33) * 0xff51afd7ed558ccdu;
  word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53u;
  return word ^ word >> 33;
}

constexpr Shape ShapeOfName(const char* name) {
  Shape shape = 0xcbf29ce484222325u;
  for (; *name; ++name) shape = (shape ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  return MixShape(shape, 0);
}

struct LaunchDimensions {
  unsigned int grid_x, grid_y, grid_z;
  unsigned int block_x, block_y, block_z;
  unsigned int shared_bytes;
};

// The products are independent: every recorded launch computes this.
constexpr Shape ShapeOfLaunch(Shape function, const LaunchDimensions& d) {
  const auto both = [](std::uint64_t high, std::uint64_t low) { return high << 32 | low; };
  return MixShape(function, both(d.grid_y, d.grid_x) * 0x9e3779b97f4a7c15u +
                                both(d.block_x, d.grid_z) * 0xc2b2ae3d27d4eb4fu +
                                both(d.block_z, d.block_y) * 0x165667b19e3779f9u +
                                d.shared_bytes * 0xd6e8feb86659fd93u);
}

// Mixed only when needed: most calls are neither recorded nor planned.
struct CallShape {
  constexpr CallShape(Shape so_far = 0) : mixed(so_far) {}
  constexpr Shape Mixed() const { return launched ? ShapeOfLaunch(kernel, *launched) : mixed; }

  Shape mixed;       // of any other call
  Shape kernel = 0;  // of a launch: its function's name
  const LaunchDimensions* launched = nullptr;
};

// The order counts.
constexpr std::uint64_t AddSize(std::uint64_t sizes, std::uint64_t size_bytes) {
  return sizes * 0x165667b19e3779f9u + size_bytes;
}

constexpr Shape ShapeOnStream(Shape call, std::uint32_t stream_number, std::uint64_t sizes) {
  return MixShape(call, sizes + stream_number * 0x9e3779b97f4a7c15u);
}

}  // namespace spillway::interposer
