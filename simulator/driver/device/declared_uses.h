// The memory use of kernels, declared in text files: `<program>.uses` beside the program,
// `NAME.uses` for a plug-in `NAME.kernels.so` of SPILLWAY_SIM_KERNELS, and the files in
// SPILLWAY_SIM_RULES.
//
// A line declares one kernel, or many (# begins a comment):
//     NAME       ROLE(POINTER, BYTES[, PART, PARTS]) ...  [ignore(pN)] ...  [flops(COUNT)]
//     "PATTERN"  ROLE(POINTER, BYTES[, PART, PARTS]) ...  [ignore(pN)] ...  [flops(COUNT)]
// NAME is the kernel's name without namespaces. A line with template arguments wins over one
// without. PATTERN is matched with the whole demangled name, as the statistics print it
// (name_pattern.h). Names win over patterns, and earlier patterns over later ones.
//
// ROLE is read, write, update or part (tags.h, image.h's UseKind), or fill(POINTER, BYTES, VALUE):
// each byte becomes VALUE, for results that a program branches on. POINTER is
//     p1          the second parameter
//     p1[2]       what begins at its third 32-bit word; p1:64[2]: at its third 64-bit word
//     p1@0        the first of its 64-bit words that lies in an allocation; p1@1 the second
// After the first two, `-PRODUCT` says how many bytes before the pointer the use begins.
// BYTES may be `all`: the whole allocation that holds the pointer. The other fields are sums and
// products (+ - * / and parentheses) of whole numbers and
//     p0          the first parameter
//     p1[2]       its third 32-bit word; so p1:8[2], p1:16[2], p1:64[2]
//     g           the number of blocks; gx, gy, gz: along that dimension of the grid
//     bytes(p1)   how many bytes the second parameter has
//     sizeof(T)   the bytes of the type that the pattern captured as {T}
//     sum(N, E)   the sum of E over j = 0 to N - 1; E may contain j
//     min(A, B)   the smaller number
//     any(A)      1, or 0 if A is 0
// After `each(COUNT)` uses are repeated, with i = 0 to COUNT - 1. In kernels without a body a use
// ends with the allocation that holds its pointer.
//     sgd_update  update(p0, 4*p3)  update(p1, 4*p3)  read(p2, 4*p3)  flops(6*p3)
//     "void at::native::*fill*<{T}>(*"  write(p2:64[0], sizeof(T)*p0)  ignore(p1)
//     "void scale_all<*>(*"             each(p0[0])  update(p0:64[1+i], all)
// After the line `$name = TEXT`, `$name` stands for the text. If TEXT has `$1` to `$9`, the name
// takes arguments:
//     $rows = 4*$1[0]*($1[1]+$2)
//     scale   read(p0, $rows(p1, 3))        # 4*p1[0]*(p1[1]+3)
//
// A plug-in's kernel without a line runs as in full mode; one without a body is assumed to update
// all that it names (assumed_uses.h). Parameters outside every use count as scalars, unless they
// are ignored, or have one byte: an empty struct's byte holds anything. Structs with unused bytes
// should be ignored. In kernels without a body, words that name memory
// are no scalars; in others such a word would make results depend on addresses.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "simulator/driver/device/name_pattern.h"
#include "simulator/driver/device/named_memory.h"
#include "simulator/driver/device/rule_terms.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator {

class RuleLine;

inline constexpr std::uint32_t kLeastScalarBytes = 2;

struct KernelEffect {
  std::uint64_t identity = 0;  // as KernelUseList's
  std::vector<KernelUse> uses;
};

class DeclaredKernel {
 public:
  using Launch = RuledLaunch;
  struct Use {
    UseKind kind;
    std::uint32_t pointer;
    RuleTermRef place = {};                 // of the pointer in it, in bytes; null: its beginning
    std::optional<std::uint64_t> nth = {};  // which of the words that lie in allocations
    RuleTermRef before = {};                // the use begins so many bytes before it
    RuleTermRef bytes = {};                 // null: the whole allocation
    RuleTermRef part = {};                  // for the roles part, and fill: the byte
    RuleTermRef parts = {};
    RuleTermRef count = {};  // null: once
  };

  KernelEffect Describe(const Launch& launch) const;
  std::uint64_t Flops(const Launch& launch) const;
  bool NeedsAllocations() const;

 private:
  friend class DeclaredUses;
  base::Status Read(RuleLine& line);
  KernelUse At(const Use& use, const RuleTerm::Scope& scope) const;
  bool IsScalar(std::uint32_t parameter) const;
  // Hashes every parameter that is no pointer of a use.
  std::uint64_t Identity(const Launch& launch) const;

  std::vector<Use> uses_;
  std::vector<std::uint32_t> ignored_;
  RuleTermRef flops_;
  TypeSizes types_;
};

class DeclaredUses {
 public:
  // An error has the line's number; its code is ENOENT for a missing file.
  base::Status AddFile(const std::string& path);
  base::Status AddLine(const std::string& line);
  const DeclaredKernel* Find(const char* mangled_name) const;

 private:
  struct Rule {
    NamePattern pattern;
    DeclaredKernel kernel;
  };
  const DeclaredKernel* Search(const char* mangled_name) const;
  base::Status AddText(const std::string& line);
  std::string WithTexts(std::string line) const;

  std::map<std::string, std::string, std::greater<>> texts_;  // by name; longer names first
  std::map<std::string, DeclaredKernel> by_name_;
  std::vector<Rule> by_pattern_;
  mutable std::list<DeclaredKernel> matched_;  // by patterns; their addresses stay
  mutable std::map<const char*, const DeclaredKernel*>
      found_;  // by the name's address, because names live as long as images
};

}  // namespace spillway::simulator
