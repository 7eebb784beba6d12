// Discrete Fourier transforms of one line, of any length, in double precision.
//
// Invariants
//  1. Results depend on the values alone: fixed order, one thread.
//  2. A length is split into its prime factors. Bluestein's method serves prime factors beyond 64.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace spillway::simulator::fft {

using Complex = std::complex<double>;

class LineTransform {
 public:
  // -1 forward, 1 inverse; nothing is scaled.
  LineTransform(std::int64_t length, int sign);
  ~LineTransform();

  std::int64_t length() const { return length_; }
  void Run(Complex* line);

 private:
  void Split(const Complex* from, std::int64_t step, Complex* to, std::int64_t length,
             std::size_t factor);
  void Combine(Complex* to, std::int64_t length, std::int64_t radix);
  void Chirp(Complex* line);

  std::int64_t length_;
  std::vector<std::int64_t> factors_;
  std::vector<Complex> roots_;  // of unity, the length's
  std::vector<Complex> copy_;
  std::vector<Complex> legs_;
  std::unique_ptr<LineTransform> forward_, backward_;  // of the padded length, for Bluestein
  std::vector<Complex> chirp_, kernel_, padded_;
};

}  // namespace spillway::simulator::fft
