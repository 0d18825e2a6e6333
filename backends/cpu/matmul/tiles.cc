#include "backends/cpu/matmul/tiles.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/tiles.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backends/cpu/matmul/packing-inl.h"
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
// The columns of a tile of one vector: fewer sums would wait for each other. Its panels are to be in the nearest cache
// still.
constexpr int kThinColumns = 8;
constexpr int64_t kThinBytes = int64_t{12} << 10;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

// The lanes of a vector of windows that are read in place: masks of AVX2 are vectors, for which no registers are left.
template <typename T>
constexpr int64_t kWindowLanes = HWY_TARGET == HWY_AVX3 ? kLanes<T> : 0;

// Lines of columns and rows that lie a multiple of some KiB apart crowd each other out of the nearest cache, and few
// columns in a tile make each row be read often: a factor of two for a matrix of 512 KiB with AVX2.
constexpr bool kReadsColumns = HWY_TARGET == HWY_AVX3;
// An operand of at most this size is read as it lies, however often.
constexpr int64_t kUnpackedBytes = int64_t{HWY_TARGET == HWY_AVX3 ? 512 : 64} << 10;

constexpr int64_t kTermsTogether =
    4;  // between two requests for the next panel, a line of the cache for each eight numbers

// Fetches the lines of the cache that hold terms [term, term + kTermsTogether) of a panel of b. If the columns of b lie
// apart, fetches as many of the lines that hold the terms around them.
template <bool kPacksB, typename T>
HWY_INLINE void PrefetchTerms(const T* panel, int64_t term, int64_t column_step) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < kTermsTogether * kColumns / kLine; ++i) {
    const int64_t in_line = term % kLine;
    hwy::Prefetch(kPacksB ? panel + term * kColumns + i * kLine
                          : panel + (in_line * kColumns / kLine + i) * column_step + term - in_line);
  }
}

template <int kTall, int kWide, typename T>
HWY_INLINE void PrefetchResult(const T* c, int64_t c_step) {
  for (int j = 0; j < kWide; ++j) {
    for (int v = 0; v < kTall; ++v) hwy::Prefetch(c + j * c_step + v * kLanes<T>);
  }
}

template <int kTall, int kWide, class V>
HWY_INLINE void ClearSums(V (&sums)[kWide][kTall]) {
  HWY_UNROLL(8)
  for (int j = 0; j < kWide; ++j) {
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) sums[j][v] = hn::Zero(hn::DFromV<V>());
  }
}

template <int kTall, int kWide, class V, typename T>
HWY_INLINE void AddTerm(const V (&column)[kTall], const T* b, int64_t b_column, int64_t b_panel,
                        V (&sums)[kWide][kTall]) {
  HWY_UNROLL(8)
  for (int j = 0; j < kWide; ++j) {
    const V factor = hn::Set(hn::DFromV<V>(), b[j / kColumns * b_panel + j % kColumns * b_column]);
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) sums[j][v] = hn::MulAdd(column[v], factor, sums[j][v]);
  }
}

// Stores the sums. If `is_cut`, stores only the lanes of the mask of the last vector.
template <int kTall, int kWide, class V, class M, typename T>
HWY_INLINE void StoreSums(const V (&sums)[kWide][kTall], bool is_cut, M mask, bool accumulates, T* c, int64_t c_step) {
  const Tag<T> d;
  HWY_UNROLL(8)
  for (int j = 0; j < kWide; ++j) {
    T* const column = c + j * c_step;
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) {
      T* const at = column + v * kLanes<T>;
      if (is_cut && v + 1 == kTall) {
        const V before = accumulates ? hn::MaskedLoad(mask, d, at) : hn::Zero(d);
        hn::BlendedStore(hn::Add(sums[j][v], before), mask, d, at);
      } else {
        hn::StoreU(accumulates ? hn::Add(sums[j][v], hn::LoadU(d, at)) : sums[j][v], d, at);
      }
    }
  }
}

