// A checked kernel launch with its own copy of the parameters. A stream runs one at once; a graph
// keeps one per kernel node.
#pragma once

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "simulator/driver/calls/call.h"

namespace spillway::simulator {

class Arguments {
 public:
  explicit Arguments(const KernelEntry& entry);

  void CopyEach(void* const* parameters);
  void CopyPacked(const void* buffer, std::size_t size_bytes);

  void* const* pointers() const { return pointers_.data(); }
  std::vector<std::uint64_t> Words() const;
  // With their offsets; zeros are left out.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> AlignedWords() const;

 private:
  struct Freer {
    void operator()(char* buffer) const { std::free(buffer); }
  };

  const KernelEntry& entry_;
  std::size_t bytes_ = 0;
  std::unique_ptr<char, Freer> buffer_;
  std::vector<void*> pointers_;
};

enum class Blocks { kAnyNumber, kAllResident };

struct KernelLaunch {
  void* handle;  // CUfunction or CUkernel
  const KernelEntry* entry;
  LaunchShape shape;
  std::shared_ptr<const Arguments> arguments;
  std::uint64_t multiprocessors;
  // From the image, or from the program's file. With both null the memory use is unknown.
  KernelUses uses = nullptr;
  const DeclaredKernel* declared = nullptr;
  bool writes_tags = false;             // instead of running
  bool is_listed = false;               // without a body: updates all that it names, if not known
  std::vector<NamedMemory> named = {};  // once the program has launched a kernel without a body
};

KernelLaunch DescribeLaunch(Call& call, const void* handle, const LaunchShape& shape,
                            void* const* parameters, void* const* extra, Blocks blocks);
Operation MakeLaunch(Simulator& sim, const KernelLaunch& launch);

}  // namespace spillway::simulator
