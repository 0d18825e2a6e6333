#include "backends/cpu/matmul/bf16_tiles.h"

#include <hwy/base.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/machine/instruction_set.h"
#include "engine/base/rounding.h"

#if HWY_ARCH_X86
#include <immintrin.h>
#endif

namespace tensord::cpu {

#if HWY_ARCH_X86

// Highway has no target of its own for processors with just these features.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

namespace {

// The tiles of tiles.cc with AVX-512: sums, a column of a and one element of b fill the registers.
constexpr int kTileVectors = 3;
constexpr int kTileColumns = 8;
constexpr int64_t kFloatLanes = 16;  // of a vector
constexpr int64_t kTileRows = kTileVectors * kFloatLanes;
constexpr int64_t kPartPairs = 6144;  // 24 KiB on the stack: in the nearest cache
constexpr int kExponentVectors = 4;   // minima at once, so that one need not wait for the one before
// Biased exponents of two factors that together are at least this multiply to multiples of 2^-126, and so do the sums.
constexpr int kLeastExponents = 142;

__mmask16 FirstOf(int64_t count) {
  return static_cast<__mmask16>(count >= kFloatLanes ? 0xFFFF : count <= 0 ? 0 : (1 << count) - 1);
}

// Magnitudes less 1, which makes zeros the largest.
__m512i OrderedMagnitudes(__m512i pairs) {
  return _mm512_sub_epi16(_mm512_and_si512(pairs, _mm512_set1_epi16(0x7FFF)), _mm512_set1_epi16(1));
}

// Returns the biased exponent of the smallest magnitude in `count` pairs that is not zero; 0 if it is subnormal.
int LeastExponent(const uint32_t* pairs, int64_t count) {
  __m512i least[kExponentVectors];
  for (__m512i& part : least) part = _mm512_set1_epi16(-1);
  int64_t i = 0;
  for (; i + kExponentVectors * kFloatLanes <= count; i += kExponentVectors * kFloatLanes) {
    HWY_UNROLL(4)
    for (int v = 0; v < kExponentVectors; ++v) {
      least[v] = _mm512_min_epu16(least[v], OrderedMagnitudes(_mm512_loadu_si512(pairs + i + v * kFloatLanes)));
    }
  }
  for (; i < count; i += kFloatLanes) {
    least[0] = _mm512_min_epu16(least[0], OrderedMagnitudes(_mm512_maskz_loadu_epi32(FirstOf(count - i), pairs + i)));
  }
  for (int v = 1; v < kExponentVectors; ++v) least[0] = _mm512_min_epu16(least[0], least[v]);
  alignas(64) uint16_t lanes[32];
  _mm512_store_si512(lanes, least[0]);
  const uint16_t smallest = *std::min_element(lanes, lanes + 32);
  return smallest == 0xFFFF ? 0xFF : (smallest + 1) >> 7;
}

__m512 HighTerm(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
}

// With a mask, or GCC 12 takes the part that is masked out for uninitialized.
__m512 LowTerm(__m512i pairs) { return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(FirstOf(kFloatLanes), pairs, 16)); }

// kTall vectors by a panel of columns, of which `columns` exist, and of the last vector the rows of the mask. `next` is
// the panel of b that is read after this one, to be brought into the cache; else null.
template <int kTall, bool kKeepsSubnormals>
__attribute__((noinline)) void MultiplyPairs(const TiledBlock& block, const uint32_t* __restrict a,
                                             const uint32_t* __restrict b, const uint32_t* next, int64_t columns,
                                             __mmask16 last, float* __restrict c) {
  __m512 sums[kTileColumns][kTall];
  HWY_UNROLL(8)
  for (int j = 0; j < kTileColumns; ++j) {
    if (j < columns) PrefetchRun(c + j * block.c_column_step, kTall * kLineBytes);
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) sums[j][v] = _mm512_setzero_ps();
  }
  for (int64_t pair = 0; pair < block.k; ++pair) {
    __m512i rows[kTall];
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) rows[v] = _mm512_loadu_si512(a + v * kFloatLanes);
    HWY_UNROLL(8)
    for (int j = 0; j < kTileColumns; ++j) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(b[j]));
      HWY_UNROLL(3)
      for (int v = 0; v < kTall; ++v) {
        if (kKeepsSubnormals) {
          sums[j][v] = _mm512_fmadd_ps(HighTerm(rows[v]), HighTerm(factor), sums[j][v]);
          sums[j][v] = _mm512_fmadd_ps(LowTerm(rows[v]), LowTerm(factor), sums[j][v]);
        } else {
          sums[j][v] =
              _mm512_dpbf16_ps(sums[j][v], reinterpret_cast<__m512bh>(rows[v]), reinterpret_cast<__m512bh>(factor));
        }
      }
    }
    if (next != nullptr) __builtin_prefetch(next + pair * kTileColumns);
    a += block.a_term_step;
    b += block.b_term_step;
  }
  HWY_UNROLL(8)
  for (int j = 0; j < kTileColumns; ++j) {
    if (j >= columns) break;
    HWY_UNROLL(3)
    for (int v = 0; v < kTall; ++v) {
      const __mmask16 mask = v + 1 == kTall ? last : static_cast<__mmask16>(0xFFFF);
      float* const at = c + j * block.c_column_step + v * kFloatLanes;
      const __m512 before = block.accumulates ? _mm512_maskz_loadu_ps(mask, at) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(at, mask, _mm512_add_ps(sums[j][v], before));
    }
  }
}

