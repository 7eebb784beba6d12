#include "interposer/entry/kernel_parameters.h"

#include <atomic>

#include "interposer/driver/driver_api.h"
#include "interposer/driver/function_name.h"
#include "interposer/record/trace_names.h"

namespace spillway::entry {
namespace {

using driver::Driver;

constexpr size_t kSlots = 16384;  // more than programs have kernels; others are asked again
constexpr size_t kProbes = 32;

// Note [Slots and generations]
// A slot's word is 4 * generation + scanned + busy: its content's generation, whether a post-launch
// scan has checked the function, and whether it is being written (busy). A new generation forgets
// all slots at once: those of earlier generations are free. A writer sets the busy bit by
// compare-exchange, so there is only one. It publishes the word after the content. A reader reads
// the word before and after the content. If both reads give the same current word, the content is
// consistent. Generation 0 is never current, so a zeroed slot is free.
struct alignas(32) Slot {  // never across two cache lines
  std::atomic<std::uint64_t> word{0};
  std::atomic<CUfunction> function{nullptr};
  std::atomic<const KernelParameters*> parameters{nullptr};
  std::atomic<interposer::Shape> name{0};
};
constexpr std::uint64_t WordOf(std::uint64_t generation) { return 4 * generation; }
constexpr std::uint64_t kBusy = 1;
constexpr std::uint64_t kScanned = 2;

constinit Slot slots[kSlots];
constinit std::atomic<std::uint64_t> current_generation{1};

struct Layout {
  KernelParameters parameters;
  const Layout* next;
};
constinit std::atomic<const Layout*> layouts{nullptr};  // never shrinks

const Layout* Search(const Layout* first, const Layout* end, const KernelParameters& wanted) {
  while (first != end && first->parameters != wanted) first = first->next;
  return first == end ? nullptr : first;
}

// The one layout that equals `asked`, made if missing.
const KernelParameters* Keep(const KernelParameters& asked) {
  const Layout* first = layouts.load(std::memory_order_acquire);
  if (const Layout* known = Search(first, nullptr, asked)) return &known->parameters;
  auto* const made = new Layout{asked, first};
  while (!layouts.compare_exchange_weak(first, made, std::memory_order_acq_rel)) {
    if (const Layout* known = Search(first, made->next, asked)) {
      delete made;
      return &known->parameters;
    }
    made->next = first;
  }
  return &made->parameters;
}

// Collects sizes and offsets until `ask(index)` fails. True if the list ended: the answer past the
// last parameter is CUDA_ERROR_INVALID_VALUE, also at 0. False: another error.
template <class AskSize>
bool Collect(AskSize ask, KernelParameters* out) {
  CUresult result = CUDA_SUCCESS;
  size_t offset = 0, size_bytes = 0;
  while ((result = ask(out->size_bytes.size(), &offset, &size_bytes)) == CUDA_SUCCESS) {
    out->Add(static_cast<std::uint32_t>(size_bytes), static_cast<std::uint32_t>(offset));
  }
  return result == CUDA_ERROR_INVALID_VALUE;
}

// An invalid function handle may be a kernel. A function without parameters answers like an invalid
// handle. False if neither query reached the end of its list.
bool Ask(CUfunction function, KernelParameters* out) {
  const bool as_function =
      Collect([&](auto... rest) { return Driver().cuFuncGetParamInfo(function, rest...); }, out);
  if (!out->size_bytes.empty()) return as_function;
  const bool as_kernel = Collect(
      [&](auto... rest) {
        return Driver().cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), rest...);
      },
      out);
  return as_kernel || (as_function && out->size_bytes.empty());
}

interposer::Shape NameOf(const char* name, const KernelParameters& parameters) {
  if (name) return interposer::ShapeOfName(name);
  interposer::Shape shape = 0;
  for (const std::uint32_t size_bytes : parameters.size_bytes)
    shape = interposer::MixShape(shape, size_bytes);
  return shape;
}

