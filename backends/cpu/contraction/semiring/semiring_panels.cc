#include "backends/cpu/contraction/semiring/semiring_panels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "backends/cpu/math/half_conversion.h"
#include "engine/ops/semiring.h"

namespace tensord::cpu {
namespace {

// Tells whether the places follow each other.
bool IsRun(absl::Span<const int64_t> places) {
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i] != places[i - 1] + 1) return false;
  }
  return true;
}

template <typename S>
struct PackedAs {
  using type = S;
};
template <HalfElement S>
struct PackedAs<S> {
  using type = float;
};

template <typename S>
void CopyRun(const S* from, int64_t count, typename PackedAs<S>::type* to) {
  if constexpr (HalfElement<S>) {
    WidenHalf(kDTypeOf<S>, reinterpret_cast<const uint16_t*>(from), to, count);
  } else {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(S));
  }
}

template <typename S>
void StoreRun(const typename PackedAs<S>::type* from, int64_t count, S* to) {
  if constexpr (HalfElement<S>) {
    NarrowToHalf(kDTypeOf<S>, from, reinterpret_cast<uint16_t*>(to), count);
  } else {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(S));
  }
}

// Calls tile(first row, rows, width) for each tile of packed rows. Rows that are missing in the last narrow tile count,
// as in the loops.
template <typename Tile>
void ForEachTile(int64_t rows, const TileRows& tile, const Tile& call) {
  const int64_t packed = (rows + tile.narrow - 1) / tile.narrow * tile.narrow;
  for (int64_t row = 0; row < rows;) {
    const int64_t left = packed - row;
    const int64_t width = left >= tile.wide ? tile.wide : left >= tile.wide / 2 ? tile.wide / 2 : tile.narrow;
    call(row, std::min(width, rows - row), width);
    row += width;
  }
}

template <typename S>
void PackLhs(const void* lhs, const BlockPlaces& places, const TileRows& tile, Algebra algebra, void* panel) {
  using P = typename PackedAs<S>::type;
  const S* const from = static_cast<const S*>(lhs);
  P* to = static_cast<P*>(panel);
  const bool rows_run = IsRun(places.first), terms_run = IsRun(places.second);
  const auto terms = static_cast<int64_t>(places.second.size());
  const P one = algebra == Algebra::kMaxTimes ? P(1) : P(0);
  ForEachTile(static_cast<int64_t>(places.first.size()), tile, [&](int64_t row, int64_t rows, int64_t width) {
    const absl::Span<const int64_t> first = places.first.subspan(static_cast<size_t>(row), static_cast<size_t>(rows));
    if (terms_run && !rows_run) {  // a row after the other, as it lies
      for (int64_t r = 0; r < rows; ++r) {
        const S* const line = from + first[static_cast<size_t>(r)] + places.second[0];
        for (int64_t k = 0; k < terms; ++k) to[k * width + r] = static_cast<P>(line[k]);
      }
    } else {
      for (int64_t k = 0; k < terms; ++k) {
        const S* const line = from + places.second[static_cast<size_t>(k)];
        P* const packed = to + k * width;
        if (rows_run) {
          CopyRun(line + first[0], rows, packed);
        } else {
          for (int64_t r = 0; r < rows; ++r) packed[r] = static_cast<P>(line[first[static_cast<size_t>(r)]]);
        }
      }
    }
    for (int64_t k = 0; rows < width && k < terms; ++k) std::fill(to + k * width + rows, to + (k + 1) * width, one);
    to += terms * width;
  });
}

template <typename S>
void PackRhs(const void* rhs, const BlockPlaces& places, void* panel) {
  using P = typename PackedAs<S>::type;
  P* to = static_cast<P*>(panel);
  const bool runs = IsRun(places.first);
  const auto terms = static_cast<int64_t>(places.first.size());
  for (const int64_t column : places.second) {
    const S* const from = static_cast<const S*>(rhs) + column;
    if (runs && terms > 0) {
      CopyRun(from + places.first[0], terms, to);
    } else {
      for (int64_t k = 0; k < terms; ++k) to[k] = static_cast<P>(from[places.first[static_cast<size_t>(k)]]);
    }
    to += terms;
  }
}

template <typename S>
void Clear(void* block, int64_t count, Algebra algebra) {
  using P = typename PackedAs<S>::type;
  std::fill_n(static_cast<P*>(block), count, SemiringZero<P>(algebra));
}

template <typename S>
void Store(const void* block, int64_t step, const BlockPlaces& places, void* result) {
  using P = typename PackedAs<S>::type;
  const bool runs = IsRun(places.first);
  const auto rows = static_cast<int64_t>(places.first.size());
  const P* from = static_cast<const P*>(block);
  for (const int64_t column : places.second) {
    S* const to = static_cast<S*>(result) + column;
    if (runs) {
      StoreRun(from, rows, to + places.first[0]);
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        StoreRun(from + r, 1, to + places.first[static_cast<size_t>(r)]);
      }
    }
    from += step;
  }
}

