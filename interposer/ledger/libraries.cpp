#include "interposer/ledger/libraries.h"

#include <algorithm>
#include <utility>

namespace spillway::interposer {

using base::MutexLock;

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
  return std::erase_if(loaded_,
                       [handle](const LoadedLibrary& one) { return one.handle == handle; }) > 0;
}

std::vector<LoadedLibrary> Libraries::Behind(std::uint64_t number) {
  const MutexLock lock(mutex_);
  std::vector<LoadedLibrary> found;
  std::copy_if(loaded_.begin(), loaded_.end(), std::back_inserter(found),
               [number](const LoadedLibrary& one) { return one.number > number; });
  return found;
}

}  // namespace spillway::interposer