// Multiplies a tile of kTall vectors by kWide columns, which may belong to two panels. kIsCut: only `last` elements of
// the last vector exist. `next` is the panel of b to be read after this one, fetched into the cache; else null.
template <int kTall, int kWide, bool kIsCut, bool kPacksB, typename T>
HWY_NOINLINE void MultiplyTile(const TiledBlock& block, int64_t last, const T* HWY_RESTRICT a, const T* HWY_RESTRICT b,
                               const T* next, T* HWY_RESTRICT c) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  const auto mask = hn::FirstN(d, static_cast<size_t>(last));
  PrefetchResult<kTall, kWide>(c, block.c_column_step);
  V sums[kWide][kTall];
  ClearSums(sums);
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
    AddTerm(column, b_term, b_column, block.b_panel_step, sums);
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
  StoreSums(sums, kIsCut, mask, block.accumulates, c, block.c_column_step);
}

#if HWY_TARGET == HWY_AVX3

// kTall vectors of rows that are windows, for a run of terms.
template <int kTall, int kPieces, typename T>
struct WindowRun {
  const T* base;
  int64_t places[kTall][kPieces];  // from there
  const uint16_t* bits[kTall];
  uint32_t cut = 0;  // vectors of which lanes do not exist or lie in the second piece

  // Missing elements may lie far from the tensor, and loads from missing pages are slow: they are read at `a`.
  HWY_INLINE WindowRun(const TiledRows& rows, const uint16_t* masks, const int64_t* offsets, int64_t run_offset,
                       const T* a) {
    constexpr uint32_t kAll = (uint32_t{1} << kLanes<T>)-1;
    uint32_t existing = 0;
    for (int v = 0; v < kTall; ++v) {
      bits[v] = masks + v * rows.masks_step;
      for (int p = 0; p < kPieces; ++p) {
        existing |= bits[v][p];
        places[v][p] = bits[v][p] == 0 ? 0 : run_offset + offsets[v * kPieces + p];
      }
      cut |= (bits[v][0] != kAll ? 1U : 0U) << v;
    }
    // Vectors in one piece follow each other.
    base = kPieces == 1 && existing != 0 ? a + run_offset + offsets[0] : a;
  }
};

// The terms of a run; of vectors that are not in kCut all lanes exist.
template <uint32_t kCut, int kTall, int kWide, bool kPacksB, int kPieces, typename T>
HWY_INLINE void AddRun(const WindowRun<kTall, kPieces, T>& run, const T* from, int64_t a_step, int64_t terms,
                       const T* HWY_RESTRICT b, int64_t b_column, const T* next, int64_t term,
                       hn::Vec<Tag<T>> (&sums)[kWide][kTall]) {
  const Tag<T> d;
  constexpr int64_t kStep = kPacksB ? kColumns : 1;
  const auto mask = [&](int v, int p)
                        HWY_ATTR { return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(run.bits[v] + p)); };
  hn::Mask<Tag<T>> masks[kTall][kPieces];
  for (int v = 0; v < kTall; ++v) {
    for (int p = 0; p < kPieces && (kCut >> v & 1) != 0; ++p) masks[v][p] = mask(v, p);
  }
  const auto add_term = [&](const T* b_term) HWY_ATTR {
    hn::Vec<Tag<T>> column[kTall];
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) {
      const T* const first = from + (kPieces == 1 ? v * kLanes<T> : run.places[v][0]);
      if ((kCut >> v & 1) == 0) {
        column[v] = hn::LoadU(d, first);
      } else {
        column[v] = hn::MaskedLoad(masks[v][0], d, first);
        if (kPieces == 2) {
          column[v] = hn::Or(column[v], hn::MaskedLoad(masks[v][kPieces - 1], d, from + run.places[v][kPieces - 1]));
        }
      }
    }
    AddTerm(column, b_term, b_column, 0, sums);
    from += a_step;
  };
  const int64_t end = term + terms;
  for (; term + kTermsTogether <= end; term += kTermsTogether) {
    if (next != nullptr) PrefetchTerms<kPacksB>(next, term, b_column);
    HWY_UNROLL(4)
    for (int i = 0; i < kTermsTogether; ++i) add_term(b + i * kStep);
    b += kTermsTogether * kStep;
  }
  for (; term < end; ++term) {
    add_term(b);
    b += kStep;
  }
}

