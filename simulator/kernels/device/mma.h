// Replaces NVIDIA's mma.h: matrix fragments of a warp (wmma).
//
// A fragment's layout is the simulator's own: lane l has the elements from l * num_elements on,
// counted row by row. One lane multiplies for the whole warp. Bits are in mma_bits.h; elements of
// four bits are left out. Source: CUDA C++ Programming Guide, Warp Matrix Functions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "simulator/kernels/device/half.h"
#include "simulator/kernels/device/standard.h"
#include "simulator/kernels/device/warps.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
namespace precision {
struct tf32;
}  // namespace precision
enum layout_t { mem_row_major, mem_col_major };

namespace details {

template <typename T>
struct Storage {
  using type = T;
};
template <>
struct Storage<precision::tf32> {
  using type = float;
};

template <typename Use, int kM, int kN, int kK>
struct Shape {
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? kK : kM;
  static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? kK : kN;
};

// Sums have the accumulator's type, those of half precision a float's.
template <typename T>
using Sum = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <typename To, typename T>
inline To Read(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<To>(value);
  else
    return static_cast<To>(spillway::simulator::device::Float(value));
}
template <typename T, typename From>
inline T Rounded(From value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return spillway::simulator::device::Rounded(value, T{});
}

inline float WithoutLowBits(float value) {
  const auto bits = spillway::simulator::device::BitCast<std::uint32_t>(value);
  return spillway::simulator::device::BitCast<float>(bits & 0xffffe000u);
}

}  // namespace details

template <typename Use, int kM, int kN, int kK, typename T, typename Layout = void>
class fragment {
  using Shape = details::Shape<Use, kM, kN, kK>;

 public:
  using element_type = T;
  using storage_element_type = typename details::Storage<T>::type;
  static constexpr int kRows = Shape::kRows, kColumns = Shape::kColumns;
  static constexpr int num_elements = kRows * kColumns / 32;
  static constexpr int num_storage_elements = num_elements;
  storage_element_type x[num_elements];
};

template <typename Fragment, typename T>
static inline void fill_fragment(Fragment& fragment, const T& value) {
  for (auto& element : fragment.x) element = value;
}

namespace details {

template <typename Fragment, typename Visit>
static inline void ForEachElement(Fragment& fragment, unsigned stride, bool by_row, Visit visit) {
  const unsigned lane = spillway::simulator::device::Lane(threadIdx, blockDim);
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const unsigned element = lane * Fragment::num_elements + static_cast<unsigned>(i);
    const std::size_t row = element / Fragment::kColumns, column = element % Fragment::kColumns;
    visit(fragment.x[i], by_row ? row * stride + column : column * stride + row);
  }
}

}  // namespace details

template <typename Use, int kM, int kN, int kK, typename T, typename Layout, typename Memory>
static inline void load_matrix_sync(fragment<Use, kM, kN, kK, T, Layout>& to, const Memory* from,
                                    unsigned stride) {
  details::ForEachElement(to, stride, std::is_same_v<Layout, row_major>,
                          [&](auto& element, std::size_t at) { element = from[at]; });
}
template <int kM, int kN, int kK, typename T, typename Memory>
static inline void load_matrix_sync(fragment<accumulator, kM, kN, kK, T>& to, const Memory* from,
                                    unsigned stride, layout_t layout) {
  details::ForEachElement(to, stride, layout == mem_row_major,
                          [&](auto& element, std::size_t at) { element = from[at]; });
}
template <int kM, int kN, int kK, typename T, typename Memory>
static inline void store_matrix_sync(Memory* to, const fragment<accumulator, kM, kN, kK, T>& from,
                                     unsigned stride, layout_t layout) {
  details::ForEachElement(from, stride, layout == mem_row_major,
                          [&](const auto& element, std::size_t at) { to[at] = element; });
}

namespace details {

template <typename A, typename B, typename C, typename D>
struct Product {
  const A* a;
  const B* b;
  const C* c;
  D* d;

  using Total = Sum<typename C::storage_element_type>;

  template <typename Fragment>
  static Total Element(const Fragment& fragment, int at) {
    if constexpr (std::is_same_v<typename Fragment::element_type, precision::tf32>)
      return WithoutLowBits(fragment.x[at]);
    else
      return Read<Total>(fragment.x[at]);
  }

  // A row's sums stay in registers. Memory would delay each addition.
  typedef Total Row __attribute__((vector_size(sizeof(Total) * C::kColumns), may_alias));

  // One lane's elements lie in one row or in several whole rows.
  static std::uint64_t Multiply(const spillway::simulator::executor::WarpView& view,
                                unsigned lane) {
    if (lane != 0) return 0;
    static Total a[A::kRows][A::kColumns];
    alignas(Row) static Total b[B::kRows][B::kColumns], sums[C::kRows][C::kColumns];
    const auto lane_product = [&](unsigned of) {
      return reinterpret_cast<const Product*>(view.values[of]);
    };
    for (unsigned of = 0; of < 32; ++of) {
      const Product& product = *lane_product(of);
      for (int i = 0; i < A::num_elements; ++i)
        (&a[0][0])[of * A::num_elements + i] = Element(*product.a, i);
      for (int i = 0; i < B::num_elements; ++i)
        (&b[0][0])[of * B::num_elements + i] = Element(*product.b, i);
      for (int i = 0; i < C::num_elements; ++i)
        (&sums[0][0])[of * C::num_elements + i] = Element(*product.c, i);
    }
    for (int row = 0; row < C::kRows; ++row) {
      Row& in_memory = reinterpret_cast<Row&>(sums[row]);
      Row sum = in_memory;
      for (int k = 0; k < A::kColumns; ++k) sum += a[row][k] * reinterpret_cast<const Row&>(b[k]);
      in_memory = sum;
    }
    for (unsigned of = 0; of < 32; ++of) {
      for (int i = 0; i < D::num_elements; ++i)
        lane_product(of)->d->x[i] =
            Rounded<typename D::storage_element_type>((&sums[0][0])[of * D::num_elements + i]);
    }
    return 0;
  }
};

}  // namespace details

template <int kM, int kN, int kK, typename T, typename LayoutA, typename LayoutB, typename D,
          typename C>
static inline void mma_sync(fragment<accumulator, kM, kN, kK, D>& d,
                            const fragment<matrix_a, kM, kN, kK, T, LayoutA>& a,
                            const fragment<matrix_b, kM, kN, kK, T, LayoutB>& b,
                            const fragment<accumulator, kM, kN, kK, C>& c, bool = false) {
  using Product =
      details::Product<fragment<matrix_a, kM, kN, kK, T, LayoutA>,
                       fragment<matrix_b, kM, kN, kK, T, LayoutB>,
                       fragment<accumulator, kM, kN, kK, C>, fragment<accumulator, kM, kN, kK, D>>;
  Product product{&a, &b, &c, &d};
  spillway::simulator::device::InWarp(~0u, reinterpret_cast<std::uint64_t>(&product), 0,
                                      Product::Multiply);
}

// To the nearest of ten mantissa bits, away from zero in a tie.
static inline float __float_to_tf32(float value) {
  const auto bits = spillway::simulator::device::BitCast<std::uint32_t>(value);
  return details::WithoutLowBits(spillway::simulator::device::BitCast<float>(bits + 0x1000u));
}

}  // namespace nvcuda::wmma

#include "simulator/kernels/device/mma_bits.h"
