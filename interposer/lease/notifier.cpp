#include "interposer/lease/notifier.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace spillway::interposer {

Notifier::Notifier() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Notifier& Notifier::ForGrants() {
  static Notifier* const notifier = new Notifier;
  return *notifier;
}

void Notifier::Notify() const {
  if (!file_) return;
  const std::uint64_t once = 1;
  [[maybe_unused]] const ssize_t written = write(file_.get(), &once, sizeof once);
}

void Notifier::Clear() const {
  if (!file_) return;
  std::uint64_t times;
  [[maybe_unused]] const ssize_t got = read(file_.get(), &times, sizeof times);
}

}  // namespace spillway::interposer