// Handles that lie close together get slots that lie close together: few pages, and no collisions.
size_t HashOf(CUfunction function) {
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  return (address >> 5) ^ ((address >> 19) * 0x9e3779b97f4a7c15u >> 50);
}

std::uint64_t GenerationIn(std::uint64_t word) { return word & ~kScanned; }

// False: it holds another's, or is being overwritten.
inline bool ReadSlot(const Slot& slot, std::uint64_t word, CUfunction function,
                     KernelFacts* facts) {
  if (slot.function.load(std::memory_order_acquire) != function) return false;
  facts->parameters = slot.parameters.load(std::memory_order_acquire);
  facts->name = slot.name.load(std::memory_order_acquire);
  const std::uint64_t seen = slot.word.load(std::memory_order_relaxed);
  facts->is_new = !(seen & kScanned);
  return GenerationIn(seen) == word;
}

struct FreeSlot {
  Slot* slot = nullptr;
  std::uint64_t seen = 0, word = 0;
};

// A busy slot is left to its writer.
void WriteSlot(FreeSlot free, CUfunction function, const KernelFacts& facts) {
  Slot* const slot = free.slot;
  if ((free.seen & kBusy) || !slot->word.compare_exchange_strong(free.seen, free.word | kBusy))
    return;
  slot->function.store(function, std::memory_order_release);
  slot->parameters.store(facts.parameters, std::memory_order_release);
  slot->name.store(facts.name, std::memory_order_release);
  slot->word.store(free.word, std::memory_order_release);
}

[[gnu::noinline, gnu::cold]] void AskAndKeep(CUfunction function, FreeSlot free,
                                             ScratchParameters* scratch, KernelFacts* facts) {
  KernelParameters& asked = *(*scratch = std::make_unique<KernelParameters>());
  const bool is_told = function && Ask(function, &asked);
  const char* const name = function ? driver::NameOf(function) : nullptr;
  if (name) asked.lists = TensorListsOf(name);
  if (name) asked.by_value = StructOf(name);
  const bool is_kept = is_told && free.slot;
  *facts = {.parameters = is_kept ? Keep(asked) : &asked,
            .name = function ? NameOf(name, asked) : 0,
            .is_kept = is_kept};
  if (is_kept) WriteSlot(free, function, *facts);
}

}  // namespace

KernelFacts FactsOf(CUfunction function, ScratchParameters* scratch) {
  KernelFacts facts;
  const std::uint64_t word = WordOf(current_generation.load(std::memory_order_acquire));
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Slot& slot = slots[(HashOf(function) + probe) % kSlots];
    const std::uint64_t seen = slot.word.load(std::memory_order_acquire);
    if (GenerationIn(seen) != word) {
      AskAndKeep(function, {&slot, seen, word}, scratch, &facts);
      return facts;
    }
    if (ReadSlot(slot, word, function, &facts)) return facts;
  }
  AskAndKeep(function, {}, scratch, &facts);
  return facts;
}

void MarkScanned(CUfunction function) {
  const std::uint64_t word = WordOf(current_generation.load(std::memory_order_acquire));
  for (size_t probe = 0; probe < kProbes; ++probe) {
    Slot& slot = slots[(HashOf(function) + probe) % kSlots];
    std::uint64_t seen = slot.word.load(std::memory_order_acquire);
    if (GenerationIn(seen) != word) return;
    if (KernelFacts facts; !ReadSlot(slot, word, function, &facts)) continue;
    slot.word.compare_exchange_strong(seen, word | kScanned);
    return;
  }
}

const char* ReadableName(CUfunction function, interposer::Shape name) {
  if (const char* const known = interposer::KnownTraceName(name)) return known;
  const char* const told = function ? driver::NameOf(function) : nullptr;
  return interposer::KeepTraceName(name, told ? told : "kernel");
}

void ForgetKernelParameters() { current_generation.fetch_add(1, std::memory_order_acq_rel); }

}  // namespace spillway::entry
