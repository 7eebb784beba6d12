#include <curand.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <type_traits>

#include "simulator/dnn/common/operation.h"
#include "simulator/rand/draws.h"
#include "simulator/rand/philox.h"
#include "simulator/rand/sobol.h"

struct curandGenerator_st {
  curandRngType_t type;
  bool on_host;
  curandOrdering_t ordering;
  cudaStream_t stream;
  unsigned long long seed;
  unsigned dimensions;
  unsigned long long position;  // of the next draw, or quasirandom point
};

namespace spillway::simulator::rand {
namespace {

bool IsQuasi(curandRngType_t type) { return type >= CURAND_RNG_QUASI_DEFAULT; }

bool IsLong(curandRngType_t type) {
  return type == CURAND_RNG_QUASI_SOBOL64 || type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
}

bool IsKnown(curandRngType_t type) {
  constexpr curandRngType_t kKnown[] = {
      CURAND_RNG_PSEUDO_DEFAULT,          CURAND_RNG_PSEUDO_XORWOW,
      CURAND_RNG_PSEUDO_MRG32K3A,         CURAND_RNG_PSEUDO_MTGP32,
      CURAND_RNG_PSEUDO_MT19937,          CURAND_RNG_PSEUDO_PHILOX4_32_10,
      CURAND_RNG_QUASI_DEFAULT,           CURAND_RNG_QUASI_SOBOL32,
      CURAND_RNG_QUASI_SCRAMBLED_SOBOL32, CURAND_RNG_QUASI_SOBOL64,
      CURAND_RNG_QUASI_SCRAMBLED_SOBOL64};
  return std::count(std::begin(kKnown), std::end(kKnown), type) != 0;
}

template <typename Value>
Value Draw(const Source& source, Distribution distribution, std::uint64_t i, double location,
           double scale) {
  if constexpr (std::is_same_v<Value, float>) {
    return DrawFloat(source, distribution, i, location, scale);
  } else if constexpr (std::is_same_v<Value, double>) {
    return DrawDouble(source, distribution, i, location, scale);
  } else if constexpr (sizeof(Value) == sizeof(std::uint64_t)) {
    return LongWord(source, i);
  } else {
    return distribution == Distribution::kPoisson ? DrawPoisson(source, i, location)
                                                  : Word(source, i);
  }
}

template <typename Value>
struct DrawOperation {
  static constexpr char kName[] = "curand_draw";
  static constexpr int kOperands = 1;
  Source source;
  Distribution distribution;
  std::uint64_t count;
  double location, scale;

  void Run(void* const* operands) const { Fill(static_cast<Value*>(operands[0])); }
  void Fill(Value* to) const {
    for (std::uint64_t i = 0; i < count; ++i)
      to[i] = Draw<Value>(source, distribution, i, location, scale);
  }
};

Source SourceOf(const curandGenerator_st& generator, std::uint64_t count) {
  const bool quasi = IsQuasi(generator.type);
  const bool scrambled = generator.type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 ||
                         generator.type == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
  const PhiloxBlock key = Philox(generator.seed, generator.type, 0);
  return {quasi,
          scrambled,
          generator.dimensions,
          (std::uint64_t{key[0]} << 32) | key[1],
          generator.position,
          quasi ? std::max<std::uint64_t>(1, count / generator.dimensions) : count};
}

curandStatus_t CheckCount(const curandGenerator_st& generator, Distribution distribution,
                          std::uint64_t count) {
  const bool pairs = !IsQuasi(generator.type) && (distribution == Distribution::kNormal ||
                                                  distribution == Distribution::kLogNormal);
  const std::uint64_t unit = IsQuasi(generator.type) ? generator.dimensions : pairs ? 2 : 1;
  return count % unit == 0 ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LENGTH_NOT_MULTIPLE;
}

template <typename Value>
curandStatus_t Generate(curandGenerator_t generator, Value* to, std::uint64_t count,
                        Distribution distribution, double location, double scale) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  const curandStatus_t fits = CheckCount(*generator, distribution, count);
  if (fits != CURAND_STATUS_SUCCESS || count == 0) return fits;
  const Source source = SourceOf(*generator, count);
  const DrawOperation<Value> operation = {source, distribution, count, location, scale};
  generator->position += source.per_dimension;
  if (generator->on_host) {
    operation.Fill(to);
    return CURAND_STATUS_SUCCESS;
  }
  constexpr double kFlopsPerDraw = 20;
  const CUresult result =
      dnn::Enqueue(generator->stream, operation, {dnn::Writes(to, count * sizeof(Value))},
                   kFlopsPerDraw * static_cast<double>(count));
  return result == CUDA_SUCCESS ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

curandStatus_t Create(curandGenerator_t* made, curandRngType_t type, bool on_host) {
  if (made == nullptr || !IsKnown(type)) return CURAND_STATUS_TYPE_ERROR;
  if (!on_host && !dnn::EnsureContext()) return CURAND_STATUS_INITIALIZATION_FAILED;
  if (IsQuasi(type)) PrepareDimensions(1);
  const curandOrdering_t ordering =
      IsQuasi(type) ? CURAND_ORDERING_QUASI_DEFAULT : CURAND_ORDERING_PSEUDO_DEFAULT;
  *made = new (std::nothrow) curandGenerator_st{type, on_host, ordering, nullptr, 0, 1, 0};
  return *made != nullptr ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
}

bool IsScrambled(curandDirectionVectorSet_t set) {
  return set == CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6 ||
         set == CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6;
}

template <typename Vectors, typename Word>
Vectors* DirectionTable() {
  static auto* const table = [] {
    PrepareDimensions(kMostDimensions);
    auto* made = new Vectors[kMostDimensions];
    constexpr int kBits = sizeof(Word) * 8;
    for (std::uint32_t dimension = 0; dimension < kMostDimensions; ++dimension) {
      for (int i = 0; i < kBits; ++i)
        made[dimension][i] = static_cast<Word>(DirectionsOf(dimension)[i] >> (64 - kBits));
    }
    return made;
  }();
  return table;
}

template <typename Word>
Word* ScrambleTable() {
  static auto* const table = [] {
    auto* made = new Word[kMostDimensions];
    for (std::uint32_t dimension = 0; dimension < kMostDimensions; ++dimension)
      made[dimension] = static_cast<Word>(ScrambleOf(dimension) >> (64 - sizeof(Word) * 8));
    return made;
  }();
  return table;
}

}  // namespace
}  // namespace spillway::simulator::rand

