// Runs the fuzzer's entry on mutants of good files, without an engine. usage: trace_reader_fuzz
// ROUNDS [SEED]
#include <cstdio>
#include <cstdlib>
#include <random>

#include "scheduler/trace/file/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using namespace spillway::scheduler;

std::vector<uint8_t> GoodProfile() {
  IterationProfile profile;
  profile.name = "small";
  profile.batch_size = 4;
  for (int i = 0; i < 6; ++i) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(i);
    buffer.size_bytes = 100 + i;
    buffer.persistent = i < 2;
    buffer.kind = i < 2 ? BufferKind::kParameter : BufferKind::kActivation;
    profile.buffers.push_back(buffer);
  }
  for (int i = 0; i < 5; ++i) {
    Operation operation;
    operation.name = "o" + std::to_string(i);
    operation.duration_ns = 10 * i;
    operation.replayable = i % 2 == 0;
    if (i > 0) operation.reads = {{i}};
    operation.writes = {{i + 1}};
    operation.workspaces = {{"none", 0, 10}, {"some", 64, 5}};
    profile.operations.push_back(operation);
  }
  SetLifetimesToTouches(profile);
  return WriteProfile(profile);
}

std::vector<uint8_t> GoodTrace() {
  EventTrace trace{"job", {"gemm", "relu"}, {}};
  for (int i = 0; i < 6; ++i) {
    trace.events.push_back({EventKind::kAllocate, 10 * i, i, 64 + i, -1, 0, 0, {}});
    trace.events.push_back(
        {EventKind::kOperation, 10 * i + 1, -1, 0, i % 2, 0, 7, {{i, i % 2 == 0, true}}});
    if (i % 3 == 2) trace.events.push_back({EventKind::kFree, 10 * i + 2, i - 1, 0, -1, 0, 0, {}});
  }
  return WriteTrace(trace);
}

// A byte, a word that is small, huge or negative, a piece cut off or moved.
void Mutate(std::vector<uint8_t>& bytes, std::mt19937_64& bits) {
  const size_t at = bits() % bytes.size();
  switch (bits() % 5) {
    case 0:
      bytes[at] = static_cast<uint8_t>(bits());
      break;
    case 1:
      bytes[at] ^= static_cast<uint8_t>(1u << bits() % 8);
      break;
    case 2:
      for (size_t i = at / 4 * 4; i < at / 4 * 4 + 4 && i < bytes.size(); ++i)
        bytes[i] = bits() % 3 ? 0xFF : 0x7F;
      break;
    case 3:
      bytes.resize(std::max<size_t>(1, at));
      break;
    default:
      std::swap(bytes[at], bytes[bits() % bytes.size()]);
      break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::atol(argv[1]) : 10'000;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::mt19937_64 bits(seed);
  const std::vector<uint8_t> good[] = {GoodProfile(), GoodTrace()};
  for (const std::vector<uint8_t>& file : good) LLVMFuzzerTestOneInput(file.data(), file.size());
  for (long round = 0; round < rounds; ++round) {
    std::vector<uint8_t> bytes = good[round % 2];
    for (uint64_t changes = 1 + bits() % 4; changes > 0; --changes) Mutate(bytes, bits);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%ld mutants, seed %llu: nothing got through\n", rounds,
              static_cast<unsigned long long>(seed));
  return 0;
}
