#ifndef TENSORD_ENGINE_EXEC_BACKEND_LAYOUT_COPIES_H_
#define TENSORD_ENGINE_EXEC_BACKEND_LAYOUT_COPIES_H_

#include <cstdint>
#include <vector>

#include "engine/exec/backend/bound_instruction.h"
#include "engine/exec/backend/copy_axes.h"

namespace tensord {

// A copy into the result of an instruction, or into scratch memory of the result's size, between the given first
// elements of either side.
struct LayoutCopy {
  static constexpr int kScratch = -1;
  static constexpr int kZero = -2;  // one element, of which all bits are 0

  CopyAxes axes;
  int from = 0;  // the position of an operand, kScratch or kZero
  bool into_scratch = false;
  int64_t from_offset = 0;  // elements
  int64_t into_offset = 0;
  // Reads or writes elements that copies before it write. Others may run in any order.
  bool follows = false;
};

// The copies that compute an op that moves elements to places known beforehand: together they write each element of the
// result. Copies of no elements are left out.
struct LayoutCopies {
  std::vector<LayoutCopy> copies;
  bool needs_scratch = false;
};

// Returns the copies of transpose, reshape, broadcast_in_dim, slice, pad, concatenate, reverse, extract_diag,
// embed_diag, pad_to_match, dynamic_truncate and optimization_barrier, on every dtype. UNSUPPORTED_ON_DEVICE for other
// ops.
absl::StatusOr<LayoutCopies> LayoutCopiesOf(const BoundInstruction& instruction);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_LAYOUT_COPIES_H_
