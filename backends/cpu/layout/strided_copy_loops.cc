#include "backends/cpu/layout/strided_copy_loops.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

// SSSE3 and SSE4 give these loops nothing over the base instruction set, and AVX3_DL nothing over AVX3.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/layout/strided_copy_loops.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Unaligned and alias-free access to an element by its width.
template <int kLog2Bytes>
struct WidthType;
template <>
struct WidthType<0> {
  typedef uint8_t Type __attribute__((may_alias));
};
template <>
struct WidthType<1> {
  typedef uint16_t Type __attribute__((may_alias, aligned(1)));
};
template <>
struct WidthType<2> {
  typedef uint32_t Type __attribute__((may_alias, aligned(1)));
};
template <>
struct WidthType<3> {
  typedef uint64_t Type __attribute__((may_alias, aligned(1)));
};
template <>
struct WidthType<4> {
  typedef uint64_t Type __attribute__((vector_size(16), may_alias, aligned(1)));
};

// Without dynamic targets the compiler still has the 16-byte vectors of the base instruction set.
constexpr int kVectorBytes = HWY_ARCH_X86 && HWY_LANES(uint8_t) > 16 ? HWY_LANES(uint8_t) : 16;

template <typename Word>
HWY_INLINE void CopyWord(const char* src, char* dst) {
  Word word;
  std::memcpy(&word, src, sizeof(word));
  std::memcpy(dst, &word, sizeof(word));
}

// Both words are read before either is written; they overlap, so that one pair serves a range of lengths.
template <typename Word>
HWY_INLINE void CopyWordPair(const char* src, char* dst, int64_t bytes) {
  Word first, last;
  std::memcpy(&first, src, sizeof(first));
  std::memcpy(&last, src + bytes - sizeof(last), sizeof(last));
  std::memcpy(dst, &first, sizeof(first));
  std::memcpy(dst + bytes - sizeof(last), &last, sizeof(last));
}

HWY_INLINE void CopyRun(const char* src, char* dst, int64_t bytes) {
  using Word16 = typename WidthType<4>::Type;
  if (bytes > 256) {
    std::memcpy(dst, src, static_cast<size_t>(bytes));
  } else if (bytes >= 16) {
    for (int64_t i = 0; i + 16 < bytes; i += 16) CopyWord<Word16>(src + i, dst + i);
    CopyWord<Word16>(src + bytes - 16, dst + bytes - 16);
  } else if (bytes >= 8) {
    CopyWordPair<uint64_t>(src, dst, bytes);
  } else if (bytes >= 4) {
    CopyWordPair<uint32_t>(src, dst, bytes);
  } else if (bytes >= 2) {
    CopyWordPair<uint16_t>(src, dst, bytes);
  } else if (bytes == 1) {
    *dst = *src;
  }
}

void CopyContiguous(const char* src, char* dst, const RowBlock& block) {
  for (int64_t r = 0; r < block.rows; ++r) {
    CopyRun(src + r * block.src_row_step, dst + r * block.dst_row_step, block.count);
  }
}

// Bytes from `pointer` to the next cache line, at most `bytes`.
HWY_INLINE int64_t HeadBytes(const char* pointer, int64_t bytes) {
  const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(pointer) & 63);
  return head < bytes ? head : bytes;
}

void CopyContiguousStream(const char* src, char* dst, const RowBlock& block) {
  const hn::CappedTag<uint8_t, 64> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < block.rows; ++r) {
    const char* s = src + r * block.src_row_step;
    char* t = dst + r * block.dst_row_step;
    int64_t i = HeadBytes(t, block.count);
    CopyRun(s, t, i);
    for (; i + 64 <= block.count; i += 64) {
      // The hardware prefetcher does not see the next row coming.
      hwy::Prefetch(s + block.src_row_step + i);
      for (int64_t b = 0; b < 64; b += lanes) {
        hn::Stream(hn::LoadU(d, reinterpret_cast<const uint8_t*>(s) + i + b), d, reinterpret_cast<uint8_t*>(t) + i + b);
      }
    }
    CopyRun(s + i, t + i, block.count - i);
  }
  hwy::FlushStream();
}

