#include "interposer/lease/bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace spillway::interposer {

Bell::Bell() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Bell& Bell::ForGrants() {
  static Bell* const bell = new Bell;
  return *bell;
}

void Bell::Ring() const {
  if (!file_) return;
  const std::uint64_t once = 1;
  [[maybe_unused]] const ssize_t written = write(file_.get(), &once, sizeof once);
}

void Bell::Silence() const {
  if (!file_) return;
  std::uint64_t times;
  [[maybe_unused]] const ssize_t got = read(file_.get(), &times, sizeof times);
}

}  // namespace spillway::interposer
