#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_WINDOW_ROWS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_WINDOW_ROWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/contraction/operands/padded_lines.h"
#include "backends/cpu/matmul/tiles.h"

namespace tensord::cpu {

// The rows of a product as windows of a tensor, read by tiles in place: nothing is packed. Rows lie side by side, in
// runs at least as long as a vector. A vector across the end of a run is read as two pieces, and padding is masked. The
// first summed axis is gone through by steps, the others by a table of offsets and masks, which is small beside the
// tensor.
//
// Immutable after construction, so thread-safe.
class WindowRows {
 public:
  // Plans the rows; nothing if they are no windows, or copying them is the faster way. `padded` is empty if
  // nothing is; else PaddedLines can follow the axes. `lanes` of a vector; 0: tiles cannot.
  static std::optional<WindowRows> Plan(const PaddedTensor& padded, const DotAxisList& rows, const DotAxisList& terms,
                                        int64_t element_bytes, int64_t lanes);
  // Answers whether Plan gives rows, for who only asks.
  static bool AreFaster(const PaddedTensor& padded, const DotAxisList& rows, const DotAxisList& terms,
                        int64_t element_bytes, int64_t lanes);

  WindowRows() = default;

  bool is_used() const { return run_terms_ > 0; }
  // Summed terms that are gone through by steps.
  int64_t run_terms() const { return run_terms_; }
  // Returns the rows as tiles read them, for terms from `first_term` on.
  TiledRows Rows(int64_t first_row, int64_t first_term) const;
  int64_t term_step() const { return term_step_; }

 private:
  WindowRows(const PaddedTensor& padded, const DotAxisList& rows, const DotAxisList& terms, int64_t element_bytes,
             int64_t lanes);

  int64_t lanes_ = 1;
  int64_t pieces_ = 1;
  int64_t run_terms_ = 0;
  int64_t num_runs_ = 0;
  int64_t term_step_ = 0;
  std::vector<int64_t> run_offsets_;
  std::vector<int64_t> row_offsets_;  // of the first lane of a vector, for each piece
  std::vector<uint16_t> masks_;       // by vector, run and piece: the lanes that exist
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_WINDOW_ROWS_H_
