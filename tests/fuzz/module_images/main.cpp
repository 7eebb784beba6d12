// Mutants of real modules: no reader leaves the image, and what is listed can be launched. usage:
// module_images_fuzz ROUNDS [SEED]
//
// Each image ends where unmapped memory begins, so that a read beyond it ends the program.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "simulator/driver/device/listed_image.h"
#include "simulator/driver/modules/read_module.h"
#include "tests/support/paths.h"

namespace {

using namespace spillway;

constexpr std::size_t kRoomBytes = 64 << 10;

// Memory behind which nothing is mapped.
class Room {
 public:
  Room() : memory_(Map()) {}
  const char* Put(const std::string& bytes) {
    char* const at = memory_ + kRoomBytes - bytes.size();
    std::memcpy(at, bytes.data(), bytes.size());
    return at;
  }

 private:
  static char* Map() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const memory = mmap(nullptr, kRoomBytes + page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    munmap(static_cast<char*>(memory) + kRoomBytes, page);
    return static_cast<char*>(memory);
  }

  char* const memory_;
};

// Half of the changes hit the headers.
void Mutate(std::string& bytes, std::mt19937_64& random) {
  const std::size_t reach = random() % 2 ? bytes.size() : std::min<std::size_t>(bytes.size(), 256);
  const std::size_t at = random() % reach;
  switch (random() % 5) {
    case 0:
      bytes[at] = static_cast<char>(random());
      break;
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
      break;
    case 2:
      for (std::size_t i = at / 8 * 8; i < at / 8 * 8 + 8 && i < bytes.size(); ++i)
        bytes[i] = static_cast<char>(random() % 3 ? 0xff : 0x7f);
      break;
    case 3:
      bytes.resize(at + 1);
      break;
    default:
      std::swap(bytes[at], bytes[random() % bytes.size()]);
  }
}

void Demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "module_images_fuzz: %s\n", what);
  std::abort();
}

bool Read(base::ByteView image) {
  std::optional<simulator::ModuleList> list = simulator::ReadModule(image, 90);
  if (!list) return false;
  for (const simulator::ListedKernel& kernel : list->kernels) {
    for (const simulator::KernelParameter& place : kernel.parameters)
      Demand(place.size_bytes > 0 &&
                 place.offset_bytes + place.size_bytes <= simulator::kMostParameterBytes,
             "a parameter lies outside");
  }
  for (const simulator::ListedVariable& variable : list->variables)
    if (variable.size_bytes > 1 << 20) return true;  // too long to make here
  const simulator::ListedImage listed(*std::move(list));
  for (const simulator::KernelEntry& kernel : listed.kernels())
    Demand(listed.FindKernel(kernel.name) != nullptr, "a listed kernel is not found");
  return true;
}

std::vector<std::string> Fixtures() {
  std::vector<std::string> all;
  for (const char* name : {"sm_80.cubin", "sm_90.cubin", "sm_100.cubin", "plain.fatbin",
                           "zstd.fatbin", "lz4.fatbin", "ptx_only.fatbin", "kernels.ptx"})
    all.push_back(*base::ReadFile(test::Fixture(std::string("modules/") + name)));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::atol(argv[1]) : 20'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::mt19937_64 random(seed);
  const std::vector<std::string> good = Fixtures();
  Room room;
  for (const std::string& module : good)
    Demand(Read({room.Put(module), module.size()}), "a good module is refused");
  long accepted = 0;
  for (long round = 0; round < rounds; ++round) {
    std::string bytes = good[static_cast<std::size_t>(round) % good.size()];
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) Mutate(bytes, random);
    const char* const image = room.Put(bytes);
    accepted += Read({image, bytes.size()});
    Read(simulator::ImageBytes(image));
  }
  std::printf("%ld mutants, seed %llu: %ld still readable, none left its image\n", rounds,
              static_cast<unsigned long long>(seed), accepted);
  return 0;
}
