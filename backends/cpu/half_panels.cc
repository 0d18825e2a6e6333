#include "backends/cpu/half_panels.h"

#include <algorithm>

#include "backends/cpu/half_rows.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kPartElements = 4096;
constexpr int64_t kTermsAhead = 16;

}  // namespace

void PackHalfPiece(const GemmTiles& tiles, DType half, const PanelPiece& piece, void* panels) {
  alignas(64) float part[kPartElements];
  uint16_t line[kMaxPanelWidth];
  int64_t offsets[kMaxPanelWidth];
  const uint16_t* const from = static_cast<const uint16_t*>(piece.from);
  const bool is_by_line = piece.offsets != nullptr && piece.term_stride == 1;
  const int64_t terms = kPartElements / piece.lines;
  const int64_t most = terms >= 16 ? terms / 16 * 16 : terms;
  PanelPiece wide = piece;
  wide.from = part;
  for (int64_t term = 0; term < piece.terms; term += wide.terms) {
    wide.terms = std::min(most, piece.terms - term);
    if (is_by_line) {
      for (int64_t i = 0; i < piece.lines; ++i) {
        offsets[i] = i * wide.terms;
        WidenHalf(half, from + piece.offsets[i] + term, part + offsets[i], wide.terms);
      }
      wide.offsets = offsets;
    } else {
      for (int64_t t = 0; t < wide.terms; ++t) {
        const uint16_t* lines = from + (term + t) * piece.term_stride;
        if (piece.offsets == nullptr) {
          // Terms lie too far apart for the processor to see what comes.
          const char* const next = reinterpret_cast<const char*>(lines + kTermsAhead * piece.term_stride);
          for (int64_t at = 0; at < piece.lines * 2; at += 64) __builtin_prefetch(next + at);
        } else {
          for (int64_t i = 0; i < piece.lines; ++i) line[i] = lines[piece.offsets[i]];
          lines = line;
        }
        WidenHalf(half, lines, part + t * piece.lines, piece.lines);
      }
      wide.offsets = nullptr;
      wide.term_stride = piece.lines;
    }
    tiles.pack(wide, static_cast<float*>(panels) + term * piece.term_step);
  }
}

}  // namespace tensord::cpu
