#include "simulator/driver/memory/first_uses.h"

#include <algorithm>
#include <iterator>

namespace spillway::simulator {

void FirstUses::NoteWritten(std::uintptr_t base, std::size_t size_bytes) {
  Assign(base, base + size_bytes, kAnybodys);
}

// What the device never wrote is nobody's; host memory may have been written by the processor.
void FirstUses::NoteCopied(std::uintptr_t target, std::uintptr_t source, std::size_t size_bytes,
                           Copy copy) {
  struct Part {
    std::uintptr_t base, end;
    std::uint64_t owner;
  };
  std::vector<Part> parts;
  ForParts(source, source + size_bytes, kUnknown,
           [&](std::uintptr_t base, std::uintptr_t end, std::uint64_t owner) {
             parts.push_back({base, end, owner});
           });
  for (const Part& part : parts) {
    if (copy == Copy::kFromHost && part.owner != kUnknown) continue;
    std::uint64_t owner = part.owner;
    if (owner == kUnknown) owner = copy == Copy::kFromHost ? kAnybodys : kNobodys;
    if (copy == Copy::kWithinDevice && owner != kNobodys) owner = kAnybodys;
    Assign(target + (part.base - source), target + (part.end - source), owner);
  }
}

std::vector<ByteRange> FirstUses::TakeUnwritten(std::uintptr_t base, std::size_t size_bytes,
                                                std::uint64_t id) {
  std::vector<ByteRange> unwritten;
  const auto [known, is_first] = named_.try_emplace(base, id);
  if (is_first || known->second != id) {
    ForParts(base, base + size_bytes, kNobodys,
             [&](std::uintptr_t begins, std::uintptr_t ends, std::uint64_t owner) {
               if (owner != kAnybodys && owner != id) unwritten.push_back({begins, ends - begins});
             });
  }
  known->second = id;
  Assign(base, base + size_bytes, id);
  return unwritten;
}

void FirstUses::CutAt(std::uintptr_t address) {
  const auto next = written_.upper_bound(address);
  if (next == written_.begin()) return;
  Written& before = std::prev(next)->second;
  if (std::prev(next)->first == address || before.end <= address) return;
  written_.emplace_hint(next, address, before);
  before.end = address;
}

void FirstUses::Assign(std::uintptr_t base, std::uintptr_t end, std::uint64_t owner) {
  if (base == end) return;
  CutAt(base);
  CutAt(end);
  auto next = written_.erase(written_.lower_bound(base), written_.lower_bound(end));
  if (next != written_.begin()) {
    Written& before = std::prev(next)->second;
    if (before.end == base && before.owner == owner) {
      before.end = end;
      return;
    }
  }
  written_.emplace_hint(next, base, Written{end, owner});
}

template <class Action>
void FirstUses::ForParts(std::uintptr_t base, std::uintptr_t end, std::uint64_t otherwise,
                         Action action) {
  CutAt(base);
  CutAt(end);
  std::uintptr_t at = base;
  for (auto next = written_.lower_bound(base); next != written_.end() && next->first < end;
       ++next) {
    if (next->first > at) action(at, next->first, otherwise);
    action(next->first, next->second.end, next->second.owner);
    at = next->second.end;
  }
  if (at < end) action(at, end, otherwise);
}

}  // namespace spillway::simulator
