#include "interposer/record/iteration_times.h"

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

void IterationTimes::Began(CUstream stream, const IterationBegin& begin) {
  const std::uint64_t iteration = begun_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t place = marked_.load(std::memory_order_relaxed);
  if (place - read_.load(std::memory_order_acquire) == kMarks) return;
  Mark& mark = marks_[place % kMarks];
  mark.iteration = iteration;
  mark.begin = begin;
  if (!mark.event && Driver().cuEventCreate(&mark.event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
    mark.event = nullptr;
  mark.is_recorded = mark.event && Driver().cuEventRecord(mark.event, stream) == CUDA_SUCCESS;
  marked_.store(place + 1, std::memory_order_release);
}

std::optional<IterationTime> IterationTimes::Next() {
  for (;;) {
    const std::uint64_t place = read_.load(std::memory_order_relaxed);
    if (marked_.load(std::memory_order_acquire) - place < 2) return {};
    const Mark& from = marks_[place % kMarks];
    const Mark& to = marks_[(place + 1) % kMarks];
    const bool has_time = from.is_recorded && to.is_recorded && to.iteration == from.iteration + 1;
    if (has_time && Driver().cuEventQuery(to.event) == CUDA_ERROR_NOT_READY) return {};
    float milliseconds = 0;
    const bool is_read = has_time && Driver().cuEventElapsedTime(&milliseconds, from.event,
                                                                 to.event) == CUDA_SUCCESS;
    const bool is_of_one =
        from.begin.pattern == to.begin.pattern && from.begin.is_planned == to.begin.is_planned;
    const IterationTime time{
        .duration_ns = static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6),
        .pattern = is_of_one ? from.begin.pattern : 0,
        .is_planned = from.begin.is_planned,
        .moved_bytes = to.begin.moved_bytes - from.begin.moved_bytes,
        .misses = to.begin.last_misses,
        .was_stopped = to.begin.last_was_stopped};
    read_.store(place + 1, std::memory_order_release);
    if (is_read) return time;
  }
}

void IterationTimes::Release() {
  for (Mark& mark : marks_) {
    if (mark.event) Driver().cuEventDestroy_v2(mark.event);
    mark = {};
  }
}

}  // namespace spillway::interposer
