// A part of CUDA that programs may use beside the basics.
//
// One constant object per feature, defined in features/<name>.cpp and listed in features/all.cpp.
// Propose is called by the generator on one thread; Run on program threads, with the right context
// current.
//
// Invariants
//  1. What Propose adds follows from the proposer's dice and world alone.
//  2. What Run makes the device or the host compute follows from the operation alone: no
//     address, no size that a driver chose and no timing gets into memory that programs read, or
//     into the digest.
//  3. An operation says all it accesses: `in`, `out`, `more_out`, and what the object it uses
//     `names`. The orderer adds the waits; Run adds none of its own, but for work that it must
//     see complete before it returns.
// See tests/fuzz/README.md for how to add one.
#pragma once

#include <span>
#include <vector>

#include "simulator/kernels/image.h"
#include "tests/fuzz/differential/choose.h"
#include "tests/fuzz/differential/operation.h"
#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {

struct Running;  // running.h: what an operation is run with

// The generator as a feature sees it while it proposes.
class Proposer {
 public:
  virtual ~Proposer() = default;

  virtual Random& Dice() = 0;
  virtual Chooser& Choose() = 0;  // picks among the things of Thread()
  virtual const World& Now() const = 0;
  virtual int Thread() const = 0;
  virtual int NewBuffer() = 0;
  // Allocates in any way that programs do, and perhaps writes some; the buffer, or kNone.
  virtual int NewMemory(std::uint64_t bytes) = 0;
  virtual int NewObject() = 0;
  // The feature's own objects that Thread() may use, or kNone.
  virtual int PickObject() = 0;
  // Adds the operation when it makes sense here; sets its thread, its feature and its salt.
  virtual bool Add(Operation operation) = 0;
};

class Feature {
 public:
  virtual ~Feature() = default;
  virtual const char* Name() const = 0;
  // How many of 1,000 steps of a program that uses it (beside the 1,000 of everything else) are its
  // own.
  virtual unsigned PerMille() const = 0;
  // Whether seeds may choose it. Features that only --features names come last in the list.
  virtual bool IsDrawn() const { return true; }
  // What a thread's part of a program begins with: nothing is allocated, and there are default
  // streams alone. Not in the second context: the one that allocates first is managed.
  virtual void Open(Proposer&) const {}
  virtual void Propose(Proposer& proposer) const = 0;
  // Runs a kFeatureCall, kFeatureWork, or a kAlloc or kFree of form kFeature. Throws what a call
  // reported.
  virtual void Run(const Operation& operation, const Running& running) const = 0;
  // Kernels of its own; Device::KernelNamed finds them.
  virtual std::span<const simulator::KernelEntry> Kernels() const { return {}; }
  // Device variables of its own, which cuModuleGetGlobal finds in Device::Module.
  virtual std::span<const simulator::GlobalEntry> Variables() const { return {}; }
};

const std::vector<const Feature*>& AllFeatures();
// The place in AllFeatures of the feature of that name, or kNone.
int FeatureNamed(const char* name);

}  // namespace spillway::fuzz
