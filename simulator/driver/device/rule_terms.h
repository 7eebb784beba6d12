// Numbers in the rules of kernels (declared_uses.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "simulator/driver/device/name_pattern.h"
#include "simulator/driver/device/named_memory.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator {

struct RuledLaunch {
  const KernelEntry& entry;
  const LaunchShape& shape;
  void* const* arguments;
  std::span<const NamedMemory> named = {};  // in kernels without a body, or that need it
};

struct RuleTerm {
  enum Kind : char {
    kNumber,
    kTypeBytes,    // of the type `name`
    kBlocks,       // in all
    kBlocksAlong,  // the dimension `value` of the grid
    kEach,         // the number of the repeated use
    kTurn,         // the number of the turn in a sum
    kParameter,    // parameter `value`
    kBytes,        // of the parameter `value`
    kWord,         // word `left` of the parameter `value`, counted in words of `width_bytes`
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kSmaller,  // of `left` and `right`
    kAny,      // 1 unless `left` is 0
    kSum,      // of `right` over the turns 0 to `left` - 1
  };
  struct Scope {
    const RuledLaunch& launch;
    const TypeSizes& types;
    std::uint64_t each = 0;
    std::uint64_t turn = 0;
  };

  Kind kind = kNumber;
  std::uint64_t value = 0;
  std::uint32_t width_bytes = 4;
  std::string name = {};
  std::shared_ptr<const RuleTerm> left = {};
  std::shared_ptr<const RuleTerm> right = {};

  // Words beyond a parameter are 0, and so is a number divided by 0. A sum has at most 2^10 turns.
  std::uint64_t In(const Scope& scope) const;
};

using RuleTermRef = std::shared_ptr<const RuleTerm>;

// From `offset_bytes` on; 0 if they are not all there.
std::uint64_t NumberAt(const RuledLaunch& launch, std::uint64_t parameter,
                       std::uint64_t offset_bytes, std::uint32_t size_bytes);

}  // namespace spillway::simulator
