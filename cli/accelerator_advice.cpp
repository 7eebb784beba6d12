// Explains errors of a starting driver.
#include "cli/accelerator_probe.h"

namespace spillway::cli {
namespace {

struct Entry {
  int driver_result;
  const char* meaning;
  const char* remedy;
};

// From CUresult in the CUDA driver API reference.
constexpr Entry kEntries[] = {
    {2, "the driver could not get the memory it needs to start (CUDA_ERROR_OUT_OF_MEMORY)",
     "see what holds the device's memory with nvidia-smi, and this session's limits with ulimit "
     "-a"},
    {34, "this libcuda.so.1 is the toolkit's stub, made for linking only (CUDA_ERROR_STUB_LIBRARY)",
     "take the toolkit's lib64/stubs out of LD_LIBRARY_PATH; the real one comes with the NVIDIA "
     "driver"},
    {35, "the driver is older than the CUDA version asked of it", "install a newer NVIDIA driver"},
    {46, "every device is busy or unavailable (CUDA_ERROR_DEVICE_UNAVAILABLE)",
     "another process may hold it in exclusive mode: see nvidia-smi"},
    {100, "no CUDA device is visible (CUDA_ERROR_NO_DEVICE)",
     "look at nvidia-smi and at CUDA_VISIBLE_DEVICES; in a container, start it with the GPU passed "
     "in"},
    {101, "the device asked for does not exist (CUDA_ERROR_INVALID_DEVICE)",
     "look at CUDA_VISIBLE_DEVICES"},
    {802, "the system is not ready (CUDA_ERROR_SYSTEM_NOT_READY)",
     "on NVSwitch machines start nvidia-fabricmanager, then run again"},
    {803,
     "the driver library and the kernel module differ in version "
     "(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)",
     "reload the kernel module or reboot after the driver update"},
    {804,
     "the compatibility package does not support this device "
     "(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)",
     "take the cuda-compat folder out of LD_LIBRARY_PATH"},
    {999, "the driver failed for a reason it does not name (CUDA_ERROR_UNKNOWN)",
     "look at dmesg for NVRM lines; nvidia-modprobe -u -c=0 makes missing device files"},
};

}  // namespace

std::string DriverVersionText(int driver_version) {
  return std::to_string(driver_version / 1000) + "." + std::to_string(driver_version % 1000 / 10);
}

DriverResultAdvice AdviceForDriverResult(int driver_result) {
  for (const Entry& entry : kEntries) {
    if (entry.driver_result == driver_result) return {entry.meaning, entry.remedy};
  }
  return {"the driver answered CUresult " + std::to_string(driver_result),
          "look the code up under CUresult in the CUDA driver API reference, and at dmesg"};
}

}  // namespace spillway::cli
