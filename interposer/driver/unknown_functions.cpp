#include "interposer/driver/unknown_functions.h"

#include <stdio.h>

#include "base/once_table.h"

namespace spillway::driver {
namespace {

struct Name {
  char text[80] = {};
};

constinit base::OnceTable<Name, 128> names;

}  // namespace

void NoteUnknownFunction(const char* name) {
  Name kept;
  snprintf(kept.text, sizeof kept.text, "%s", name);
  names.Note(name, kept);
}

size_t UnknownFunctionCount() { return names.count(); }

const char* UnknownFunctionName(size_t index) {
  const Name* const name = names.At(index);
  return name ? name->text : nullptr;
}

}  // namespace spillway::driver
