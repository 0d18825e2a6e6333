#ifndef TENSORD_ENGINE_EXEC_BACKEND_DOT_AXES_H_
#define TENSORD_ENGINE_EXEC_BACKEND_DOT_AXES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/exec/backend/bound_instruction.h"
#include "engine/tensor/shape.h"

namespace tensord {

// The axes of a dot_general: pairs of summed axes, and pairs of batch axes, which both sides and the result share.
struct DotAxes {
  absl::Span<const int64_t> lhs_contracting;
  absl::Span<const int64_t> rhs_contracting;
  absl::Span<const int64_t> lhs_batch;
  absl::Span<const int64_t> rhs_batch;
  bool conjugates_lhs = false;  // of complex numbers only
  bool conjugates_rhs = false;
  absl::Span<const int64_t> result_permutation;  // of the axes lhs free, rhs free, batch; empty: as they are
};

enum DotSide : size_t { kLhs, kRhs, kDotResult };
// Rows of the result are the free axes of lhs, columns those of rhs.
enum DotRole : size_t { kRows, kColumns, kSummed, kBatch };
inline constexpr size_t kNumDotSides = 3;  // as many as enumerators
inline constexpr size_t kNumDotRoles = 4;  // likewise

// Returns the free role of an operand.
constexpr DotRole FreeRole(DotSide side) { return side == kLhs ? kRows : kColumns; }

// One axis with its stride on each side, in elements; 0 on a side that does not have it.
struct DotAxis {
  int64_t size = 1;
  std::array<int64_t, kNumDotSides> strides = {0, 0, 0};
};
using DotAxisList = absl::InlinedVector<DotAxis, 4>;

int64_t NumElements(const DotAxisList& axes);
// Drops axes of one element and joins neighbours that are one axis on every side.
DotAxisList MergeAxes(const DotAxisList& axes);
// Neighbours that are one axis on one side, with their strides there; one axis of one element where nothing is left.
DotAxisList MergeOn(DotSide side, const DotAxisList& axes);
// Sorts axes by their strides on one side, the shortest first; axes of equal stride keep their order.
DotAxisList SortedBy(DotSide side, DotAxisList axes);
// Returns the place of the element of a flat index on a side; the first axis is the fastest.
int64_t OffsetOf(DotSide side, absl::Span<const DotAxis> axes, int64_t index);

// The index space of a dot_general, or a box of it; the first axis of each role is the fastest of the result.
struct DotSpace {
  std::array<DotAxisList, kNumDotRoles> roles;

  int64_t Size(DotRole role) const { return NumElements(roles[role]); }
};

// The same with the sides exchanged: rows are columns and the other way round.
DotSpace Swapped(DotSpace space);
// Gives the axes the strides of a dense result: rows, columns, batch.
void LayResultDensely(DotSpace* space);

// Returns the space of dense column-major tensors. The axes must be valid for the shapes. If nothing is summed up, the
// operands' strides along the sum are 0: there is nothing to step over.
DotSpace ClassifyAxes(const Shape& lhs, const Shape& rhs, const DotAxes& axes);

// Returns the axes of a dot_general, which borrow its attributes, and its space.
DotAxes DotAxesOf(const Attributes& attrs);
DotSpace DotSpaceOf(const BoundInstruction& instruction);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_DOT_AXES_H_
