#include "interposer/driver/driver_api.h"

#include <new>

#include "interposer/driver/driver_loader.h"

namespace spillway::driver {
namespace {

// A function of any driver signature that returns one fixed error.
template <CUresult kAnswer, typename Function>
struct Stub;

template <CUresult kAnswer, typename... Arguments>
struct Stub<kAnswer, CUresult (*)(Arguments...)> {
  static CUresult Call(Arguments...) { return kAnswer; }
};

constexpr DriverApi StubApi() {
  DriverApi api{};
#define SPILLWAY_HOOK(name, ...) api.name = &Stub<kNoDriver, decltype(api.name)>::Call;
#define SPILLWAY_CALL(name) SPILLWAY_HOOK(name)
#define SPILLWAY_OPTIONAL_CALL(name) api.name = nullptr;
#include "interposer/driver/driver_calls.inc"
#include "interposer/driver/hook_table.inc"
#undef SPILLWAY_CALL
#undef SPILLWAY_OPTIONAL_CALL
  return api;
}

constinit const DriverApi kApiWithoutDriver = StubApi();

template <typename Function>
Function Resolve(void* driver, const char* name, Function if_missing) {
  void* const found = FindInDriver(driver, name);
  return found == nullptr ? if_missing : reinterpret_cast<Function>(found);
}

DriverApi ApiOf(void* driver) {
  DriverApi api;
#define SPILLWAY_HOOK(name, ...) \
  api.name = Resolve(driver, #name, &Stub<CUDA_ERROR_NOT_FOUND, decltype(api.name)>::Call);
#define SPILLWAY_CALL(name) SPILLWAY_HOOK(name)
#define SPILLWAY_OPTIONAL_CALL(name) api.name = Resolve<decltype(api.name)>(driver, #name, nullptr);
#include "interposer/driver/driver_calls.inc"
#include "interposer/driver/hook_table.inc"
#undef SPILLWAY_CALL
#undef SPILLWAY_OPTIONAL_CALL
  return api;
}

}  // namespace

constinit std::atomic<const DriverApi*> internal::published_api{nullptr};

// Racing threads make equal tables, and the first to publish wins. None waits for another, which
// may hold the dynamic loader's lock.
const DriverApi& internal::ResolveDriverApi() {
  void* const driver = OpenDriver();
  if (driver == nullptr) return kApiWithoutDriver;
  const DriverApi* const made = new (std::nothrow) DriverApi(ApiOf(driver));
  if (made == nullptr) return kApiWithoutDriver;
  const DriverApi* first = nullptr;
  if (published_api.compare_exchange_strong(first, made)) return *made;
  delete made;
  return *first;
}

bool DriverIsOpen() { return OpenedDriver() != nullptr; }

}  // namespace spillway::driver
