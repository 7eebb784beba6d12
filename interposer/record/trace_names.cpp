#include "interposer/record/trace_names.h"

#include <cxxabi.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstddef>

namespace spillway::interposer {
namespace {

constexpr std::size_t kSlots = 4096;
constexpr std::size_t kProbes = 16;

struct Slot {
  std::atomic<Shape> number{0};  // 0: free
  std::atomic<const char*> name{nullptr};
};
constinit Slot slots[kSlots];

Slot& At(Shape number, std::size_t probe) { return slots[(number + probe) % kSlots]; }

// "void sgd_update<float>(float*, int)" becomes "sgd_update<float>".
void CutToName(char* text) {
  if (char* const parameters = strchr(text, '(')) *parameters = 0;
  int depth = 0;
  char* begin = text;
  for (char* at = text; *at; ++at) {
    depth += *at == '<' ? 1 : *at == '>' ? -1 : 0;
    if (*at == ' ' && depth == 0) begin = at + 1;
  }
  memmove(text, begin, strlen(begin) + 1);
}

const char* ReadableCopy(const char* name) {
  int status = 0;
  char* const readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (status != 0 || !readable) return strdup(name);
  CutToName(readable);
  return readable;
}

}  // namespace

const char* KnownTraceName(Shape number) {
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    const Slot& slot = At(number, probe);
    if (slot.number.load(std::memory_order_acquire) == number)
      return slot.name.load(std::memory_order_acquire);
  }
  return nullptr;
}

// Another thread may keep the same name first. Then this copy is not needed.
const char* KeepTraceName(Shape number, const char* name) {
  const char* const copy = ReadableCopy(name);
  for (std::size_t probe = 0; copy && number && probe < kProbes; ++probe) {
    Slot& slot = At(number, probe);
    Shape free = 0;
    if (!slot.number.compare_exchange_strong(free, number)) {
      if (free != number) continue;
      const char* const kept = slot.name.load(std::memory_order_acquire);
      if (!kept) return copy;
      ::free(const_cast<char*>(copy));
      return kept;
    }
    slot.name.store(copy, std::memory_order_release);
    return copy;
  }
  ::free(const_cast<char*>(copy));
  return "kernel";
}

}  // namespace spillway::interposer
