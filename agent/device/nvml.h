// NVIDIA's management library, opened at run time. Used on one thread at a time. A missing or
// failing library means no devices.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/device_processes.h"
#include "agent/node/table/node_facts.h"
#include "base/nvml_abi.h"

namespace spillway::agent {

class Nvml {
 public:
  static constexpr char kLibrary[] = "libnvidia-ml.so.1";

  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  bool is_installed() const { return library_ != nullptr; }
  bool works() const { return works_; }

  std::vector<NodeDevice> List() const;
  // Of all processes, also foreign ones, by UUID. A device that does not answer is left out.
  std::map<std::string, int64_t> UsedBytes() const;

  // Without commands, groups and limits. How busy: nvmlDeviceGetUtilizationRates.
  DeviceProcesses UsedByProcesses() const;
  // Of a control group's folder. nullopt: the driver does not tell. One before r615 has none. Never
  // tried with a real driver.
  std::optional<NativeLimits> LimitsOf(const std::string& uuid, const std::string& group) const;
  // The same by NVML's codes, of which kFunctionNotFound stands for a missing function,
  // kUninitialized for a library that does not work.
  nvml::Result ReadLimits(const std::string& uuid, const std::string& group,
                          NativeLimits& limits) const;
  nvml::Result SetLimits(const std::string& uuid, const std::string& group,
                         const NativeLimits& limits) const;

 private:
  struct Found {
    nvml::Device handle = nullptr;
    std::string uuid;
    nvml::Memory memory{};
  };
  std::vector<Found> Find() const;
  std::string BusIdOf(nvml::Device handle) const;
  nvml::Result Find(const std::string& uuid, nvml::Device& device) const;
  template <class Function>
  bool Get(Function*& function, const char* name);

  void* const library_;
  bool works_ = false;
  nvml::Result (*init_)() = nullptr;
  nvml::Result (*shutdown_)() = nullptr;
  nvml::Result (*count_)(unsigned*) = nullptr;
  nvml::Result (*handle_)(unsigned, nvml::Device*) = nullptr;
  nvml::Result (*uuid_)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Result (*memory_)(nvml::Device, nvml::Memory*) = nullptr;
  nvml::Result (*name_)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Result (*processes_)(nvml::Device, unsigned*, nvml::Process*) = nullptr;  // may be missing
  nvml::Result (*by_uuid_)(const char*, nvml::Device*) = nullptr;                 // may be missing
  nvml::Result (*utilization_)(nvml::Device, nvml::Utilization*) = nullptr;       // may be missing
  nvml::Result (*limits_)(nvml::Device, nvml::MemoryLimits*) = nullptr;           // may be missing
  nvml::Result (*set_limits_)(nvml::Device, nvml::NewMemoryLimits*) = nullptr;    // may be missing
  nvml::Result (*pci_)(nvml::Device, nvml::PciInfo*) = nullptr;                   // may be missing
};

}  // namespace spillway::agent
