// The memory use of a program's own kernels, declared in a text file beside the program:
// `<program>.uses`. For a plug-in `NAME.kernels.so` of SPILLWAY_SIM_KERNELS it is `NAME.uses`.
//
// A line declares one kernel (# begins a comment):
//     NAME  ROLE(POINTER, BYTES[, PART, PARTS]) ...  [flops(COUNT)]
// NAME is the kernel's name without namespaces. It may have template arguments; such a line wins
// over one without. ROLE is read, write, update or part (tags.h, image.h's UseKind). The other
// fields are sums and products of whole numbers and parameters: p0 is the first parameter; p1[2] is
// the third 32-bit word of the second parameter, a struct; g is the number of blocks. Operators are
// + - * / and parentheses.
//     sgd_update  update(p0, 4*p3)  update(p1, 4*p3)  read(p2, 4*p3)  flops(6*p3)
//
// A kernel without a line runs as in full mode. Parameters outside every use count as scalars: a
// pointer among them would make results depend on addresses.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/kernels/image.h"

namespace spillway::simulator {

class DeclaredKernel {
 public:
  struct Term;  // an expression
  struct Use {
    UseKind kind;
    std::uint32_t pointer;  // which parameter
    std::shared_ptr<const Term> bytes;
    std::shared_ptr<const Term> part;  // for the role part
    std::shared_ptr<const Term> parts;
  };

  struct Launch {
    const KernelEntry& entry;
    const LaunchShape& shape;
    void* const* arguments;
  };

  void Describe(const Launch& launch, KernelUseList* list) const;
  std::uint64_t Flops(const Launch& launch) const;

 private:
  friend class DeclaredUses;
  // A hash of every parameter that is no pointer of a use: shapes and scalars.
  std::uint64_t Identity(const Launch& launch) const;

  std::vector<Use> uses_;
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
  mutable std::map<const char*, const DeclaredKernel*>
      found_;  // by the name's address, because names live as long as images
};

}  // namespace spillway::simulator
