// The memory use of kernels, declared in text files: `<program>.uses` beside the program,
// `NAME.uses` for a plug-in `NAME.kernels.so` of SPILLWAY_SIM_KERNELS, and the files in
// SPILLWAY_SIM_RULES.
//
// A line declares one kernel, or many (# begins a comment):
//     NAME       ROLE(POINTER, BYTES[, PART, PARTS]) ...  [ignore(POINTER)] ...  [flops(COUNT)]
//     "PATTERN"  ROLE(POINTER, BYTES[, PART, PARTS]) ...  [ignore(POINTER)] ...  [flops(COUNT)]
// NAME is the kernel's name without namespaces. It may have template arguments; such a line wins
// over one without. PATTERN is matched with the whole demangled name, as the statistics print it: *
// is any text, ? any character, [ab] one of these (fnmatch). Names win over patterns, and earlier
// patterns over later ones. ROLE is read, write, update or part (tags.h, image.h's UseKind).
// POINTER is a parameter, or one in a struct: p1[2] begins at its third 32-bit word. BYTES may be
// `all`: the allocation that holds the pointer, from its beginning to its end. The other fields are
// sums and products of whole numbers and parameters: p0 is the first parameter; p1[2] is the third
// 32-bit word of the second parameter, a struct; g is the number of blocks. Operators are + - * /
// and parentheses.
//     sgd_update  update(p0, 4*p3)  update(p1, 4*p3)  read(p2, 4*p3)  flops(6*p3)
//     "void at::native::*fill*"  write(p2, all)  ignore(p1)
//
// A plug-in's kernel without a line runs as in full mode; one without a body is assumed to update
// all that it names (assumed_uses.h). Parameters outside every use count as scalars, unless they
// are ignored. Structs with unused bytes should be. In kernels without a body, words that name
// memory are no scalars; in others such a word would make results depend on addresses.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "simulator/driver/device/named_memory.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator {

class DeclaredKernel {
 public:
  struct Term;  // an expression
  struct Use {
    UseKind kind;
    std::uint32_t pointer;              // which parameter
    std::uint32_t word;                 // of a struct: where the pointer begins
    std::shared_ptr<const Term> bytes;  // null: the whole allocation
    std::shared_ptr<const Term> part;   // for the role part
    std::shared_ptr<const Term> parts;
  };

  struct Launch {
    const KernelEntry& entry;
    const LaunchShape& shape;
    void* const* arguments;
    std::span<const NamedMemory> named = {};  // in kernels without a body, or that need it
  };

  void Describe(const Launch& launch, KernelUseList* list) const;
  std::uint64_t Flops(const Launch& launch) const;
  // Whether a use is a whole allocation.
  bool NeedsAllocations() const;

 private:
  friend class DeclaredUses;
  static KernelUse Whole(const Use& use, void* pointer, std::span<const NamedMemory> named);
  bool IsScalar(std::uint32_t parameter) const;
  // A hash of every parameter that is no pointer of a use: shapes and scalars.
  std::uint64_t Identity(const Launch& launch) const;

  std::vector<Use> uses_;
  std::vector<std::uint32_t> ignored_;  // parameters
  std::shared_ptr<const Term> flops_;
};

class DeclaredUses {
 public:
  // Adds a file's lines. An error has the line's number; its code is ENOENT for a missing file.
  base::Status AddFile(const std::string& path);
  base::Status AddLine(const std::string& line);
  // Null when nothing is declared.
  const DeclaredKernel* Find(const char* mangled_name) const;

 private:
  const DeclaredKernel* Search(const char* mangled_name) const;

  std::map<std::string, DeclaredKernel> by_name_;
  std::list<std::pair<std::string, DeclaredKernel>> by_pattern_;  // their addresses stay
  mutable std::map<const char*, const DeclaredKernel*>
      found_;  // by the name's address, because names live as long as images
};

}  // namespace spillway::simulator