// The same of rows that are windows, from a vector on. Terms of b lie side by side where it is not packed.
template <int kTall, int kWide, bool kPacksB, int kPieces, typename T>
HWY_NOINLINE void MultiplyWindows(const TiledBlock& block, int64_t vector, int64_t last, const T* HWY_RESTRICT b,
                                  const T* next, T* HWY_RESTRICT c) {
  const Tag<T> d;
  const TiledRows& rows = block.rows;
  PrefetchResult<kTall, kWide>(c, block.c_column_step);
  hn::Vec<Tag<T>> sums[kWide][kTall];
  ClearSums(sums);
  const int64_t a_step = block.a_term_step;
  const int64_t b_column = kPacksB ? 1 : block.b_column_step;
  const T* const a = static_cast<const T*>(block.a);
  const int64_t* const offsets = rows.offsets + vector * kPieces;
  const uint16_t* masks = rows.masks + vector * rows.masks_step;
  const int64_t* run_offset = rows.run_offsets;
  int64_t skipped = rows.first_term;
  for (int64_t term = 0; term < block.k; masks += kPieces) {
    const int64_t terms = std::min(rows.run_terms - skipped, block.k - term);
    const WindowRun<kTall, kPieces, T> run(rows, masks, offsets, *run_offset++, a);
    const auto add = [&](auto cut) HWY_ATTR {
      AddRun<cut.value, kTall, kWide, kPacksB, kPieces, T>(run, run.base + skipped * a_step, a_step, terms, b, b_column,
                                                           next, term, sums);
    };
    // Masks cost as much as a multiplication: in whole tiles only the vectors have one that need it.
    constexpr bool kIsWhole = kTall == kVectors && kWide == kColumns;
    if (kIsWhole && run.cut == 0) {
      add(std::integral_constant<uint32_t, 0>());
    } else if (kIsWhole && run.cut == 1) {
      add(std::integral_constant<uint32_t, 1>());
    } else if (kIsWhole && run.cut == 2) {
      add(std::integral_constant<uint32_t, 2>());
    } else if (kIsWhole && run.cut == 4) {
      add(std::integral_constant<uint32_t, 4>());
    } else {
      add(std::integral_constant<uint32_t, 7>());
    }
    b += terms * (kPacksB ? kColumns : 1);
    term += terms;
    skipped = 0;
  }
  StoreSums(sums, last < kLanes<T>, hn::FirstN(d, static_cast<size_t>(last)), block.accumulates, c,
            block.c_column_step);
}

#endif  // HWY_AVX3

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

