// A file descriptor, closed on destruction.
#pragma once

#include <unistd.h>

#include <utility>

namespace spillway::base {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int file) : file_(file) {}
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : file_(other.Take()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Take());
    return *this;
  }

  int get() const { return file_; }
  explicit operator bool() const { return file_ >= 0; }
  int Take() { return std::exchange(file_, -1); }
  void Reset(int file = -1) {
    if (file_ >= 0) close(file_);
    file_ = file;
  }

 private:
  int file_ = -1;
};

}  // namespace spillway::base
