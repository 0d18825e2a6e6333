#include "backends/cpu/gemm_tiles.h"

#include <algorithm>
#include <cstddef>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm_tiles.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/gemm_packing-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// Without masks and fused multiply-adds BLAS has better loops.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

// Sums, a column of a and one element of b fill the registers.
constexpr int kVectors = 3;
constexpr int kColumns = HWY_TARGET == HWY_AVX3 ? 8 : 4;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

constexpr int64_t kTermsTogether = 4;

// The lines of the cache that hold terms [term, term + kTermsTogether) of a panel of b, or, where the columns of it lie
// apart, as many of those that hold the terms around them.
template <bool kPacksB, typename T>
HWY_INLINE void PrefetchTerms(const T* panel, int64_t term, int64_t column_step) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < kTermsTogether * kColumns / kLine; ++i) {
    const int64_t in_line = term % kLine;
    hwy::Prefetch(kPacksB ? panel + term * kColumns + i * kLine
                          : panel + (in_line * kColumns / kLine + i) * column_step + term - in_line);
  }
}

// A tile of kTall vectors by kWide columns. kIsCut: of the last vector only `last` elements exist. `next` is the panel
// of b that will be read after this one, to be brought into the cache; else null.
template <int kTall, int kWide, bool kIsCut, bool kPacksB, typename T>
HWY_NOINLINE void MultiplyTile(const TiledBlock& block, int64_t last, const T* HWY_RESTRICT a, const T* HWY_RESTRICT b,
                               const T* next, T* HWY_RESTRICT c) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const auto mask = hn::FirstN(d, static_cast<size_t>(last));
  const int64_t c_step = block.c_column_step;
  for (int j = 0; j < kWide; ++j) {
    for (int v = 0; v < kTall; ++v) hwy::Prefetch(c + j * c_step + v * kLanes<T>);
  }
  V sums[kWide][kTall];
  HWY_UNROLL(8)
  for (int j = 0; j < kWide; ++j) {
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) sums[j][v] = hn::Zero(d);
  }
  const int64_t a_step = block.a_term_step;
  const int64_t b_step = kPacksB ? kColumns : block.b_term_step;
  const int64_t b_column = kPacksB ? 1 : block.b_column_step;
  const bool masks_a = kIsCut && !block.packs_a;
  const auto add_term = [&](const T* a_term, const T* b_term) HWY_ATTR {
    V column[kTall];
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) {
      const T* at = a_term + v * kLanes<T>;
      column[v] = kIsCut && v + 1 == kTall && masks_a ? hn::MaskedLoad(mask, d, at) : hn::LoadU(d, at);
    }
    HWY_UNROLL(8)
    for (int j = 0; j < kWide; ++j) {
      const V factor = hn::Set(d, b_term[j * b_column]);
      HWY_UNROLL(3)
      for (int v = 0; v < kTall; ++v) sums[j][v] = hn::MulAdd(column[v], factor, sums[j][v]);
    }
  };
  const int64_t run = block.run_terms == 0 ? block.k : block.run_terms;
  for (int64_t term = 0; term < block.k;) {
    const int64_t end = std::min(term + run, block.k);
    const T* HWY_RESTRICT a_term = a;
    for (; term + kTermsTogether <= end; term += kTermsTogether) {
      if (next != nullptr) PrefetchTerms<kPacksB>(next, term, b_column);
      HWY_UNROLL(4)
      for (int i = 0; i < kTermsTogether; ++i) add_term(a_term + i * a_step, b + i * b_step);
      a_term += kTermsTogether * a_step;
      b += kTermsTogether * b_step;
    }
    for (; term < end; ++term) {
      add_term(a_term, b);
      a_term += a_step;
      b += b_step;
    }
    a += block.a_run_step;
  }
  HWY_UNROLL(8)
  for (int j = 0; j < kWide; ++j) {
    T* const column = c + j * c_step;
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) {
      T* const at = column + v * kLanes<T>;
      if (kIsCut && v + 1 == kTall) {
        const V before = block.accumulates ? hn::MaskedLoad(mask, d, at) : hn::Zero(d);
        hn::BlendedStore(hn::Add(sums[j][v], before), mask, d, at);
      } else {
        hn::StoreU(block.accumulates ? hn::Add(sums[j][v], hn::LoadU(d, at)) : sums[j][v], d, at);
      }
    }
  }
}

