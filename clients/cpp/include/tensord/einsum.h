// Sums of products in Einstein's notation, over any number of operands. The server chooses the order in which operands
// are contracted; Client::PlanContractions tells it, and its cost. Needs a server with the family einsum.
#ifndef TENSORD_EINSUM_H_
#define TENSORD_EINSUM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tensord/contraction.h"
#include "tensord/source_location.h"
#include "tensord/tensor.h"

namespace tensord::client {

struct EinsumOptions {
  enum class Optimizer { kAuto, kGreedy, kOptimal, kLeftToRight };
  Optimizer optimizer = Optimizer::kAuto;
  // Overrides the optimizer, as opt_einsum writes a path: each step names positions in the list of operands that are
  // left, and its result goes to the end of the list.
  std::vector<std::vector<int64_t>> path = {};
  // The most elements that an intermediate may have.
  std::optional<int64_t> largest_intermediate = std::nullopt;
  // The sums and products; of elements of the algebra.
  Algebra algebra = Algebra::kStandard;
};

// Returns the sum of products that an equation names, "ij,jk->ik": a term of labels for each operand and, behind the
// arrow, the labels of the result. A label is an ASCII letter or digit, and has one size. One that a term repeats takes
// the diagonal, one that the output repeats fills it, and one that the output lacks is summed. "..." stands for the
// axes that a term does not name, which broadcast. Parentheses fix the order: "(ij,jk),kl->il". Operands have one
// dtype, which is the result's.
Tensor Einsum(absl::string_view equation, const std::vector<Tensor>& operands, const EinsumOptions& options = {},
              const SourceLocation& place = SourceLocation::current());

// An operand of an einsum, and a label from 0 on for each of its axes.
struct LabeledTensor {
  Tensor tensor;
  std::vector<int64_t> labels;
};
// The same by numbers, of which there are enough for any network: Einsum({{a, {0, 1}}, {b, {1, 2}}}, {0, 2}).
Tensor Einsum(const std::vector<LabeledTensor>& operands, const std::vector<int64_t>& output,
              const EinsumOptions& options = {}, const SourceLocation& place = SourceLocation::current());

}  // namespace tensord::client

#endif  // TENSORD_EINSUM_H_
