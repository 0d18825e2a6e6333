// The packing of a product's operands into panels, from any strides.
#if defined(TENSORD_BACKENDS_CPU_MATMUL_PACKING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATMUL_PACKING_INL_H_
#undef TENSORD_BACKENDS_CPU_MATMUL_PACKING_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATMUL_PACKING_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/matmul/tiles.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Squares of this many elements are transposed in registers.
template <typename T>
inline constexpr int64_t kSquare = sizeof(T) == 8 ? 4 : 8;

HWY_INLINE void TransposeSquare(const double* const* from, double* to, int64_t to_step) {
  const hn::FixedTag<double, 4> d;
  const auto r0 = hn::LoadU(d, from[0]), r1 = hn::LoadU(d, from[1]), r2 = hn::LoadU(d, from[2]),
             r3 = hn::LoadU(d, from[3]);
  const auto even01 = hn::InterleaveLower(d, r0, r1), odd01 = hn::InterleaveUpper(d, r0, r1);
  const auto even23 = hn::InterleaveLower(d, r2, r3), odd23 = hn::InterleaveUpper(d, r2, r3);
  hn::StoreU(hn::ConcatLowerLower(d, even23, even01), d, to);
  hn::StoreU(hn::ConcatLowerLower(d, odd23, odd01), d, to + to_step);
  hn::StoreU(hn::ConcatUpperUpper(d, even23, even01), d, to + 2 * to_step);
  hn::StoreU(hn::ConcatUpperUpper(d, odd23, odd01), d, to + 3 * to_step);
}

HWY_INLINE void TransposeSquare(const float* const* from, float* to, int64_t to_step) {
  const hn::FixedTag<float, 8> d;
  const hn::FixedTag<double, 4> wide;
  using V = hn::Vec<decltype(d)>;
  V quads[8];  // [half][pair of terms]: four lines of two terms, within each 128 bits
  for (int half = 0; half < 2; ++half) {
    const float* const* rows = from + 4 * half;
    const V r0 = hn::LoadU(d, rows[0]), r1 = hn::LoadU(d, rows[1]), r2 = hn::LoadU(d, rows[2]),
            r3 = hn::LoadU(d, rows[3]);
    const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
    const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
    const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
    const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
    quads[4 * half] = hn::BitCast(d, hn::InterleaveLower(wide, low01, low23));
    quads[4 * half + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23));
    quads[4 * half + 2] = hn::BitCast(d, hn::InterleaveLower(wide, high01, high23));
    quads[4 * half + 3] = hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23));
  }
  for (int i = 0; i < 4; ++i) {
    hn::StoreU(hn::ConcatLowerLower(d, quads[4 + i], quads[i]), d, to + i * to_step);
    hn::StoreU(hn::ConcatUpperUpper(d, quads[4 + i], quads[i]), d, to + (4 + i) * to_step);
  }
}

template <typename T>
HWY_INLINE void CopyLines(const T* HWY_RESTRICT from, int64_t count, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(d));
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (i == count) return;
  const auto mask = hn::FirstN(d, static_cast<size_t>(count - i));
  hn::BlendedStore(hn::MaskedLoad(mask, d, from + i), mask, d, to + i);
}

inline constexpr int64_t kTermsAhead = 4;  // that memory is asked for: runs of several panels, so few are enough

// Packs terms that lie side by side: squares are transposed, and the edges copied one by one.
template <typename T>
void PackTransposed(const PanelPiece& piece, T* panel) {
  constexpr int64_t kSide = kSquare<T>;
  const T* const from = static_cast<const T*>(piece.from);
  const int64_t whole_terms = piece.terms / kSide * kSide;
  int64_t line = 0;
  for (; line + kSide <= piece.lines; line += kSide) {
    const T* rows[kSide];
    for (int64_t i = 0; i < kSide; ++i) rows[i] = from + piece.offsets[line + i];
    T* to = panel + line;
    for (int64_t term = 0; term < whole_terms; term += kSide) {
      TransposeSquare(rows, to, piece.term_step);
      for (int64_t i = 0; i < kSide; ++i) rows[i] += kSide;
      to += kSide * piece.term_step;
    }
    for (int64_t term = whole_terms; term < piece.terms; ++term) {
      for (int64_t i = 0; i < kSide; ++i) to[i] = *rows[i]++;
      to += piece.term_step;
    }
  }
  for (; line < piece.lines; ++line) {
    const T* const row = from + piece.offsets[line];
    for (int64_t term = 0; term < piece.terms; ++term) panel[term * piece.term_step + line] = row[term];
  }
}

