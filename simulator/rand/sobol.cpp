#include "simulator/rand/sobol.h"

#include <memory>
#include <mutex>
#include <vector>

#include "simulator/rand/philox.h"

namespace spillway::simulator::rand {
namespace {

// A polynomial over GF(2): bit i is the coefficient of x^i. The degree is known.
std::uint32_t Times(std::uint32_t a, std::uint32_t b, std::uint32_t polynomial, int degree) {
  std::uint32_t product = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) product ^= a;
    a <<= 1;
    if (a >> degree) a ^= polynomial;
  }
  return product;
}

std::uint32_t PowerOfX(std::uint32_t exponent, std::uint32_t polynomial, int degree) {
  std::uint32_t result = 1;
  std::uint32_t base = degree == 1 ? 1 : 2;  // x itself, reduced
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = Times(result, base, polynomial, degree);
    base = Times(base, base, polynomial, degree);
  }
  return result;
}

std::vector<std::uint32_t> PrimeFactors(std::uint32_t number) {
  std::vector<std::uint32_t> factors;
  for (std::uint32_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) factors.push_back(factor);
    while (number % factor == 0) number /= factor;
  }
  if (number > 1) factors.push_back(number);
  return factors;
}

class Polynomials {
 public:
  struct Found {
    std::uint32_t polynomial;
    int degree;
  };

  Found Next() {
    while (true) {
      if (candidate_ >> (degree_ + 1)) {
        ++degree_;
        candidate_ = (1u << degree_) + 1;
        factors_ = PrimeFactors((1u << degree_) - 1);
      }
      const std::uint32_t polynomial = candidate_;
      candidate_ += 2;  // without a constant term x would divide it
      if (IsPrimitive(polynomial)) return {polynomial, degree_};
    }
  }

 private:
  bool IsPrimitive(std::uint32_t polynomial) const {
    const std::uint32_t order = (1u << degree_) - 1;
    if (PowerOfX(order, polynomial, degree_) != 1) return false;
    for (const std::uint32_t factor : factors_) {
      if (PowerOfX(order / factor, polynomial, degree_) == 1) return false;
    }
    return true;
  }

  int degree_ = 1;
  std::uint32_t candidate_ = 3;
  std::vector<std::uint32_t> factors_;
};

constexpr std::uint32_t kKnownDimensions = 10;
constexpr std::uint64_t kKnown[kKnownDimensions][5] = {
    {},           {1},           {1, 3},           {1, 3, 1},       {1, 1, 1},
    {1, 1, 3, 3}, {1, 3, 5, 13}, {1, 1, 5, 5, 17}, {1, 1, 5, 5, 5}, {1, 1, 7, 11, 19}};

// Any odd number below 2^(i + 1) makes a Sobol sequence.
std::uint64_t InitialNumber(std::uint32_t dimension, int i) {
  if (dimension < kKnownDimensions) return kKnown[dimension][i];
  constexpr std::uint64_t kKey = 0x50B01;
  return (Philox(kKey, dimension, i)[0] & ((1u << i << 1) - 1)) | 1;
}

Directions MakeDirections(std::uint32_t dimension, const Polynomials::Found& found) {
  Directions directions;
  const int degree = found.degree;
  for (int i = 0; i < 64; ++i) {
    if (i < degree) {
      directions[i] = InitialNumber(dimension, i) << (63 - i);
      continue;
    }
    directions[i] = directions[i - degree] ^ (directions[i - degree] >> degree);
    for (int k = 1; k < degree; ++k) {
      if ((found.polynomial >> (degree - k)) & 1) directions[i] ^= directions[i - k];
    }
  }
  return directions;
}

struct Table {
  std::mutex mutex;
  std::uint32_t prepared = 0;                // guarded by mutex
  Polynomials polynomials;                   // guarded by mutex
  std::unique_ptr<Directions[]> dimensions;  // a prepared one is constant
};

Table& TheTable() {
  static auto* const table = [] {
    auto* made = new Table;
    made->dimensions.reset(new Directions[kMostDimensions]);
    return made;
  }();
  return *table;
}

}  // namespace

void PrepareDimensions(std::uint32_t count) {
  Table& table = TheTable();
  const std::lock_guard lock(table.mutex);
  for (; table.prepared < count; ++table.prepared) {
    Directions& directions = table.dimensions[table.prepared];
    if (table.prepared > 0) {
      directions = MakeDirections(table.prepared, table.polynomials.Next());
      continue;
    }
    for (int i = 0; i < 64; ++i) directions[i] = std::uint64_t{1} << (63 - i);
  }
}

const Directions& DirectionsOf(std::uint32_t dimension) { return TheTable().dimensions[dimension]; }

std::uint64_t ScrambleOf(std::uint32_t dimension) {
  constexpr std::uint64_t kKey = 0x5C4A3B1E;
  const PhiloxBlock block = Philox(kKey, dimension, 0);
  return (std::uint64_t{block[0]} << 32) | block[1];
}

std::uint64_t SobolPoint(std::uint32_t dimension, std::uint64_t index) {
  const Directions& directions = DirectionsOf(dimension);
  std::uint64_t point = 0;
  std::uint64_t gray = index ^ (index >> 1);
  for (int i = 0; gray != 0; ++i, gray >>= 1) {
    if (gray & 1) point ^= directions[i];
  }
  return point;
}

}  // namespace spillway::simulator::rand