template <int kLog2Bytes>
void CopyStrided(const char* src, char* dst, const RowBlock& block) {
  using Word = typename WidthType<kLog2Bytes>::Type;
  for (int64_t r = 0; r < block.rows; ++r) {
    const char* s = src + r * block.src_row_step;
    char* t = dst + r * block.dst_row_step;
    for (int64_t i = 0; i < block.count; ++i) {
      *reinterpret_cast<Word*>(t + i * block.dst_step) = *reinterpret_cast<const Word*>(s + i * block.src_step);
    }
  }
}

template <int kLog2Bytes>
void CopyReversed(const char* src, char* dst, const RowBlock& block) {
  using Word = typename WidthType<kLog2Bytes>::Type;
  for (int64_t r = 0; r < block.rows; ++r) {
    const Word* s = reinterpret_cast<const Word*>(src + r * block.src_row_step);
    Word* HWY_RESTRICT t = reinterpret_cast<Word*>(dst + r * block.dst_row_step);
    for (int64_t i = 0; i < block.count; ++i) t[i] = s[-i];
  }
}

template <int kLog2Bytes>
void FillRows(const char* src, char* dst, const RowBlock& block) {
  using Word = typename WidthType<kLog2Bytes>::Type;
  for (int64_t r = 0; r < block.rows; ++r) {
    const Word value = *reinterpret_cast<const Word*>(src + r * block.src_row_step);
    Word* HWY_RESTRICT t = reinterpret_cast<Word*>(dst + r * block.dst_row_step);
    for (int64_t i = 0; i < block.count; ++i) t[i] = value;
  }
}

template <int kLog2Bytes>
void FillRowsStream(const char* src, char* dst, const RowBlock& block) {
  constexpr int64_t kWidth = int64_t{1} << kLog2Bytes;
  const hn::CappedTag<uint8_t, 64> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < block.rows; ++r) {
    char* t = dst + r * block.dst_row_step;
    // Two lines of copies of the element: wherever a line starts, the pattern from its phase on is inside.
    alignas(64) char pattern[128];
    RowBlock whole;
    whole.count = 128 / kWidth;
    FillRows<kLog2Bytes>(src + r * block.src_row_step, pattern, whole);
    const int64_t bytes = block.count * kWidth;
    const int64_t head = HeadBytes(t, bytes);
    std::memcpy(t, pattern, static_cast<size_t>(head));
    const char* line = pattern + head % kWidth;
    int64_t i = head;
    for (; i + 64 <= bytes; i += 64) {
      for (int64_t b = 0; b < 64; b += lanes) {
        hn::Stream(hn::LoadU(d, reinterpret_cast<const uint8_t*>(line) + b), d, reinterpret_cast<uint8_t*>(t) + i + b);
      }
    }
    std::memcpy(t + i, line, static_cast<size_t>(bytes - i));
  }
  hwy::FlushStream();
}

template <int kLog2Bytes>
HWY_INLINE void TransposeScalar(const char* src, char* dst, const int64_t* src_offsets, const int64_t* dst_offsets,
                                int64_t i_begin, int64_t i_end, int64_t j_begin, int64_t j_end) {
  using Word = typename WidthType<kLog2Bytes>::Type;
  const Word* s = reinterpret_cast<const Word*>(src);
  Word* t = reinterpret_cast<Word*>(dst);
  for (int64_t i = i_begin; i < i_end; ++i) {
    Word* row = t + dst_offsets[i];
    for (int64_t j = j_begin; j < j_end; ++j) row[j] = s[src_offsets[j] + i];
  }
}

// Side of the square that is transposed in registers: one vector wide, but no more than 16 registers high.
template <int kLog2Bytes>
constexpr int SquareSide() {
  constexpr int kFit = kVectorBytes >> kLog2Bytes;
  return kFit < 16 ? kFit : 16;
}

