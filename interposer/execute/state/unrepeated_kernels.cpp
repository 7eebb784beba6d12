#include "interposer/execute/state/unrepeated_kernels.h"

#include <stdio.h>

#include "base/once_table.h"
#include "interposer/driver/function_name.h"

namespace spillway::interposer {
namespace {

constinit base::OnceTable<UnrepeatedKernel, 128> kernels;

}  // namespace

void NoteUnrepeated(CUfunction function, UnrepeatedBecause because) {
  const char* const name = driver::NameOf(function);
  if (!name) return;
  UnrepeatedKernel kernel{.because = because};
  snprintf(kernel.name, sizeof kernel.name, "%s", name);
  kernels.Note(name, kernel);
}

std::size_t UnrepeatedKernelCount() { return kernels.count(); }

const UnrepeatedKernel* UnrepeatedKernelAt(std::size_t index) { return kernels.At(index); }

}  // namespace spillway::interposer
