#ifndef TENSORD_BACKENDS_CPU_FFT_LANES_LANE_ACCESS_INL_H_
#define TENSORD_BACKENDS_CPU_FFT_LANES_LANE_ACCESS_INL_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "ducc0/infra/simd.h"
#include "ducc0/math/cmplx.h"

// Lines in memory to vectors with a line in each lane, and back. For lanes.cc alone: its types belong to one
// instruction set.
namespace tensord::cpu::TENSORD_FFT_LANES {

namespace ducc = DUCC0_NAMESPACE;

template <typename T>
using Vector = ducc::native_simd<T>;
template <typename T>
using Complex = ducc::Cmplx<Vector<T>>;
template <typename T>
inline constexpr int kLanes = static_cast<int>(Vector<T>::size());

// f(0), …, f(count - 1), without a loop: arrays of vectors that such code indexes stay in registers.
template <int count, typename Function>
[[gnu::always_inline]] inline void Unrolled(const Function& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) [[gnu::always_inline]] { (f(i), ...); }
  (std::make_integer_sequence<int, count>());
}

template <typename T>
struct RawOf {
  typedef T type __attribute__((vector_size(sizeof(Vector<T>))));
};
template <typename T>
using Raw = typename RawOf<T>::type;

template <typename T>
inline Raw<T> LoadRaw(const T* from) {
  Raw<T> raw;
  std::memcpy(&raw, from, sizeof(raw));
  return raw;
}
template <typename T>
inline void StoreRaw(Raw<T> raw, T* into) {
  std::memcpy(into, &raw, sizeof(raw));
}
template <typename T>
inline Vector<T> FromRaw(Raw<T> raw) {
  return __builtin_bit_cast(Vector<T>, raw);
}
template <typename T>
inline Raw<T> ToRaw(Vector<T> vector) {
  return __builtin_bit_cast(Raw<T>, vector);
}

// Lane i of the result is lane kPick(i) of a and b, one after the other.
template <typename T, typename Pick, size_t... i>
inline Raw<T> Shuffle(Raw<T> a, Raw<T> b, Pick, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, Pick::Of(static_cast<int>(i))...);
}
template <typename T, typename Pick>
inline Raw<T> Shuffle(Raw<T> a, Raw<T> b, Pick pick) {
  return Shuffle<T>(a, b, pick, std::make_index_sequence<kLanes<T>>());
}
template <int parity>
struct Every2nd {
  static constexpr int Of(int i) { return 2 * i + parity; }
};
template <int lanes, bool high>
struct Alternate {
  static constexpr int Of(int i) { return (high ? lanes / 2 : 0) + i / 2 + (i % 2 == 0 ? 0 : lanes); }
};
// The halves of a butterfly of a transposition, `step` lanes apart.
template <int lanes, int step, bool second>
struct Exchange {
  static constexpr int Of(int i) {
    if (!second) return (i & step) == 0 ? i : lanes + i - step;
    return (i & step) == 0 ? i + step : lanes + i;
  }
};

// kLanes complex numbers that lie together.
template <typename T>
inline Complex<T> LoadComplex(const T* from) {
  if constexpr (kLanes<T> == 1) {
    return {Vector<T>(from[0]), Vector<T>(from[1])};
  } else {
    const Raw<T> a = LoadRaw<T>(from), b = LoadRaw<T>(from + kLanes<T>);
    return {FromRaw<T>(Shuffle<T>(a, b, Every2nd<0>())), FromRaw<T>(Shuffle<T>(a, b, Every2nd<1>()))};
  }
}
template <typename T>
inline void StoreComplex(const Complex<T>& value, T* into) {
  if constexpr (kLanes<T> == 1) {
    into[0] = value.r[0];
    into[1] = value.i[0];
  } else {
    const Raw<T> r = ToRaw<T>(value.r), i = ToRaw<T>(value.i);
    StoreRaw<T>(Shuffle<T>(r, i, Alternate<kLanes<T>, false>()), into);
    StoreRaw<T>(Shuffle<T>(r, i, Alternate<kLanes<T>, true>()), into + kLanes<T>);
  }
}
template <typename T>
inline Vector<T> LoadReal(const T* from) {
  return FromRaw<T>(LoadRaw<T>(from));
}
template <typename T>
inline void StoreReal(Vector<T> value, T* into) {
  StoreRaw<T>(ToRaw<T>(value), into);
}

template <typename T>
struct Square {
  Raw<T> rows[kLanes<T>];
  Raw<T>& operator[](int i) { return rows[i]; }
};

template <typename T, int step>
inline void TransposeStep(Square<T>* rows) {
  constexpr int lanes = kLanes<T>;
  Unrolled<lanes>([&](int i) {
    if ((i & step) != 0) return;
    const Raw<T> a = (*rows)[i], b = (*rows)[i + step];
    (*rows)[i] = Shuffle<T>(a, b, Exchange<lanes, step, false>());
    (*rows)[i + step] = Shuffle<T>(a, b, Exchange<lanes, step, true>());
  });
  if constexpr (step > 1) TransposeStep<T, step / 2>(rows);
}
template <typename T>
inline void Transpose(Square<T>* rows) {
  if constexpr (kLanes < T >> 1) TransposeStep<T, kLanes<T> / 2>(rows);
}