template <bool kKeepsSubnormals>
void MultiplyColumns(const TiledBlock& block, const uint32_t* b, const uint32_t* next, int64_t columns, float* c) {
  const uint32_t* a = static_cast<const uint32_t*>(block.a);
  for (int64_t row = 0; row < block.m; row += kTileRows) {
    const int64_t rows = std::min(kTileRows, block.m - row);
    const __mmask16 last = static_cast<__mmask16>(0xFFFF >> (kFloatLanes - 1 - (rows - 1) % kFloatLanes));
    const uint32_t* const brought = row + rows == block.m ? next : nullptr;
    switch (CeilDiv(rows, kFloatLanes)) {
      case 1:
        MultiplyPairs<1, kKeepsSubnormals>(block, a, b, brought, columns, last, c + row);
        break;
      case 2:
        MultiplyPairs<2, kKeepsSubnormals>(block, a, b, brought, columns, last, c + row);
        break;
      default:
        MultiplyPairs<3, kKeepsSubnormals>(block, a, b, brought, columns, last, c + row);
    }
    a += block.a_panel_step;
  }
}

void MultiplyBf16Block(const TiledBlock& block) {
  const int a_exponent =
      LeastExponent(static_cast<const uint32_t*>(block.a), CeilDiv(block.m, kTileRows) * kTileRows * block.k);
  const uint32_t* b = static_cast<const uint32_t*>(block.b);
  float* c = static_cast<float*>(block.c);
  // A panel of b stays in a near cache while those of a go by.
  for (int64_t column = 0; column < block.n; column += kTileColumns) {
    const int64_t columns = std::min<int64_t>(kTileColumns, block.n - column);
    const uint32_t* const next = column + columns < block.n ? b + block.b_panel_step : nullptr;
    const int b_exponent = LeastExponent(b, kTileColumns * block.k);
    if (a_exponent > 0 && b_exponent > 0 && a_exponent + b_exponent >= kLeastExponents) {
      MultiplyColumns<false>(block, b, next, columns, c);
    } else {
      MultiplyColumns<true>(block, b, next, columns, c);
    }
    b += block.b_panel_step;
    c += kTileColumns * block.c_column_step;
  }
}

__m512i Joined(__m256i first, __m256i second) {
  // Element by element of one and of the other.
  const __m512i order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  return _mm512_permutex2var_epi16(_mm512_castsi256_si512(first), order, _mm512_castsi256_si512(second));
}

