#include "agent/device/device_list.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

#include "base/nvml_abi.h"

namespace spillway::agent {
namespace {

constexpr char kLibrary[] = "libnvidia-ml.so.1";
constexpr unsigned kTextBytes = 96;

// The few functions of NVML that this needs, while the library is open.
class Nvml {
 public:
  Nvml() : library_(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    works_ = Get(init_, "nvmlInit_v2") && Get(shutdown_, "nvmlShutdown") &&
             Get(count_, "nvmlDeviceGetCount_v2") && Get(handle_, "nvmlDeviceGetHandleByIndex_v2") &&
             Get(uuid_, "nvmlDeviceGetUUID") && Get(memory_, "nvmlDeviceGetMemoryInfo") &&
             Get(name_, "nvmlDeviceGetName") && init_() == nvml::kSuccess;
    Get(pci_, "nvmlDeviceGetPciInfo_v3");
  }
  ~Nvml() {
    if (works_) shutdown_();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool is_installed() const { return library_ != nullptr; }
  bool works() const { return works_; }

  std::vector<NodeDevice> List() const {
    std::vector<NodeDevice> devices;
    unsigned count = 0;
    if (!works_ || count_(&count) != nvml::kSuccess) return devices;
    for (unsigned i = 0; i < count; ++i) {
      nvml::Device handle = nullptr;
      nvml::Memory memory{};
      char uuid[kTextBytes] = {}, name[kTextBytes] = {};
      if (handle_(i, &handle) != nvml::kSuccess || uuid_(handle, uuid, kTextBytes) != nvml::kSuccess ||
          memory_(handle, &memory) != nvml::kSuccess)
        continue;
      name_(handle, name, kTextBytes);
      NodeDevice device{{}, uuid, name, static_cast<int64_t>(memory.total), BusIdOf(handle)};
      if (ParseUuid(device.name, &device.uuid)) devices.push_back(device);
    }
    return devices;
  }

 private:
  std::string BusIdOf(nvml::Device handle) const {
    nvml::PciInfo place{};
    return pci_ != nullptr && pci_(handle, &place) == nvml::kSuccess ? place.bus_id : "";
  }
  template <class Function>
  bool Get(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    return function != nullptr;
  }

  void* library_;
  bool works_ = false;
  nvml::Result (*init_)() = nullptr;
  nvml::Result (*shutdown_)() = nullptr;
  nvml::Result (*count_)(unsigned*) = nullptr;
  nvml::Result (*handle_)(unsigned, nvml::Device*) = nullptr;
  nvml::Result (*uuid_)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Result (*memory_)(nvml::Device, nvml::Memory*) = nullptr;
  nvml::Result (*name_)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Result (*pci_)(nvml::Device, nvml::PciInfo*) = nullptr;  // may be missing
};

}  // namespace

bool ParseUuid(const std::string& text, protocol::DeviceUuid* out) {
  if (text.rfind("GPU-", 0) != 0) return false;
  size_t digits = 0;
  *out = {};
  for (char c : text.substr(4)) {
    if (c == '-') continue;
    if (!std::isxdigit(static_cast<unsigned char>(c)) || digits >= 2 * out->size()) return false;
    const int value = std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : std::tolower(c) - 'a' + 10;
    (*out)[digits / 2] = static_cast<uint8_t>((*out)[digits / 2] << 4 | value);
    ++digits;
  }
  return digits == 2 * out->size();
}

std::vector<NodeDevice> ListDevices(const Config& config, std::vector<std::string>* problems) {
  std::vector<NodeDevice> devices;
  if (config.find_devices) {
    const Nvml nvml;
    devices = nvml.List();
    if (devices.empty() && config.devices.empty())
      problems->push_back(!nvml.is_installed() ? std::string(kLibrary) + " is not installed"
                          : !nvml.works()      ? std::string(kLibrary) + " does not work"
                                               : "NVML knows no device");
  }
  for (const DeviceSetting& setting : config.devices) {
    NodeDevice device{{}, setting.uuid, "", setting.memory_bytes};
    if (!ParseUuid(setting.uuid, &device.uuid)) {
      problems->push_back("'" + setting.uuid + "' is no UUID like GPU-12345678-1234-1234-1234-123456789abc");
      continue;
    }
    const auto same = std::find_if(devices.begin(), devices.end(),
                                   [&](const NodeDevice& known) { return known.uuid == device.uuid; });
    if (same == devices.end()) {
      devices.push_back(device);
    } else {
      same->memory_bytes = std::min(same->memory_bytes, device.memory_bytes);
    }
  }
  return devices;
}

}  // namespace spillway::agent
