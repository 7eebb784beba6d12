#include "scheduler/plan/copy_engines.h"

#include <algorithm>

#include "base/units.h"

namespace spillway::scheduler {
namespace {

constexpr int64_t kWorkPerByte = 1024;

}  // namespace

CopyEngines::CopyEngines(const DeviceModel& device) : latency_ns_(device.copy_latency_ns) {
  const auto share = [&](int64_t rate) {
    return base::scale(rate, device.link_share_permille, 1000);
  };
  alone_bytes_per_second_ = {share(device.to_host_bytes_per_second),
                             share(device.to_device_bytes_per_second)};
  both_bytes_per_second_ = {share(device.to_host_both_bytes_per_second),
                            share(device.to_device_both_bytes_per_second)};
}

void CopyEngines::Start(Direction direction, BufferId buffer, int64_t size_bytes, int64_t now_ns,
                        int64_t start_ns) {
  Advance(now_ns);
  running(direction) = {true, buffer, start_ns, start_ns - now_ns + latency_ns_,
                        size_bytes * kWorkPerByte};
}

int64_t CopyEngines::rate(Direction direction) const {
  const bool both = copies_[0].busy && copies_[1].busy;
  return (both ? both_bytes_per_second_ : alone_bytes_per_second_)[static_cast<size_t>(direction)];
}

int64_t CopyEngines::end_ns(Direction direction) const {
  const Copy& copy = running(direction);
  if (!copy.busy) return kNeverNs;
  const int64_t copy_ns = base::transfer_ns(copy.work_left, rate(direction) * kWorkPerByte);
  const int64_t from_ns = clock_ns_ + copy.latency_left_ns;
  return copy_ns > kNeverNs - from_ns ? kNeverNs : from_ns + copy_ns;
}

int64_t CopyEngines::NextEndNs() const {
  return std::min(end_ns(Direction::kToHost), end_ns(Direction::kToDevice));
}

void CopyEngines::Advance(int64_t now_ns) {
  for (Direction direction : {Direction::kToHost, Direction::kToDevice}) {
    Copy& copy = running(direction);
    if (!copy.busy) continue;
    const int64_t waited_ns = std::min(now_ns - clock_ns_, copy.latency_left_ns);
    copy.latency_left_ns -= waited_ns;
    const int64_t copied_ns = now_ns - clock_ns_ - waited_ns;
    copy.work_left = std::max<int64_t>(
        0, copy.work_left - base::transferred_bytes(copied_ns, rate(direction) * kWorkPerByte));
  }
  clock_ns_ = std::max(clock_ns_, now_ns);
}

Direction CopyEngines::FinishNext() {
  const int64_t to_host_ns = end_ns(Direction::kToHost);
  const int64_t to_device_ns = end_ns(Direction::kToDevice);
  const Direction first = to_host_ns <= to_device_ns ? Direction::kToHost : Direction::kToDevice;
  Advance(std::min(to_host_ns, to_device_ns));
  running(first).busy = false;
  return first;
}

}  // namespace spillway::scheduler
