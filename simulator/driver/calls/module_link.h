// A link of several modules into one (cuLinkCreate to cuLinkDestroy).
//
// Used under the engine's mutex. No code is linked: the result lists the kernels and variables of
// all inputs. Bodies come from the plug-ins, as for any loaded module. Objects and libraries for
// the host's linker are accepted and not read.
#pragma once

#include <string>

#include "base/byte_view.h"
#include "simulator/driver/calls/jit_report.h"
#include "simulator/driver/modules/module_list.h"

namespace spillway::simulator {

struct ModuleLink {
  JitReport report;
  ModuleList list = {};
  std::string image = {};  // once complete; the program's until it destroys the link

  // Throws, and says why in the report. `name` may be null.
  void Add(CUjitInputType type, base::ByteView input, int architecture, const char* name);
  void Complete();
};

}  // namespace spillway::simulator
