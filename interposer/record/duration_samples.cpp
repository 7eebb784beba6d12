#include "interposer/record/duration_samples.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

namespace {

bool RecordOn(CUstream stream, CUevent* event) {
  if (!*event && Driver().cuEventCreate(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
  return Driver().cuEventRecord(*event, stream) == CUDA_SUCCESS;
}

void Destroy(CUevent* event) {
  if (*event) Driver().cuEventDestroy_v2(*event);
  *event = nullptr;
}

}  // namespace

void DurationSamples::Before(CUstream stream, Sample* sample) {
  const std::uint32_t number = taken_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number > most_.load(std::memory_order_acquire)) return;
  Pair* const pair = At(number);
  pair->is_whole.store(false, std::memory_order_relaxed);
  if (RecordOn(stream, &pair->before)) sample->number = number;
}

void DurationSamples::After(CUstream stream, const Sample& sample) {
  if (sample.number == 0) return;
  Pair* const pair = At(sample.number);
  if (RecordOn(stream, &pair->after)) pair->is_whole.store(true, std::memory_order_release);
}

void DurationSamples::Start(std::uint32_t most) {
  most = std::min(most, kMost);
  for (std::uint32_t block = 0; block * kBlockPairs < most; ++block) {
    if (!blocks_[block]) blocks_[block].store(new Pair[kBlockPairs], std::memory_order_release);
  }
  taken_.store(0, std::memory_order_relaxed);
  most_.store(most, std::memory_order_release);
  on_.store(true, std::memory_order_release);
}

std::uint32_t DurationSamples::taken() const {
  return std::min(taken_.load(std::memory_order_relaxed), most_.load(std::memory_order_relaxed));
}

DurationSamples::State DurationSamples::Read(std::uint32_t number, std::int64_t* duration_ns) {
  Pair* const pair = At(number);
  if (!pair->is_whole.load(std::memory_order_acquire)) return State::kLost;
  const CUresult state = Driver().cuEventQuery(pair->after);
  if (state == CUDA_ERROR_NOT_READY) return State::kNotYet;
  float milliseconds = 0;
  if (state != CUDA_SUCCESS ||
      Driver().cuEventElapsedTime(&milliseconds, pair->before, pair->after) != CUDA_SUCCESS)
    return State::kLost;
  *duration_ns = static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
  return State::kRead;
}

std::int64_t DurationSamples::SpanNs(std::uint32_t first, std::uint32_t last) {
  float milliseconds = 0;
  const bool is_read = first != 0 && last != 0 &&
                       Driver().cuEventElapsedTime(&milliseconds, At(first)->before,
                                                   At(last)->after) == CUDA_SUCCESS;
  return is_read ? static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6) : 0;
}

void DurationSamples::Release() {
  most_.store(0, std::memory_order_release);
  for (auto& block : blocks_) {
    Pair* const pairs = block.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; pairs && i < kBlockPairs; ++i) {
      Destroy(&pairs[i].before);
      Destroy(&pairs[i].after);
    }
  }
}

}  // namespace spillway::interposer
