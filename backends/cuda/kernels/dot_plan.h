#ifndef TENSORD_BACKENDS_CUDA_KERNELS_DOT_PLAN_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_DOT_PLAN_H_

#include <cstdint>
#include <optional>

#include "backends/cuda/kernels/strided_copy_text.h"
#include "engine/exec/backend/dot_axes.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// Matrices of a batch as libraries see them: by columns, with a distance between columns and one between matrices.
struct BatchedMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t leading = 1;       // in elements, like the next
  int64_t batch_stride = 0;  // 0 of a single matrix
};

// A side of the product: what the library reads of an operand.
struct DotFactor {
  DotSide side = kLhs;  // the operand
  BatchedMatrix matrix;
  bool is_transposed = false;       // the library reads its transpose
  bool is_conjugated = false;       // and its conjugate: only of transposes
  std::optional<StridedCopy> pack;  // into a dense copy, where the operand cannot be read as it lies
};

// A dot_general as one product of batches of matrices, result = left · right. Axes of a role are one axis where they
// follow each other in memory; an operand where they do not is copied first, and so is the result.
struct DotPlan {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  DotFactor left, right;
  BatchedMatrix result;
  std::optional<StridedCopy> unpack;  // the product is dense, and this takes it to its place
};

// The elements of a product: those of the operands, of the factors that the library multiplies, and of the result.
struct DotTypes {
  DType operand = DType::kF32;
  DType factor = DType::kF32;  // that of the operand, or a wider one into which both are copied
  DType result = DType::kF32;
};

// Returns the types; nothing for those that the library does not multiply. 16-bit floats give themselves or F32 as they
// are; where the result is wider than that, the operands are widened first: sums have the result's precision.
std::optional<DotTypes> DotTypesOf(DType operand, DType result);

// Plans a product whose result and sums have elements.
DotPlan PlanDot(DotSpace space, const DotTypes& types, bool conjugates_lhs, bool conjugates_rhs);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_DOT_PLAN_H_