// Returns the tile of one vector by kThinColumns.
template <typename T>
TileFunction<T> ThinTileFor(int64_t rows, bool packs_b) {
  if (rows < kLanes<T>) {
    return packs_b ? MultiplyTile<1, kThinColumns, true, true, T> : MultiplyTile<1, kThinColumns, true, false, T>;
  }
  return packs_b ? MultiplyTile<1, kThinColumns, false, true, T> : MultiplyTile<1, kThinColumns, false, false, T>;
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

#if HWY_TARGET == HWY_AVX3

template <typename T>
using WindowFunction = void (*)(const TiledBlock& block, int64_t vector, int64_t last, const T* b, const T* next, T* c);

template <typename T, bool kPacksB, int kPieces, int kTall>
WindowFunction<T> WindowsOfHeight(int64_t columns) {
  switch (columns) {
    case 1:
      return MultiplyWindows<kTall, 1, kPacksB, kPieces, T>;
    case 2:
      return MultiplyWindows<kTall, 2, kPacksB, kPieces, T>;
    case 4:
      return MultiplyWindows<kTall, 4, kPacksB, kPieces, T>;
    default:
      return MultiplyWindows<kTall, kColumns, kPacksB, kPieces, T>;
  }
}

template <typename T, bool kPacksB, int kPieces>
WindowFunction<T> WindowsFor(int64_t vectors, int64_t columns) {
  switch (vectors) {
    case 1:
      return WindowsOfHeight<T, kPacksB, kPieces, 1>(columns);
    case 2:
      return WindowsOfHeight<T, kPacksB, kPieces, 2>(columns);
    default:
      return WindowsOfHeight<T, kPacksB, kPieces, kVectors>(columns);
  }
}

template <typename T>
WindowFunction<T> WindowsFor(const TiledBlock& block, int64_t vectors, int64_t columns) {
  if (block.rows.pieces == 1) {
    return block.packs_b ? WindowsFor<T, true, 1>(vectors, columns) : WindowsFor<T, false, 1>(vectors, columns);
  }
  return block.packs_b ? WindowsFor<T, true, 2>(vectors, columns) : WindowsFor<T, false, 2>(vectors, columns);
}

// The columns left beside whole panels of b are cut into powers of two: that is half as much code.
template <typename T>
void MultiplyWindowBlock(const TiledBlock& block) {
  const int64_t vectors = (block.m + kLanes<T> - 1) / kLanes<T>;
  const int64_t last = (block.m - 1) % kLanes<T> + 1;
  const int64_t b_column = block.packs_b ? 1 : block.b_column_step;
  const T* b = static_cast<const T*>(block.b);
  T* c = static_cast<T*>(block.c);
  for (int64_t column = 0; column < block.n;) {
    int64_t columns = kColumns;
    while (columns > block.n - column) columns /= 2;
    const T* const next = column + 2 * kColumns <= block.n ? b + block.b_panel_step : nullptr;
    for (int64_t vector = 0; vector < vectors; vector += kVectors) {
      const int64_t tall = std::min<int64_t>(kVectors, vectors - vector);
      const bool is_last = vector + tall == vectors;
      WindowsFor<T>(block, tall, columns)(block, vector, is_last ? last : kLanes<T>, b, is_last ? next : nullptr,
                                          c + vector * kLanes<T>);
    }
    b += columns == kColumns ? block.b_panel_step : columns * b_column;
    c += columns * block.c_column_step;
    column += columns;
  }
}

#endif  // HWY_AVX3

template <typename T>
void MultiplyBlock(const TiledBlock& block) {
#if HWY_TARGET == HWY_AVX3
  if (block.rows.pieces > 0) return MultiplyWindowBlock<T>(block);
#endif
  constexpr int64_t kRows = kVectors * kLanes<T>;
  const T* const a = static_cast<const T*>(block.a);
  const T* b = static_cast<const T*>(block.b);
  T* c = static_cast<T*>(block.c);
  const int64_t whole_rows = block.m / kRows;
  const int64_t rest = block.m - whole_rows * kRows;
  const int64_t last = rest == 0 ? kLanes<T> : (rest - 1) % kLanes<T> + 1;
  const bool reads_lines = block.packs_b || block.b_term_step == 1;
  // Rows of one vector at most that are left are made in wider tiles, after the last panel of such a tile.
  const bool is_near = block.k * kThinColumns * static_cast<int64_t>(sizeof(T)) <= kThinBytes;
  const bool is_thin = kThinColumns > kColumns && is_near && rest > 0 && rest <= kLanes<T>;
  const int64_t thin_columns = is_thin ? block.n / kThinColumns * kThinColumns : 0;
  // A panel of b stays in a near cache while those of a go by.
  for (int64_t column = 0; column < block.n; column += kColumns) {
    const int64_t columns = std::min<int64_t>(kColumns, block.n - column);
    const TileFunction<T> whole = TileFor<T>(kRows, columns, block.packs_b);
    const T* const next = reads_lines && column + columns < block.n ? b + block.b_panel_step : nullptr;
    for (int64_t i = 0; i < whole_rows; ++i) {
      const bool is_last = rest == 0 && i + 1 == whole_rows;
      whole(block, kLanes<T>, a + i * block.a_panel_step, b, is_last ? next : nullptr, c + i * kRows);
    }
    if (column < thin_columns) {
      constexpr int64_t kBefore = kThinColumns - kColumns;
      if (column % kThinColumns == kBefore) {
        ThinTileFor<T>(rest, block.packs_b)(block, last, a + whole_rows * block.a_panel_step,
                                            b - kBefore / kColumns * block.b_panel_step, next,
                                            c + whole_rows * kRows - kBefore * block.c_column_step);
      }
    } else if (rest > 0) {
      TileFor<T>(rest, columns, block.packs_b)(block, last, a + whole_rows * block.a_panel_step, b, next,
                                               c + whole_rows * kRows);
    }
    b += block.b_panel_step;
    c += kColumns * block.c_column_step;
  }
}

template <typename T>
constexpr GemmTiles Tiles() {
  return {.rows = kVectors * kLanes<T>,
          .columns = kColumns,
          .window_lanes = kWindowLanes<T>,
          .unpacked_bytes = kUnpackedBytes,
          .reads_columns = kReadsColumns,
          .multiply = MultiplyBlock<T>,
          .pack = PackPiece<T>,
          .scale = ScalePanel<T>};
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
