#include "interposer/ledger/libraries.h"

#include <algorithm>
#include <utility>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using base::MutexLock;
using driver::Driver;

Libraries& Libraries::Instance() {
  static Libraries* const libraries = new Libraries;
  return *libraries;
}

void Libraries::Add(CUlibrary handle, std::vector<std::string> variables) {
  if (variables.empty()) return;
  const MutexLock lock(mutex_);
  const std::uint64_t number = last_.load(std::memory_order_relaxed) + 1;
  loaded_.push_back({number, handle, std::move(variables)});
  last_.store(number, std::memory_order_relaxed);
}

bool Libraries::Remove(const void* handle) {
  const MutexLock lock(mutex_);
  std::erase(plain_, handle);
  return std::erase_if(loaded_,
                       [handle](const LoadedLibrary& one) { return one.handle == handle; }) > 0;
}

void Libraries::NotePlain(const void* handle) {
  const MutexLock lock(mutex_);
  plain_.push_back(handle);
}

// A launch takes a library's kernel in place of a function.
bool Libraries::IsPlain(CUfunction function) {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  if (!Driver().cuFuncGetModule || Driver().cuFuncGetModule(&module, function) != CUDA_SUCCESS)
    module = nullptr;
  const auto kernel = reinterpret_cast<CUkernel>(function);
  if (!module && Driver().cuKernelGetLibrary &&
      Driver().cuKernelGetLibrary(&library, kernel) != CUDA_SUCCESS)
    library = nullptr;
  const void* const handle = module ? static_cast<const void*>(module) : library;
  const MutexLock lock(mutex_);
  return handle && std::find(plain_.begin(), plain_.end(), handle) != plain_.end();
}

std::vector<LoadedLibrary> Libraries::Behind(std::uint64_t number) {
  const MutexLock lock(mutex_);
  std::vector<LoadedLibrary> found;
  std::copy_if(loaded_.begin(), loaded_.end(), std::back_inserter(found),
               [number](const LoadedLibrary& one) { return one.number > number; });
  return found;
}

}  // namespace spillway::interposer