// A group of up to kLanes lines: the places of their first elements, and the distance of neighbours along them, in
// elements.
struct LineGroup {
  int count = 0;
  bool together = false;  // kLanes of them, element beside element
  bool dense = false;     // kLanes of them, each without gaps
  int64_t step = 1;
  std::array<int64_t, 16> offsets{};
};

// Calls put(k, values) for elements [0, size) of the lines; lanes without a line are zero.
template <typename T, typename Put>
inline void ReadReal(const T* from, const LineGroup& lines, int64_t size, const Put& put) {
  constexpr int lanes = kLanes<T>;
  int64_t k = 0;
  if (lines.together) {
    for (; k < size; ++k) put(k, LoadReal<T>(from + lines.offsets[0] + k * lines.step));
  } else if (lines.dense) {
    for (; k + lanes <= size; k += lanes) {
      Square<T> square;
      Unrolled<lanes>([&](int l) { square[l] = LoadRaw<T>(from + lines.offsets[static_cast<size_t>(l)] + k); });
      Transpose<T>(&square);
      Unrolled<lanes>([&](int l) { put(k + l, FromRaw<T>(square[l])); });
    }
  }
  for (; k < size; ++k) {
    Raw<T> value{};
    for (int l = 0; l < lines.count; ++l) value[l] = from[lines.offsets[static_cast<size_t>(l)] + k * lines.step];
    put(k, FromRaw<T>(value));
  }
}

template <typename T, typename Put>
inline void ReadComplex(const T* from, const LineGroup& lines, int64_t size, const Put& put) {
  constexpr int lanes = kLanes<T>;
  int64_t k = 0;
  if (lines.together) {
    for (; k < size; ++k) put(k, LoadComplex<T>(from + 2 * (lines.offsets[0] + k * lines.step)));
  } else if (lines.dense) {
    for (; k + lanes <= size; k += lanes) {
      Square<T> real, imaginary;
      Unrolled<lanes>([&](int l) {
        const Complex<T> row = LoadComplex<T>(from + 2 * (lines.offsets[static_cast<size_t>(l)] + k));
        real[l] = ToRaw<T>(row.r);
        imaginary[l] = ToRaw<T>(row.i);
      });
      Transpose<T>(&real);
      Transpose<T>(&imaginary);
      Unrolled<lanes>([&](int l) { put(k + l, Complex<T>(FromRaw<T>(real[l]), FromRaw<T>(imaginary[l]))); });
    }
  }
  for (; k < size; ++k) {
    Raw<T> r{}, i{};
    for (int l = 0; l < lines.count; ++l) {
      const T* const element = from + 2 * (lines.offsets[static_cast<size_t>(l)] + k * lines.step);
      r[l] = element[0];
      i[l] = element[1];
    }
    put(k, Complex<T>(FromRaw<T>(r), FromRaw<T>(i)));
  }
}

// Stores get(k) as elements [0, size) of the lines.
template <typename T, typename Get>
inline void WriteReal(T* into, const LineGroup& lines, int64_t size, const Get& get) {
  constexpr int lanes = kLanes<T>;
  int64_t k = 0;
  if (lines.together) {
    for (; k < size; ++k) StoreReal<T>(get(k), into + lines.offsets[0] + k * lines.step);
  } else if (lines.dense) {
    for (; k + lanes <= size; k += lanes) {
      Square<T> square;
      Unrolled<lanes>([&](int l) { square[l] = ToRaw<T>(get(k + l)); });
      Transpose<T>(&square);
      Unrolled<lanes>([&](int l) { StoreRaw<T>(square[l], into + lines.offsets[static_cast<size_t>(l)] + k); });
    }
  }
  for (; k < size; ++k) {
    const Raw<T> value = ToRaw<T>(get(k));
    for (int l = 0; l < lines.count; ++l) into[lines.offsets[static_cast<size_t>(l)] + k * lines.step] = value[l];
  }
}

template <typename T, typename Get>
inline void WriteComplex(T* into, const LineGroup& lines, int64_t size, const Get& get) {
  constexpr int lanes = kLanes<T>;
  int64_t k = 0;
  if (lines.together) {
    for (; k < size; ++k) StoreComplex<T>(get(k), into + 2 * (lines.offsets[0] + k * lines.step));
  } else if (lines.dense) {
    for (; k + lanes <= size; k += lanes) {
      Square<T> real, imaginary;
      Unrolled<lanes>([&](int l) {
        const Complex<T> value = get(k + l);
        real[l] = ToRaw<T>(value.r);
        imaginary[l] = ToRaw<T>(value.i);
      });
      Transpose<T>(&real);
      Transpose<T>(&imaginary);
      Unrolled<lanes>([&](int l) {
        StoreComplex<T>(Complex<T>(FromRaw<T>(real[l]), FromRaw<T>(imaginary[l])),
                        into + 2 * (lines.offsets[static_cast<size_t>(l)] + k));
      });
    }
  }
  for (; k < size; ++k) {
    const Complex<T> value = get(k);
    const Raw<T> r = ToRaw<T>(value.r), i = ToRaw<T>(value.i);
    for (int l = 0; l < lines.count; ++l) {
      T* const element = into + 2 * (lines.offsets[static_cast<size_t>(l)] + k * lines.step);
      element[0] = r[l];
      element[1] = i[l];
    }
  }
}

}  // namespace tensord::cpu::TENSORD_FFT_LANES

#endif  // TENSORD_BACKENDS_CPU_FFT_LANES_LANE_ACCESS_INL_H_
