// What a driver function does to memory: the classes of hook_table.inc.
//
// Plain values. A function that does several things has the first of its classes here.
#pragma once

namespace spillway::entry {

enum class SymbolClass : unsigned char {
  kManaged,  // device memory comes or goes by it, contexts with all of theirs included
  kTouches,  // work of it, or of what it describes, reads or writes device memory
  kOrders,   // begins, orders or awaits work, or captures it; lives of streams, events and graphs
  kPins,  // memory that cannot be moved begins or ends, or memory of ours becomes such: exported,
          // mapped, managed
  kReports,   // answers a question
  kHarmless,  // none of these
};

}  // namespace spillway::entry
