#ifndef TENSORD_CONTRACTION_H_
#define TENSORD_CONTRACTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "tensord/tensor.h"

namespace tensord::client {

// The operations that stand for the sum and the product: a maximum and +, a minimum and +, a maximum and * of numbers
// of at least 0, or and and of BOOL. The values are those of tensord.v1.Algebra.
enum class Algebra : uint8_t { kStandard = 0, kMaxPlus = 1, kMinPlus = 2, kMaxTimes = 3, kOrAnd = 4 };

// The paired axes of two operands: contracted ones are summed over, batching ones walk in step. Negative axes count
// from the end.
struct DotDimensions {
  std::vector<int64_t> lhs_contracting;
  std::vector<int64_t> rhs_contracting;
  std::vector<int64_t> lhs_batching;
  std::vector<int64_t> rhs_batching;
};

// Result axes: free ones of lhs, free ones of rhs, batching ones. Batch stands last, unlike in StableHLO.
// `result_dtype` may be wider than the operands'; in another algebra it is theirs.
Tensor DotGeneral(const TensorArg& lhs, const TensorArg& rhs, const DotDimensions& dimensions,
                  std::optional<DType> result_dtype = std::nullopt, Algebra algebra = Algebra::kStandard);

// Multiplies as NumPy's matmul: the last two axes are matrices, those before them broadcast, a vector is a row on the
// left and a column on the right. MatMul(d, d, Algebra::kMinPlus) gives the shortest distances over two edges.
Tensor MatMul(const TensorArg& a, const TensorArg& b, Algebra algebra = Algebra::kStandard);

}  // namespace tensord::client

#endif  // TENSORD_CONTRACTION_H_
