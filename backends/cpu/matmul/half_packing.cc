#include "backends/cpu/matmul/half_packing.h"

#include <algorithm>

#include "backends/cpu/machine/cache_line.h"
#include "backends/cpu/math/half_conversion.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kPartElements = 6144;  // 24 KiB of F32 on the stack, in the nearest cache

// Terms lie apart.
void PackTerms(DType half, const PanelPiece& piece, float* panels) {
  uint16_t gathered[kMaxPanelWidth];
  for (int64_t term = 0; term < piece.terms; ++term) {
    const uint16_t* lines = static_cast<const uint16_t*>(piece.from) + term * piece.term_stride;
    if (piece.offsets == nullptr) {
      // Too far apart for the processor to see the next ones.
      PrefetchRun(lines + kTermsAhead * piece.term_stride, 2 * piece.lines);
    } else {
      for (int64_t i = 0; i < piece.lines; ++i) gathered[i] = lines[piece.offsets[i]];
      lines = gathered;
    }
    WidenHalfToPanels(half, lines, piece.lines, piece.width, piece.panel_step, panels + term * piece.term_step);
  }
}

}  // namespace

void PackHalfPiece(const GemmTiles& tiles, DType half, const PanelPiece& piece, void* panels) {
  float* const to = static_cast<float*>(panels);
  if (piece.offsets == nullptr || piece.term_stride != 1) return PackTerms(half, piece, to);
  alignas(64) float part[kPartElements];
  int64_t offsets[kMaxPanelWidth];
  const int64_t most = std::max<int64_t>(1, kPartElements / piece.lines / 32 * 32);
  PanelPiece wide = piece;
  wide.from = part;
  wide.offsets = offsets;
  // The next piece most often is as many lines beside this one.
  const int64_t to_next = piece.lines > 1 ? piece.lines * (piece.offsets[1] - piece.offsets[0]) : 0;
  for (int64_t term = 0; term < piece.terms; term += wide.terms) {
    wide.terms = std::min(most, piece.terms - term);
    const int64_t next = term + wide.terms < piece.terms ? wide.terms : to_next - term;
    for (int64_t i = 0; i < piece.lines; ++i) {
      const uint16_t* const line = static_cast<const uint16_t*>(piece.from) + piece.offsets[i] + term;
      PrefetchRun(line + next, 2 * std::min(most, piece.terms));
      offsets[i] = i * wide.terms;
      WidenHalf(half, line, part + offsets[i], wide.terms);
    }
    tiles.pack(wide, to + term * piece.term_step);
  }
}

}  // namespace tensord::cpu