constexpr int64_t kRowsAWord = 64;  // bits of a word

// Returns eight BOOL as bits, the first one the lowest.
uint64_t BitsOfEight(const char* from) {
  uint64_t bytes;
  std::memcpy(&bytes, from, sizeof(bytes));
  return (bytes * 0x0102040810204080u) >> 56;
}

// A word: rows of one term.
uint64_t WordOf(const char* from, absl::Span<const int64_t> rows, bool is_run) {
  uint64_t word = 0;
  size_t r = 0;
  if (is_run) {
    for (; r + 8 <= rows.size(); r += 8) word |= BitsOfEight(from + rows[r]) << r;
  }
  for (; r < rows.size(); ++r) word |= static_cast<uint64_t>(from[rows[r]] != 0) << r;
  return word;
}

void PackLhsBits(const void* lhs, const BlockPlaces& places, const TileRows& tile, Algebra, void* panel) {
  const char* const from = static_cast<const char*>(lhs);
  uint64_t* to = static_cast<uint64_t*>(panel);
  const bool is_run = IsRun(places.first);
  const auto rows = static_cast<int64_t>(places.first.size()), terms = static_cast<int64_t>(places.second.size());
  const int64_t words = (rows + kRowsAWord - 1) / kRowsAWord;
  ForEachTile(words, tile, [&](int64_t word, int64_t count, int64_t width) {
    for (int64_t k = 0; k < terms; ++k) {
      const char* const line = from + places.second[static_cast<size_t>(k)];
      for (int64_t w = 0; w < width; ++w) {
        to[w] =
            w >= count
                ? 0
                : WordOf(line, places.first.subspan(static_cast<size_t>((word + w) * kRowsAWord), kRowsAWord), is_run);
      }
      to += width;
    }
  });
}

void PackRhsBits(const void* rhs, const BlockPlaces& places, void* panel) {
  uint64_t* to = static_cast<uint64_t*>(panel);
  const bool runs = IsRun(places.first);
  const auto terms = static_cast<int64_t>(places.first.size());
  for (const int64_t column : places.second) {
    const auto* const from = static_cast<const uint8_t*>(rhs) + column;
    if (runs && terms > 0) {
      const uint8_t* const line = from + places.first[0];
      for (int64_t k = 0; k < terms; ++k) to[k] = 0 - static_cast<uint64_t>(line[k]);
    } else {
      for (int64_t k = 0; k < terms; ++k) to[k] = 0 - static_cast<uint64_t>(from[places.first[static_cast<size_t>(k)]]);
    }
    to += terms;
  }
}

void ClearBits(void* block, int64_t count, Algebra) { std::fill_n(static_cast<uint64_t*>(block), count, uint64_t{0}); }

// Returns eight bits as BOOL, the lowest one first.
uint64_t EightOfBits(uint64_t bits) {
  constexpr uint64_t kEach = 0x0101010101010101u;
  // A bit in each byte, wherever it is, carries into the highest one.
  return (((bits * kEach & 0x8040201008040201u) + 0x7f * kEach) >> 7) & kEach;
}

void StoreBits(const void* block, int64_t step, const BlockPlaces& places, void* result) {
  const uint64_t* from = static_cast<const uint64_t*>(block);
  const bool runs = IsRun(places.first);
  for (const int64_t column : places.second) {
    char* const to = static_cast<char*>(result) + column;
    size_t r = 0;
    for (; runs && r + 8 <= places.first.size(); r += 8) {
      const uint64_t eight = EightOfBits(from[r / kRowsAWord] >> (r % kRowsAWord) & 0xff);
      std::memcpy(to + places.first[r], &eight, sizeof(eight));
    }
    for (; r < places.first.size(); ++r) {
      to[places.first[r]] = static_cast<char>(from[r / kRowsAWord] >> (r % kRowsAWord) & 1);
    }
    from += step;
  }
}

template <typename S>
SemiringPanels PanelsOf() {
  using P = typename PackedAs<S>::type;
  return {.pack_lhs = &PackLhs<S>,
          .pack_rhs = &PackRhs<S>,
          .clear = &Clear<S>,
          .store = &Store<S>,
          .packed = kDTypeOf<P>,
          .packed_bytes = sizeof(P)};
}

}  // namespace

SemiringPanels GetSemiringPanels(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return PanelsOf<Float16>();
    case DType::kBF16:
      return PanelsOf<BFloat16>();
    case DType::kF32:
      return PanelsOf<float>();
    case DType::kF64:
      return PanelsOf<double>();
    case DType::kI32:
      return PanelsOf<int32_t>();
    case DType::kI64:
      return PanelsOf<int64_t>();
    default:
      return {.pack_lhs = &PackLhsBits,
              .pack_rhs = &PackRhsBits,
              .clear = &ClearBits,
              .store = &StoreBits,
              .packed = DType::kBool,
              .packed_bytes = sizeof(uint64_t),
              .rows_an_element = kRowsAWord};
  }
}

}  // namespace tensord::cpu