// Elements of the low, or the high, halves of both vectors in turns. An element is kWords lanes.
template <int kWords, bool kHigh, typename Vector, size_t... kLane>
HWY_INLINE Vector Interleave(Vector a, Vector b, std::index_sequence<kLane...>) {
  constexpr int kLanes = sizeof...(kLane);
  constexpr int kFirst = kHigh ? kLanes / 2 : 0;
  return __builtin_shufflevector(
      a, b,
      (kFirst + int{kLane} / kWords / 2 * kWords + int{kLane} % kWords + (kLane / kWords % 2 == 0 ? 0 : kLanes))...);
}

// log2(kSide) rounds of interleaving row i with row i + kSide/2 transpose the square.
template <typename Vector, int kSide, int kWords, bool kStream>
HWY_INLINE void TransposeSquare(const char* src, char* dst, const int64_t* src_offsets, const int64_t* dst_offsets,
                                int64_t word_bytes) {
  typedef Vector Unaligned __attribute__((aligned(1)));
  constexpr auto kLanes = std::make_index_sequence<kSide * kWords>();
  Vector rows[kSide];
  HWY_UNROLL(16)
  for (int k = 0; k < kSide; ++k) rows[k] = *reinterpret_cast<const Unaligned*>(src + src_offsets[k] * word_bytes);
  HWY_UNROLL(4)
  for (int half = 1; half < kSide; half *= 2) {
    Vector next[kSide];
    HWY_UNROLL(8)
    for (int k = 0; k < kSide / 2; ++k) {
      next[2 * k] = Interleave<kWords, false>(rows[k], rows[k + kSide / 2], kLanes);
      next[2 * k + 1] = Interleave<kWords, true>(rows[k], rows[k + kSide / 2], kLanes);
    }
    HWY_UNROLL(16)
    for (int k = 0; k < kSide; ++k) rows[k] = next[k];
  }
  HWY_UNROLL(16)
  for (int k = 0; k < kSide; ++k) {
    char* t = dst + dst_offsets[k] * word_bytes;
    if constexpr (kStream) {
      const hn::CappedTag<uint8_t, sizeof(Vector)> d;
      alignas(64) uint8_t line[sizeof(Vector)];
      std::memcpy(line, &rows[k], sizeof(Vector));
      hn::Stream(hn::Load(d, line), d, reinterpret_cast<uint8_t*>(t));
    } else {
      *reinterpret_cast<Unaligned*>(t) = rows[k];
    }
  }
}

// Copies squares of a tile, then the rest one by one. `src_row` and `dst_column` are places along the sides that the
// source and the destination step along.
template <int kLog2Bytes, int kSide, bool kStream, typename SrcRow, typename DstColumn>
HWY_INLINE void TransposeSquares(const char* src, char* dst, const int64_t* src_columns, const int64_t* dst_rows,
                                 int64_t ni, int64_t nj, SrcRow src_row, DstColumn dst_column) {
  constexpr int64_t kWidth = int64_t{1} << kLog2Bytes;
  int64_t i_done = 0;
  int64_t j_done = 0;
  if constexpr (kSide > 1) {
    constexpr int kWords = kLog2Bytes == 4 ? 2 : 1;
    using Lane = std::conditional_t<
        kLog2Bytes == 0, uint8_t,
        std::conditional_t<kLog2Bytes == 1, uint16_t, std::conditional_t<kLog2Bytes == 2, uint32_t, uint64_t>>>;
    typedef Lane Vector __attribute__((vector_size(kSide * kWidth), may_alias));
    // Strips keep the lines of the source that a square touches in L1 until all of them is used.
    constexpr int64_t kStrip = 32;
    i_done = ni / kSide * kSide;
    j_done = nj / kSide * kSide;
    for (int64_t strip = 0; strip < j_done; strip += kStrip) {
      const int64_t strip_end = strip + kStrip < j_done ? strip + kStrip : j_done;
      for (int64_t i = 0; i < i_done; i += kSide) {
        const char* from = src + src_row(i) * kWidth;
        for (int64_t j = strip; j < strip_end; j += kSide) {
          TransposeSquare<Vector, kSide, kWords, kStream>(from, dst + dst_column(j) * kWidth, src_columns + j,
                                                          dst_rows + i, kWidth);
        }
      }
    }
  }
  using Word = typename WidthType<kLog2Bytes>::Type;
  for (int64_t i = 0; i < ni; ++i) {
    const Word* from = reinterpret_cast<const Word*>(src) + src_row(i);
    Word* row = reinterpret_cast<Word*>(dst) + dst_rows[i];
    for (int64_t j = i < i_done ? j_done : 0; j < nj; ++j) row[dst_column(j)] = from[src_columns[j]];
  }
  if constexpr (kStream) hwy::FlushStream();
}

