// A launch with parameters of given sizes, whose bytes are garbage until a test sets them: as in a
// table of which a program fills only the entries that it needs.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "simulator/driver/device/declared_uses.h"

namespace spillway::simulator {

class FakeLaunch {
 public:
  explicit FakeLaunch(std::initializer_list<std::uint32_t> sizes, LaunchShape shape = kOneBlock)
      : shape_(shape) {
    std::uint32_t offset_bytes = 0;
    for (const std::uint32_t size_bytes : sizes) {
      offset_bytes = (offset_bytes + 7) / 8 * 8;
      parameters_.push_back({offset_bytes, size_bytes});
      offset_bytes += size_bytes;
    }
    bytes_.assign(offset_bytes, static_cast<char>(0xdb));
  }

  template <class Number>
  FakeLaunch& Set(std::size_t parameter, std::size_t word, Number number) {
    std::memcpy(bytes_.data() + parameters_[parameter].offset_bytes + word * sizeof number, &number,
                sizeof number);
    return *this;
  }
  FakeLaunch& Set32(std::size_t parameter, std::initializer_list<std::uint32_t> words,
                    std::size_t first = 0) {
    for (const std::uint32_t word : words) Set(parameter, first++, word);
    return *this;
  }
  FakeLaunch& Set64(std::size_t parameter, std::initializer_list<std::uint64_t> words,
                    std::size_t first = 0) {
    for (const std::uint64_t word : words) Set(parameter, first++, word);
    return *this;
  }
  FakeLaunch& Clear(std::size_t parameter) {
    std::memset(bytes_.data() + parameters_[parameter].offset_bytes, 0,
                parameters_[parameter].size_bytes);
    return *this;
  }

  KernelEffect Describe(const DeclaredKernel& kernel) {
    std::vector<void*> arguments;
    for (const KernelParameter& place : parameters_)
      arguments.push_back(bytes_.data() + place.offset_bytes);
    const KernelEntry entry{"kernel", nullptr, nullptr,
                            static_cast<std::uint32_t>(parameters_.size()), parameters_.data()};
    return kernel.Describe({entry, shape_, arguments.data()});
  }

 private:
  static constexpr LaunchShape kOneBlock = {{1, 1, 1}, {128, 1, 1}, 0};

  const LaunchShape shape_;
  std::vector<KernelParameter> parameters_;
  std::vector<char> bytes_;
};

// "w 1000 64": writes 64 bytes at 0x1000. Uses without memory or bytes are left out.
inline std::vector<std::string> TextsOf(const KernelEffect& effect) {
  constexpr const char* kKinds = "rwucpf";
  std::vector<std::string> texts;
  for (const KernelUse& use : effect.uses) {
    if (use.pointer == nullptr || use.size_bytes == 0) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%c %zx %llu", kKinds[static_cast<int>(use.kind)],
                  reinterpret_cast<std::size_t>(use.pointer),
                  static_cast<unsigned long long>(use.size_bytes));
    texts.emplace_back(text);
  }
  return texts;
}

}  // namespace spillway::simulator
