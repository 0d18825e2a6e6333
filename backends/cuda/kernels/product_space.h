#ifndef TENSORD_BACKENDS_CUDA_KERNELS_PRODUCT_SPACE_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_PRODUCT_SPACE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/exec/backend/bound_instruction.h"
#include "engine/exec/backend/dot_axes.h"

namespace tensord::cuda {

// The index space of a product that our own kernels compute: dot_general, and affine_dot, whose operands may lack an
// element, which then is 0.
struct ProductSpace {
  // An axis of an operand that an index may miss: its place is `start` plus steps times indices, by role and axis.
  struct Bound {
    int64_t size = 0;
    int64_t start = 0;
    std::array<std::vector<int64_t>, kNumDotRoles> steps;
  };

  DotSpace axes;
  std::array<int64_t, 2> offsets = {0, 0};  // elements to the first one of lhs and rhs; may be negative with bounds
  std::array<std::vector<Bound>, 2> bounds;
  std::array<bool, 2> conjugates = {false, false};

  int64_t Size(DotRole role) const { return axes.Size(role); }
};

ProductSpace ProductSpaceOf(const BoundInstruction& dot_general);
ProductSpace AffineProductSpaceOf(const BoundInstruction& affine_dot);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_PRODUCT_SPACE_H_