using namespace spillway::simulator::rand;

extern "C" {

curandStatus_t curandCreateGenerator(curandGenerator_t* made, curandRngType_t type) {
  return Create(made, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* made, curandRngType_t type) {
  return Create(made, type, true);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetVersion(int* version) {
  if (version == nullptr) return CURAND_STATUS_OUT_OF_RANGE;
  *version = CURAND_VERSION;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetProperty(libraryPropertyType type, int* value) {
  const int parts[] = {CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH};
  if (value == nullptr || type < MAJOR_VERSION || type > PATCH_LEVEL)
    return CURAND_STATUS_OUT_OF_RANGE;
  *value = parts[type];
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (IsQuasi(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  generator->seed = seed;
  generator->position = 0;
  return CURAND_STATUS_SUCCESS;
}
// As documented, the Mersenne twisters have no offset.
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->type == CURAND_RNG_PSEUDO_MTGP32 || generator->type == CURAND_RNG_PSEUDO_MT19937)
    return CURAND_STATUS_TYPE_ERROR;
  generator->position = offset;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t ordering) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (IsQuasi(generator->type) != (ordering == CURAND_ORDERING_QUASI_DEFAULT))
    return CURAND_STATUS_OUT_OF_RANGE;
  generator->ordering = ordering;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator,
                                                       unsigned dimensions) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  if (!IsQuasi(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  if (dimensions < 1 || dimensions > kMostDimensions) return CURAND_STATUS_OUT_OF_RANGE;
  PrepareDimensions(dimensions);
  generator->dimensions = dimensions;
  return CURAND_STATUS_SUCCESS;
}
// There is no state to prepare: a number follows from its place.
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  return generator != nullptr ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, size_t count) {
  if (generator != nullptr && IsLong(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  return Generate(generator, to, count, Distribution::kWords, 0, 0);
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* to,
                                      size_t count) {
  if (generator != nullptr && !IsLong(generator->type)) return CURAND_STATUS_TYPE_ERROR;
  return Generate(generator, to, count, Distribution::kWords, 0, 0);
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* to, size_t count,
                                     double lambda) {
  constexpr double kLargest = 400000;  // as documented
  if (!(lambda > 0) || lambda > kLargest) return CURAND_STATUS_OUT_OF_RANGE;
  return Generate(generator, to, count, Distribution::kPoisson, lambda, 0);
}

#define SPILLWAY_RAND_REAL(suffix, Real)                                                           \
  curandStatus_t curandGenerateUniform##suffix(curandGenerator_t generator, Real* to,              \
                                               size_t count) {                                     \
    return Generate(generator, to, count, Distribution::kUniform, 0, 0);                           \
  }                                                                                                \
  curandStatus_t curandGenerateNormal##suffix(curandGenerator_t generator, Real* to, size_t count, \
                                              Real mean, Real deviation) {                         \
    return Generate(generator, to, count, Distribution::kNormal, static_cast<double>(mean),        \
                    static_cast<double>(deviation));                                               \
  }                                                                                                \
  curandStatus_t curandGenerateLogNormal##suffix(curandGenerator_t generator, Real* to,            \
                                                 size_t count, Real mean, Real deviation) {        \
    return Generate(generator, to, count, Distribution::kLogNormal, static_cast<double>(mean),     \
                    static_cast<double>(deviation));                                               \
  }
SPILLWAY_RAND_REAL(, float)
SPILLWAY_RAND_REAL(Double, double)
#undef SPILLWAY_RAND_REAL

// The scrambled sets have the same vectors: programs exclusive-or the constants themselves.
curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t* vectors[],
                                           curandDirectionVectorSet_t set) {
  if (set != CURAND_DIRECTION_VECTORS_32_JOEKUO6 && !IsScrambled(set))
    return CURAND_STATUS_OUT_OF_RANGE;
  *vectors = DirectionTable<curandDirectionVectors32_t, unsigned>();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t* vectors[],
                                           curandDirectionVectorSet_t set) {
  if (set != CURAND_DIRECTION_VECTORS_64_JOEKUO6 && !IsScrambled(set))
    return CURAND_STATUS_OUT_OF_RANGE;
  *vectors = DirectionTable<curandDirectionVectors64_t, unsigned long long>();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetScrambleConstants32(unsigned** constants) {
  *constants = ScrambleTable<unsigned>();
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetScrambleConstants64(unsigned long long** constants) {
  *constants = ScrambleTable<unsigned long long>();
  return CURAND_STATUS_SUCCESS;
}

}  // extern "C"
