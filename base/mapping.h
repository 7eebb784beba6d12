// A shared memory mapping of a file, unmapped on destruction.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace spillway::base {

class Mapping {
 public:
  Mapping() = default;
  Mapping(int file, size_t size_bytes, int protection = PROT_READ | PROT_WRITE)
      : size_bytes_(size_bytes) {
    void* const placed = mmap(nullptr, size_bytes, protection, MAP_SHARED, file, 0);
    address_ = placed == MAP_FAILED ? nullptr : placed;
  }
  ~Mapping() {
    if (address_ != nullptr) munmap(address_, size_bytes_);
  }
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_bytes_(other.size_bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }

  explicit operator bool() const { return address_ != nullptr; }
  void* address() const { return address_; }
  size_t size_bytes() const { return size_bytes_; }
  template <class T>
  T& As() const {
    return *static_cast<T*>(address_);
  }

 private:
  void* address_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace spillway::base
