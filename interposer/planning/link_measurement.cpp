#include "interposer/planning/link_measurement.h"

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/host_memory.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr std::size_t kBytes = std::size_t{8} << 20;  // of each copy
// In a row each way: copies both ways at once overlap only if they take longer than enqueueing
// them.
constexpr int kCopies = 4;

// One stream and one buffer on either side for each direction.
class Link {
 public:
  explicit Link(JobMemory* memory) : memory_(memory) {
    is_charged_ = memory_->charges().Charge(2 * kBytes);
    is_ready_ = is_charged_ && Driver().cuMemAlloc_v2(&device_, 2 * kBytes) == CUDA_SUCCESS &&
                (host_ = driver::NewPinnedHostMemory(2 * kBytes)) && Make(&out_) && Make(&in_);
  }
  ~Link() {
    Delete(&out_);
    Delete(&in_);
    if (host_) driver::DeleteHostMemory(*host_);
    if (device_) Driver().cuMemFree_v2(device_);
    if (is_charged_) memory_->charges().Discharge(2 * kBytes);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  bool is_ready() const { return is_ready_; }

  bool ToHost(std::int64_t* rate) { return CopyOut() && End(&out_) && Read(out_, rate); }
  bool ToDevice(std::int64_t* rate) { return CopyIn() && End(&in_) && Read(in_, rate); }
  bool Both(std::int64_t* to_host, std::int64_t* to_device) {
    return CopyOut() && CopyIn() && End(&out_) && End(&in_) && Read(out_, to_host) &&
           Read(in_, to_device);
  }

 private:
  struct Direction {
    CUstream stream = nullptr;
    CUevent began = nullptr, ended = nullptr;
  };
  static bool Make(Direction* way) {
    return Driver().cuStreamCreate(&way->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
           Driver().cuEventCreate(&way->began, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
           Driver().cuEventCreate(&way->ended, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
  }
  static void Delete(Direction* way) {
    if (way->began) Driver().cuEventDestroy_v2(way->began);
    if (way->ended) Driver().cuEventDestroy_v2(way->ended);
    if (way->stream) Driver().cuStreamDestroy_v2(way->stream);
  }
  static bool Begin(Direction* way) {
    return Driver().cuEventRecord(way->began, way->stream) == CUDA_SUCCESS;
  }
  static bool End(Direction* way) {
    return Driver().cuEventRecord(way->ended, way->stream) == CUDA_SUCCESS;
  }
  bool CopyOut() {
    bool is_queued = Begin(&out_);
    for (int i = 0; i < kCopies; ++i)
      is_queued = is_queued && Driver().cuMemcpyDtoHAsync_v2(host_->data, device_, kBytes,
                                                             out_.stream) == CUDA_SUCCESS;
    return is_queued;
  }
  bool CopyIn() {
    std::byte* const source = static_cast<std::byte*>(host_->data) + kBytes;
    bool is_queued = Begin(&in_);
    for (int i = 0; i < kCopies; ++i)
      is_queued = is_queued && Driver().cuMemcpyHtoDAsync_v2(device_ + kBytes, source, kBytes,
                                                             in_.stream) == CUDA_SUCCESS;
    return is_queued;
  }
  static bool Read(const Direction& way, std::int64_t* bytes_per_second) {
    float milliseconds = 0;
    if (Driver().cuEventSynchronize(way.ended) != CUDA_SUCCESS ||
        Driver().cuEventElapsedTime(&milliseconds, way.began, way.ended) != CUDA_SUCCESS ||
        milliseconds <= 0)
      return false;
    *bytes_per_second = static_cast<std::int64_t>(static_cast<double>(kCopies * kBytes) * 1e3 /
                                                  static_cast<double>(milliseconds));
    return true;
  }

  JobMemory* const memory_;
  bool is_charged_ = false, is_ready_ = false;
  CUdeviceptr device_ = 0;
  std::optional<driver::HostMemory> host_;
  Direction out_, in_;
};

}  // namespace

// The first copies each way warm up: their result is overwritten. Those of both ways at once may
// miss each other in part, and then look faster than alone (H100); a model of a link that is faster
// while it is shared has no valid plans.
std::optional<scheduler::DeviceModel> WithMeasuredLink(JobMemory* memory,
                                                       scheduler::DeviceModel model) {
  Link link(memory);
  const bool is_measured =
      link.is_ready() && link.ToHost(&model.to_host_bytes_per_second) &&
      link.ToDevice(&model.to_device_bytes_per_second) &&
      link.ToHost(&model.to_host_bytes_per_second) &&
      link.ToDevice(&model.to_device_bytes_per_second) &&
      link.Both(&model.to_host_both_bytes_per_second, &model.to_device_both_bytes_per_second);
  if (!is_measured) return std::nullopt;
  const auto limit = [](std::int64_t* both, std::int64_t alone) { *both = std::min(*both, alone); };
  limit(&model.to_host_both_bytes_per_second, model.to_host_bytes_per_second);
  limit(&model.to_device_both_bytes_per_second, model.to_device_bytes_per_second);
  return model;
}

}  // namespace spillway::interposer