template <typename T>
using TileFunction = void (*)(const TiledBlock& block, int64_t last, const T* a, const T* b, const T* next, T* c);

template <typename T, int kTall, bool kIsCut, bool kPacksB>
TileFunction<T> OfWidth(int64_t columns) {
  switch (columns) {
    case 1:
      return MultiplyTile<kTall, 1, kIsCut, kPacksB, T>;
    case 2:
      return MultiplyTile<kTall, 2, kIsCut, kPacksB, T>;
    case 3:
      return MultiplyTile<kTall, 3, kIsCut, kPacksB, T>;
#if HWY_TARGET == HWY_AVX3
    case 4:
      return MultiplyTile<kTall, 4, kIsCut, kPacksB, T>;
    case 5:
      return MultiplyTile<kTall, 5, kIsCut, kPacksB, T>;
    case 6:
      return MultiplyTile<kTall, 6, kIsCut, kPacksB, T>;
    case 7:
      return MultiplyTile<kTall, 7, kIsCut, kPacksB, T>;
#endif
    default:
      return MultiplyTile<kTall, kColumns, kIsCut, kPacksB, T>;
  }
}

template <typename T, int kTall>
TileFunction<T> OfHeight(int64_t columns, bool is_cut, bool packs_b) {
  if (is_cut) return packs_b ? OfWidth<T, kTall, true, true>(columns) : OfWidth<T, kTall, true, false>(columns);
  return packs_b ? OfWidth<T, kTall, false, true>(columns) : OfWidth<T, kTall, false, false>(columns);
}

template <typename T>
TileFunction<T> TileFor(int64_t rows, int64_t columns, bool packs_b) {
  const bool is_cut = rows % kLanes<T> != 0;
  switch ((rows + kLanes<T> - 1) / kLanes<T>) {
    case 1:
      return OfHeight<T, 1>(columns, is_cut, packs_b);
    case 2:
      return OfHeight<T, 2>(columns, is_cut, packs_b);
    default:
      return OfHeight<T, kVectors>(columns, is_cut, packs_b);
  }
}

template <typename T>
void MultiplyBlock(const TiledBlock& block) {
  constexpr int64_t kRows = kVectors * kLanes<T>;
  const T* const a = static_cast<const T*>(block.a);
  const T* b = static_cast<const T*>(block.b);
  T* c = static_cast<T*>(block.c);
  const int64_t whole_rows = block.m / kRows;
  const int64_t rest = block.m - whole_rows * kRows;
  const int64_t last = rest == 0 ? kLanes<T> : (rest - 1) % kLanes<T> + 1;
  const bool reads_lines = block.packs_b || block.b_term_step == 1;
  // A panel of b stays in a near cache while those of a go by.
  for (int64_t column = 0; column < block.n; column += kColumns) {
    const int64_t columns = std::min<int64_t>(kColumns, block.n - column);
    const TileFunction<T> whole = TileFor<T>(kRows, columns, block.packs_b);
    const T* const next = reads_lines && column + columns < block.n ? b + block.b_panel_step : nullptr;
    for (int64_t i = 0; i < whole_rows; ++i) {
      const bool is_last = rest == 0 && i + 1 == whole_rows;
      whole(block, kLanes<T>, a + i * block.a_panel_step, b, is_last ? next : nullptr, c + i * kRows);
    }
    if (rest > 0) {
      TileFor<T>(rest, columns, block.packs_b)(block, last, a + whole_rows * block.a_panel_step, b, next,
                                               c + whole_rows * kRows);
    }
    b += block.b_panel_step;
    c += kColumns * block.c_column_step;
  }
}

template <typename T>
constexpr GemmTiles Tiles() {
  return {kVectors * kLanes<T>, kColumns, MultiplyBlock<T>, PackPiece<T>};
}

#else

template <typename T>
constexpr GemmTiles Tiles() {
  return {};
}

#endif

}  // namespace

GemmTiles BestGemmTiles(DType dtype) {
  if (dtype == DType::kF32) return Tiles<float>();
  return dtype == DType::kF64 ? Tiles<double>() : GemmTiles();
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestGemmTiles);

GemmTiles GetGemmTiles(DType dtype) { return HWY_DYNAMIC_DISPATCH(BestGemmTiles)(dtype); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
