#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_PADDED_LINES_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_PADDED_LINES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/matmul/tiles.h"

namespace tensord::cpu {

// A tensor as a part of a larger one, of zeros besides, that is never made: strides of a product are those of the
// larger one.
struct PaddedTensor {
  struct Axis {
    int64_t size = 1;
    int64_t start = 0;  // of what the product reads at index 0; negative where that is padding
    int64_t padded_size = 1;
    int64_t padded_stride = 1;
    int64_t stride = 1;
    bool is_padded() const { return padded_size != size; }
  };
  absl::InlinedVector<Axis, 6> axes;  // empty: there is no padding
};

using PaddedTensors = std::array<PaddedTensor, 2>;  // by side

// A packer of panels from a tensor with its padding: the elements from their places, and zeros.
//
// Immutable after construction, so thread-safe. Pack does not allocate and cannot fail.
class PaddedLines {
 public:
  // Answers whether the axes can be followed: each moves along one axis of the tensor or several that have no padding,
  // and the first of the terms and the batch along none that has.
  static bool CanFollow(DotSide side, const PaddedTensor& tensor, const DotAxisList& lines, const DotAxisList& terms,
                        const DotAxisList& batch);
  // Plans lines and terms of a tensor without a batch; nothing if they cannot be followed.
  static std::optional<PaddedLines> Plan(DotSide side, const PaddedTensor& tensor, const DotAxisList& lines,
                                         const DotAxisList& terms, int64_t element_bytes);

  PaddedLines() = default;
  // CanFollow said so of the axes.
  PaddedLines(DotSide side, const PaddedTensor& tensor, const DotAxisList& lines, const DotAxisList& terms,
              int64_t element_bytes);

  bool is_used() const { return !lines_.empty(); }
  // Returns the axes with the strides of the tensor itself.
  static DotAxisList Unpadded(DotSide side, const PaddedTensor& tensor, DotAxisList axes);

  // Sets a bit for each of up to 64 lines that is not padding, for each of the terms 0, term_step, 2 * term_step…
  void MarkExisting(int64_t first_line, int64_t lines, int64_t term_step, absl::Span<uint64_t> bits) const;
  // Returns the offset of index 0 from the first element of the tensor.
  int64_t origin() const { return origin_; }

  // Lines, of which a panel may have so many, and terms. `tensor` is the element that the batch starts with.
  void Pack(const GemmTiles& tiles, const char* tensor, int64_t first_line, int64_t lines, int64_t first_term,
            int64_t terms, PanelPlace place) const;

 private:
  static constexpr size_t kMaxEdges = 4;  // padded axes of a tensor: of images and volumes, with one to spare
  using Places = std::array<int64_t, kMaxEdges>;
  // An axis of lines or terms.
  struct Digit {
    int64_t size = 1;
    int64_t stride = 0;  // of the tensor
    Places steps = {};   // along the axes that have padding
  };
  using Digits = absl::InlinedVector<Digit, 4>;
  struct Point {
    int64_t offset = 0;
    Places places = {};
  };
  struct Run;
  struct Panel;

  static bool Follow(DotSide side, const PaddedTensor& tensor, const DotAxis& axis, Digit* digit);
  static Point PointOf(const Digits& digits, int64_t index);
  void FindRuns(int64_t first_line, Panel* panel) const;
  bool FindHoles(const Point& term, Panel* panel) const;
  void PackTerms(const GemmTiles& tiles, const char* tensor, const Point& term, Panel* panel, PanelPiece piece,
                 char* to) const;

  int64_t element_bytes_ = 1;
  Digits lines_, terms_;
  size_t num_edges_ = 0;
  Places starts_ = {}, sizes_ = {};  // of the axes that have padding
  int64_t origin_ = 0;               // of index 0 from the first element
  int64_t extent_ = 0;               // elements that may be read from the first one of a batch on
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_PADDED_LINES_H_
