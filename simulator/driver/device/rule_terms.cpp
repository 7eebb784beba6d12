#include "simulator/driver/device/rule_terms.h"

#include <algorithm>
#include <cstring>

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kMostTurns = 1 << 10;

std::uint32_t BytesOf(const RuledLaunch& launch, std::uint64_t parameter) {
  return parameter < launch.entry.parameter_count ? launch.entry.parameters[parameter].size_bytes
                                                  : 0;
}

std::uint64_t TypeBytes(const TypeSizes& types, const std::string& name) {
  const auto type = types.find(name);
  return type == types.end() ? 0 : type->second;
}

std::uint64_t SumOf(const RuleTerm& sum, RuleTerm::Scope scope) {
  const std::uint64_t turns = std::min(sum.left->In(scope), kMostTurns);
  std::uint64_t total = 0;
  for (scope.turn = 0; scope.turn < turns; ++scope.turn) total += sum.right->In(scope);
  return total;
}

}  // namespace

std::uint64_t NumberAt(const RuledLaunch& launch, std::uint64_t parameter,
                       std::uint64_t offset_bytes, std::uint32_t size_bytes) {
  std::uint64_t number = 0;
  if (size_bytes > sizeof(number) || parameter >= launch.entry.parameter_count) return 0;
  const std::uint64_t whole_bytes = BytesOf(launch, parameter);
  if (offset_bytes > whole_bytes || size_bytes > whole_bytes - offset_bytes) return 0;
  std::memcpy(&number, static_cast<const char*>(launch.arguments[parameter]) + offset_bytes,
              size_bytes);
  return number;
}

std::uint64_t RuleTerm::In(const Scope& scope) const {
  const LaunchShape& shape = scope.launch.shape;
  switch (kind) {
    case kNumber:
      return value;
    case kTypeBytes:
      return TypeBytes(scope.types, name);
    case kBlocks:
      return std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    case kBlocksAlong:
      return shape.grid[value];
    case kAny:
      return left->In(scope) == 0 ? 0 : 1;
    case kEach:
      return scope.each;
    case kTurn:
      return scope.turn;
    case kParameter:
      return NumberAt(scope.launch, value, 0, BytesOf(scope.launch, value));
    case kBytes:
      return BytesOf(scope.launch, value);
    case kWord:
      return NumberAt(scope.launch, value, left->In(scope) * width_bytes, width_bytes);
    case kSum:
      return SumOf(*this, scope);
    default:
      break;
  }
  const std::uint64_t a = left->In(scope), b = right->In(scope);
  if (kind == kAdd) return a + b;
  if (kind == kSubtract) return a - b;
  if (kind == kMultiply) return a * b;
  if (kind == kSmaller) return std::min(a, b);
  return b == 0 ? 0 : a / b;
}

}  // namespace spillway::simulator