// Lines side by side of two terms as pairs, in panels that are filled up with zeros. `high` is zero where there is no
// second term.
void JoinTerms(const PanelPiece& piece, const uint16_t* first, const uint16_t* second, __mmask16 high, uint32_t* to) {
  for (int64_t rest = piece.lines; rest > 0; rest -= piece.width) {
    for (int64_t i = 0; i < piece.width; i += kFloatLanes) {
      const __mmask16 read = FirstOf(std::min(rest, piece.width) - i), written = FirstOf(piece.width - i);
      _mm512_mask_storeu_epi32(
          to + i, written,
          Joined(_mm256_maskz_loadu_epi16(read, first + i), _mm256_maskz_loadu_epi16(read & high, second + i)));
    }
    first += piece.width;
    second += piece.width;
    to += piece.panel_step;
  }
}

// Terms lie apart.
void PackTermPairs(const PanelPiece& piece, uint32_t* panels) {
  uint16_t gathered[2][kMaxPanelWidth];
  for (int64_t term = 0; term < piece.terms; term += 2) {
    const uint16_t* const from = static_cast<const uint16_t*>(piece.from) + term * piece.term_stride;
    const bool has_second = term + 1 < piece.terms;
    const uint16_t* terms[2] = {from, has_second ? from + piece.term_stride : from};
    for (const uint16_t*& lines : terms) {
      if (piece.offsets == nullptr) {
        // Too far apart for the processor to see the next ones.
        PrefetchRun(lines + kTermsAhead * piece.term_stride, 2 * piece.lines);
        continue;
      }
      uint16_t* const side_by_side = gathered[&lines - terms];
      for (int64_t i = 0; i < piece.lines; ++i) side_by_side[i] = lines[piece.offsets[i]];
      lines = side_by_side;
    }
    JoinTerms(piece, terms[0], terms[1], has_second ? 0xFFFF : 0, panels + term / 2 * piece.term_step);
  }
}

}  // namespace

HWY_POP_ATTRIBUTES

GemmTiles GetBf16Tiles() {
  if (CpuIsaInUse() < CpuIsa::kAvx512Bf16) return {};
  GemmTiles tiles = GetGemmTiles(DType::kF32);  // whose packing moves pairs as well
  tiles.rows = kTileRows;
  tiles.columns = kTileColumns;
  tiles.window_lanes = 0;
  tiles.reads_columns = false;
  tiles.multiply = MultiplyBf16Block;
  return tiles;
}

void PackBf16Pairs(const GemmTiles& tiles, const PanelPiece& piece, void* panels) {
  if (piece.offsets == nullptr || piece.term_stride != 1) {
    return PackTermPairs(piece, static_cast<uint32_t*>(panels));
  }
  // Pairs lie there, if not where pairs of a panel may be read from.
  alignas(64) uint32_t part[kPartPairs];
  int64_t offsets[kMaxPanelWidth];
  const int64_t all = CeilDiv(piece.terms, 2);
  const int64_t most = std::max<int64_t>(1, kPartPairs / piece.lines / 16 * 16);
  PanelPiece joined = piece;
  joined.from = part;
  joined.offsets = offsets;
  // The next piece most often is as many lines beside this one.
  const int64_t to_next = piece.lines > 1 ? piece.lines * (piece.offsets[1] - piece.offsets[0]) : 0;
  for (int64_t pair = 0; pair < all; pair += joined.terms) {
    joined.terms = std::min(most, all - pair);
    const int64_t next = pair + joined.terms < all ? 2 * joined.terms : to_next - 2 * pair;
    const int64_t terms = std::min(2 * joined.terms, piece.terms - 2 * pair);
    for (int64_t i = 0; i < piece.lines; ++i) {
      const uint16_t* const line = static_cast<const uint16_t*>(piece.from) + piece.offsets[i] + 2 * pair;
      PrefetchRun(line + next, 4 * std::min(most, all));
      offsets[i] = i * joined.terms;
      part[offsets[i] + joined.terms - 1] = 0;  // an odd last one has no other half
      std::memcpy(part + offsets[i], line, static_cast<size_t>(terms * 2));
    }
    tiles.pack(joined, static_cast<uint32_t*>(panels) + pair * piece.term_step);
  }
}

#else

GemmTiles GetBf16Tiles() { return {}; }

void PackBf16Pairs(const GemmTiles& /*tiles*/, const PanelPiece& /*piece*/, void* /*panels*/) {}

#endif

}  // namespace tensord::cpu
