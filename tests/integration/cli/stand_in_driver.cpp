// A libcuda.so.1 that answers the launcher and the doctor by the test's environment variables.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

long Setting(const char* name, long otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtol(value, nullptr, 10);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  if (std::getenv("STAND_IN_CRASH") != nullptr) std::abort();
  // Writes statistics like the simulated driver.
  if (const char* statistics = std::getenv("SPILLWAY_SIM_STATS"); statistics != nullptr) {
    if (std::FILE* file = std::fopen(statistics, "w"); file != nullptr) std::fclose(file);
  }
  return static_cast<int>(Setting("STAND_IN_INIT", 0));
}

int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(Setting("STAND_IN_VERSION", 13000));
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(Setting("STAND_IN_DEVICES", 1));
  return 0;
}

int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDeviceGetName(char* name, int capacity, int) {
  std::strncpy(name, "Stand-in", static_cast<std::size_t>(capacity));
  return 0;
}

int cuDeviceTotalMem_v2(std::size_t* size_bytes, int) {
  *size_bytes = static_cast<std::size_t>(Setting("STAND_IN_BYTES", 8L << 30));
  return 0;
}

int cuDeviceGetAttribute(int* value, int, int) {
  *value = static_cast<int>(Setting("STAND_IN_ATTRIBUTES", 1));
  return 0;
}
}
