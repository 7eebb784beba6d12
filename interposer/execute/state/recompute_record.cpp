#include "interposer/execute/state/recompute_record.h"

#include <algorithm>
#include <cstring>

#include "interposer/driver/driver_api.h"
#include "interposer/ledger/tensor_maps.h"

namespace spillway::interposer {
namespace {

using driver::Driver;

constexpr std::size_t kAlignment = 16;  // the strictest of any parameter

// Numbers that place blocks: no handles, no addresses, nothing about other launches.
bool IsPlain(const CUlaunchAttribute& attribute) {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      return attribute.value.cooperative == 0;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      return attribute.value.programmaticStreamSerializationAllowed == 0;
    default:
      return false;
  }
}

}  // namespace

std::optional<RecordedLaunch> RecordedLaunch::Of(const LaunchCall& call) {
  RecordedLaunch made;
  made.function_ = call.function;
  made.dimensions_ = call.dimensions;
  made.is_extended_ = call.config != nullptr;
  if (call.config) {
    made.attributes_.assign(call.config->attrs, call.config->attrs + call.config->numAttrs);
    if (!std::all_of(made.attributes_.begin(), made.attributes_.end(), IsPlain))
      return std::nullopt;
  }
  std::size_t end = 0;
  for (const std::uint32_t bytes : call.parameter_bytes) {
    const std::size_t offset = (end + kAlignment - 1) / kAlignment * kAlignment;
    made.parameters_.push_back({offset, bytes});
    end = offset + bytes;
  }
  made.bytes_.resize(end);
  for (std::size_t i = 0; i < made.parameters_.size(); ++i)
    std::memcpy(made.bytes_.data() + made.parameters_[i].offset, call.parameters[i],
                made.parameters_[i].bytes);
  for (const UnreadBytes& unread : call.unread) {
    const std::size_t at = made.parameters_[unread.parameter].offset + unread.offset;
    if (!unread.is_host_pointer) std::memset(made.bytes_.data() + at, 0, unread.bytes);
  }
  return made;
}

// In the steps in which launches are scanned for addresses (entry/parameter_scan.h).
template <class Visit>
void RecordedLaunch::ForEachWord(Visit visit) const {
  constexpr std::size_t kStepBytes = 4;
  for (const Parameter& parameter : parameters_) {
    for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= parameter.bytes; at += kStepBytes) {
      CUdeviceptr word;
      std::memcpy(&word, bytes_.data() + parameter.offset + at, sizeof word);
      visit(parameter.offset + at, word);
    }
  }
}

bool RecordedLaunch::Move(CUdeviceptr begin, CUdeviceptr end, CUdeviceptr to) {
  base::InlineVector<std::size_t, 8> places;
  bool may_be_number = false;
  ForEachWord([&](std::size_t place, CUdeviceptr word) {
    if (word == begin) places.push_back(place);
    may_be_number = may_be_number || (word > begin && word < end);
  });
  for (const std::size_t place : places) std::memcpy(bytes_.data() + place, &to, sizeof to);
  return !may_be_number && !IsMapped(begin, end);
}

bool RecordedLaunch::IsMapped(CUdeviceptr begin, CUdeviceptr end) const {
  bool is_mapped = false;
  const auto look = [&](std::size_t, CUdeviceptr address) {
    is_mapped = is_mapped || (address >= begin && address < end);
  };
  for (const Parameter& parameter : parameters_)
    ForEachTensorMap(bytes_.data() + parameter.offset, parameter.bytes, 0, look);
  return is_mapped;
}

bool RecordedLaunch::LeadsInto(CUdeviceptr begin, CUdeviceptr end) const {
  return AnyWord([=](CUdeviceptr word) { return word >= begin && word < end; });
}

bool RecordedLaunch::AnyWord(base::FunctionRef<bool(CUdeviceptr)> accepts) const {
  bool any = false;
  ForEachWord([&](std::size_t, CUdeviceptr word) { any = any || accepts(word); });
  return any;
}

// Libraries set a kernel's shared memory limit per launch: it may be too low by now.
CUresult RecordedLaunch::LaunchOn(CUstream stream) {
  const CUresult result = LaunchAsAllowedOn(stream);
  const int shared_bytes = static_cast<int>(dimensions_.shared_bytes);
  const bool may_allow = result == CUDA_ERROR_INVALID_VALUE && shared_bytes > 0;
  if (!may_allow || AllowSharedMemory(shared_bytes) != CUDA_SUCCESS) return result;
  return LaunchAsAllowedOn(stream);
}

// A launch takes a library's kernel in place of a function; cuFuncSetAttribute does not.
CUresult RecordedLaunch::AllowSharedMemory(int bytes) const {
  CUfunction function = function_, of_kernel = nullptr;
  const auto kernel = reinterpret_cast<CUkernel>(function_);
  if (Driver().cuKernelGetFunction &&
      Driver().cuKernelGetFunction(&of_kernel, kernel) == CUDA_SUCCESS)
    function = of_kernel;
  if (!Driver().cuFuncSetAttribute) return CUDA_ERROR_NOT_SUPPORTED;
  return Driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     bytes);
}

CUresult RecordedLaunch::LaunchAsAllowedOn(CUstream stream) {
  std::vector<void*> parameters;
  for (const Parameter& parameter : parameters_)
    parameters.push_back(bytes_.data() + parameter.offset);
  const LaunchDimensions& d = dimensions_;
  if (!is_extended_)
    return Driver().cuLaunchKernel(function_, d.grid_x, d.grid_y, d.grid_z, d.block_x, d.block_y,
                                   d.block_z, d.shared_bytes, stream, parameters.data(), nullptr);
  CUlaunchConfig config{};
  config.gridDimX = d.grid_x;
  config.gridDimY = d.grid_y;
  config.gridDimZ = d.grid_z;
  config.blockDimX = d.block_x;
  config.blockDimY = d.block_y;
  config.blockDimZ = d.block_z;
  config.sharedMemBytes = d.shared_bytes;
  config.hStream = stream;
  config.attrs = attributes_.data();
  config.numAttrs = static_cast<unsigned int>(attributes_.size());
  return Driver().cuLaunchKernelEx(&config, function_, parameters.data(), nullptr);
}

bool FillOutput(const RecomputeRecord& record, const StreamState* stream) {
  const Range& output = *record.output;
  return !record.is_filled || Driver().cuMemsetD8Async(output.base, 0, output.requested_bytes,
                                                       stream->handle) == CUDA_SUCCESS;
}

}  // namespace spillway::interposer