HWY_INLINE int64_t Same(int64_t place) { return place; }

template <int kLog2Bytes>
void TransposeTile(const char* src, char* dst, const int64_t* src_offsets, const int64_t* dst_offsets, int64_t ni,
                   int64_t nj) {
  TransposeSquares<kLog2Bytes, SquareSide<kLog2Bytes>(), false>(src, dst, src_offsets, dst_offsets, ni, nj, Same, Same);
}

// Stores past the cache are 16 bytes at least.
template <int kLog2Bytes, int kLog2Side, bool kStream>
void TransposeComposite(const char* src, char* dst, const CompositeTile& tile) {
  constexpr bool kStreams = kStream && kLog2Bytes + kLog2Side >= 4;
  const CompositeTile t = tile;  // which stores into dst cannot change
  if (t.src_rows == nullptr && t.dst_columns == nullptr) {
    TransposeSquares<kLog2Bytes, 1 << kLog2Side, kStreams>(src, dst, t.src_columns, t.dst_rows, t.ni, t.nj, Same, Same);
  } else {
    TransposeSquares<kLog2Bytes, 1 << kLog2Side, kStreams>(
        src, dst, t.src_columns, t.dst_rows, t.ni, t.nj,
        [&t](int64_t i) { return t.src_rows == nullptr ? i : t.src_rows[i]; },
        [&t](int64_t j) { return t.dst_columns == nullptr ? j : t.dst_columns[j]; });
  }
}

template <int kLog2Bytes, bool kStream, int kLog2Side>
constexpr CompositeTileFunction CompositeOfSide() {
  if constexpr ((1 << kLog2Side) <= SquareSide<kLog2Bytes>()) {
    return TransposeComposite<kLog2Bytes, kLog2Side, kStream>;
  } else {
    return nullptr;
  }
}

template <int kLog2Bytes, bool kStream>
constexpr std::array<CompositeTileFunction, 5> Composites() {
  return {CompositeOfSide<kLog2Bytes, kStream, 0>(), CompositeOfSide<kLog2Bytes, kStream, 1>(),
          CompositeOfSide<kLog2Bytes, kStream, 2>(), CompositeOfSide<kLog2Bytes, kStream, 3>(),
          CompositeOfSide<kLog2Bytes, kStream, 4>()};
}

template <int kLog2Bytes>
constexpr StridedCopyLoops::Width MakeWidth() {
  return {CopyStrided<kLog2Bytes>,       CopyReversed<kLog2Bytes>,  FillRows<kLog2Bytes>,
          FillRowsStream<kLog2Bytes>,    TransposeTile<kLog2Bytes>, Composites<kLog2Bytes, false>(),
          Composites<kLog2Bytes, true>()};
}

constexpr StridedCopyLoops kLoops = {{MakeWidth<0>(), MakeWidth<1>(), MakeWidth<2>(), MakeWidth<3>(), MakeWidth<4>()},
                                     CopyContiguous,
                                     CopyContiguousStream};

}  // namespace

const StridedCopyLoops& BestStridedCopyLoops() { return kLoops; }

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BestStridedCopyLoops);

const StridedCopyLoops& GetStridedCopyLoops() { return HWY_DYNAMIC_DISPATCH(BestStridedCopyLoops)(); }

}  // namespace tensord::cpu
#endif  // HWY_ONCE
