#include "backends/cpu/contraction/operands/factored_lines.h"

#include <algorithm>

#include "backends/cpu/contraction/operands/strided_lines.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kFactorBlockBytes = int64_t{8}
                                      << 10;  // of a factor: with what it is multiplied to, in the nearest cache

// The same axes as the factor has them. One of the contraction may be several neighbours of the tensor.
DotAxisList AxesOf(DotSide side, const FactoredTensor& tensor, const FactoredTensor::Factor& factor,
                   const DotAxisList& axes) {
  DotAxisList own;
  for (const DotAxis& axis : axes) {
    int64_t rest = axis.size, stride = axis.strides[side], dense = 1;
    for (size_t d = 0; d < tensor.sizes.size() && rest > 1; ++d) {
      const int64_t next = dense * tensor.sizes[d];
      if (stride < next) {
        const int64_t size = std::min(rest, next / stride);
        DotAxis& part = own.emplace_back();
        part.size = size;
        part.strides[side] = stride / dense * factor.strides[d];
        rest /= size;
        stride = next;
      }
      dense = next;
    }
  }
  return MergeOn(side, own);
}

}  // namespace

FactoredLines::FactoredLines(DotSide side, const FactoredTensor& tensor, const DotAxisList& lines,
                             const DotAxisList& terms, const DotAxisList& batch, DType dtype)
    : side_(side), dtype_(dtype) {
  for (const FactoredTensor::Factor& factor : tensor.factors) {
    factors_.push_back({.offset = factor.offset,
                        .lines = AxesOf(side, tensor, factor, lines),
                        .terms = AxesOf(side, tensor, factor, terms),
                        .batch = AxesOf(side, tensor, factor, batch)});
  }
}

void FactoredLines::Pack(const GemmTiles& tiles, absl::Span<const char* const> addresses, int64_t product,
                         int64_t first_line, int64_t num_lines, int64_t first_term, int64_t num_terms,
                         PanelPlace place) const {
  alignas(64) char block[kFactorBlockBytes];
  const int64_t element_bytes = SizeOf(dtype_);
  const int64_t most = kFactorBlockBytes / (place.term_step * element_bytes);
  for (int64_t term = 0; term < num_terms; term += most) {
    const int64_t count = std::min(most, num_terms - term);
    for (size_t i = 0; i < factors_.size(); ++i) {
      const Factor& factor = factors_[i];
      const char* const matrix =
          addresses[i] + (factor.offset + OffsetOf(side_, factor.batch, product)) * element_bytes;
      const StridedLines strided = {side_, dtype_, dtype_, factor.lines, factor.terms};
      PanelPlace to = place;
      if (i > 0) to.panel = block;
      strided.Pack(tiles, matrix, first_line, num_lines, first_term + term, count, to);
      if (i > 0) tiles.scale(block, count * place.term_step, place.panel);
    }
    place.panel += count * place.term_step * element_bytes;
  }
}

}  // namespace tensord::cpu
