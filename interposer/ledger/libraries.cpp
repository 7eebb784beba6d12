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
  std::erase_if(known_, [handle](const Known& one) { return one.handle == handle; });
  return std::erase_if(loaded_,
                       [handle](const LoadedLibrary& one) { return one.handle == handle; }) > 0;
}

void Libraries::Note(const void* handle, DependsOn what) {
  const MutexLock lock(mutex_);
  known_.push_back({handle, what});
}

// A launch takes a library's kernel in place of a function.
DependsOn Libraries::WhatMatters(CUfunction function) {
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
  const auto known = std::find_if(known_.begin(), known_.end(),
                                  [handle](const Known& one) { return one.handle == handle; });
  return known == known_.end() ? DependsOn::kAnything : known->what;
}

std::vector<LoadedLibrary> Libraries::Behind(std::uint64_t number) {
  const MutexLock lock(mutex_);
  std::vector<LoadedLibrary> found;
  std::copy_if(loaded_.begin(), loaded_.end(), std::back_inserter(found),
               [number](const LoadedLibrary& one) { return one.number > number; });
  return found;
}

}  // namespace spillway::interposer