// Term by term through all panels, which reads memory in long runs.
template <typename T>
void PackLines(const PanelPiece& piece, T* panels) {
  const T* const from = static_cast<const T*>(piece.from);
  const int64_t bytes = piece.lines * static_cast<int64_t>(sizeof(T));
  for (int64_t term = 0; term < piece.terms; ++term) {
    const T* lines = from + term * piece.term_stride;
    // Terms lie too far apart for the processor to see the next ones.
    const T* const next = lines + kTermsAhead * piece.term_stride;
    for (int64_t at = 0; at < bytes; at += 64) hwy::Prefetch(reinterpret_cast<const char*>(next) + at);
    T* to = panels + term * piece.term_step;
    for (int64_t rest = piece.lines; rest > 0; rest -= piece.width) {
      CopyLines(lines, std::min(rest, piece.width), to);
      lines += piece.width;
      to += piece.panel_step;
    }
  }
}

// Lines that lie side by side in several runs.
template <typename T>
void PackRuns(const PanelPiece& piece, T* panel) {
  for (int64_t line = 0; line < piece.lines;) {
    int64_t count = 1;
    while (line + count < piece.lines && piece.offsets[line + count] == piece.offsets[line] + count) ++count;
    const T* from = static_cast<const T*>(piece.from) + piece.offsets[line];
    T* to = panel + line;
    for (int64_t term = 0; term < piece.terms; ++term) {
      CopyLines(from, count, to);
      from += piece.term_stride;
      to += piece.term_step;
    }
    line += count;
  }
}

template <typename T>
void FillUp(const PanelPiece& piece, int64_t lines, T* panel) {
  if (lines == piece.width) return;
  for (int64_t term = 0; term < piece.terms; ++term) {
    T* const to = panel + term * piece.term_step;
    std::fill(to + lines, to + piece.width, T(0));
  }
}

template <typename T>
void PackOneByOne(const PanelPiece& piece, T* panel) {
  const T* from = static_cast<const T*>(piece.from);
  for (int64_t term = 0; term < piece.terms; ++term) {
    T* const to = panel + term * piece.term_step;
    for (int64_t line = 0; line < piece.lines; ++line) to[line] = from[piece.offsets[line]];
    from += piece.term_stride;
  }
}

// All lines are one.
template <typename T>
void PackRepeated(const PanelPiece& piece, T* panel) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(d));
  const T* from = static_cast<const T*>(piece.from) + piece.offsets[0];
  const auto mask = hn::FirstN(d, static_cast<size_t>(piece.lines % kWidth));
  for (int64_t term = 0; term < piece.terms; ++term) {
    T* const to = panel + term * piece.term_step;
    const auto element = hn::Set(d, *from);
    int64_t line = 0;
    for (; line + kWidth <= piece.lines; line += kWidth) hn::StoreU(element, d, to + line);
    if (line < piece.lines) hn::BlendedStore(element, mask, d, to + line);
    from += piece.term_stride;
  }
}

template <typename T>
void ScalePanel(const void* by, int64_t count, void* panel) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(d));
  const T* HWY_RESTRICT from = static_cast<const T*>(by);
  T* HWY_RESTRICT to = static_cast<T*>(panel);
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) hn::StoreU(hn::Mul(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  for (; i < count; ++i) to[i] *= from[i];
}

template <typename T>
void PackPiece(const PanelPiece& piece, void* panels) {
  T* const panel = static_cast<T*>(panels);
  if (piece.offsets == nullptr) {
    PackLines(piece, panel);
    const int64_t before = (piece.lines - 1) / piece.width;
    return FillUp(piece, piece.lines - before * piece.width, panel + before * piece.panel_step);
  }
  const bool is_repeated =
      piece.lines > 1 && std::all_of(piece.offsets + 1, piece.offsets + piece.lines,
                                     [first = piece.offsets[0]](int64_t offset) { return offset == first; });
  if (is_repeated) {
    PackRepeated(piece, panel);
  } else if (piece.term_stride == 1 && piece.terms >= kSquare<T>) {
    PackTransposed(piece, panel);
  } else if (piece.lines > 1 && piece.offsets[1] == piece.offsets[0] + 1) {
    PackRuns(piece, panel);
  } else {
    PackOneByOne(piece, panel);
  }
  FillUp(piece, piece.lines, panel);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#endif  // TENSORD_BACKENDS_CPU_MATMUL_PACKING_INL_H_
