// What a driver function does to memory: the classes of hook_table.inc.
//
// A function with several effects has the first matching class.
#pragma once

namespace spillway::entry {

enum class SymbolClass : unsigned char {
  kManaged,  // allocates or frees device memory; contexts, with their memory, included
  kTouches,  // its work, or the work that it describes, reads or writes device memory
  kOrders,   // begins, orders, awaits or captures work; lifetimes of streams, events and graphs
  kPins,     // unmovable memory begins or ends, or ours becomes so: exported, mapped, managed
  kReports,  // answers a question
  kHarmless,
};

}  // namespace spillway::entry
