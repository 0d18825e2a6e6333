#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_AXES_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_AXES_H_

#include <cstdint>

#include "engine/exec/backend/dot_axes.h"

namespace tensord::cpu {

// The axes of a role as boxes of few elements: `inner` is a box, and `outer` walks over the boxes. One axis may be cut
// into parts, which then is the first of `outer`; `last` is the box of its last part.
struct DotCut {
  DotAxisList inner;
  DotAxisList last;
  DotAxisList outer;
  bool has_shorter_last = false;
};

// Boxes of about `most` elements at most (an axis that is cut is cut evenly).
DotCut CutAxes(const DotAxisList& axes, int64_t most);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_OPERANDS_AXES_H_
