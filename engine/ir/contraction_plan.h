#ifndef TENSORD_ENGINE_IR_CONTRACTION_PLAN_H_
#define TENSORD_ENGINE_IR_CONTRACTION_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tensord {

// The order in which the expand rule of a node contracts its operands pair by pair. Costs are infinite past the range
// of a double.
struct ContractionPlan {
  std::string node;
  // Operands are 0 … n - 1, and step s contracts two that are not yet used and makes n + s. n - 1 steps.
  std::vector<std::pair<int, int>> path;
  int num_operands = 0;
  std::string optimizer;       // how it was found: "auto" …; "path" where it was asked for
  double flops = 0;            // a product that is summed counts two, another one
  double largest = 0;          // elements of the largest intermediate; the result is none
  bool assumes_sizes = false;  // some sizes are not known, and were guessed
};

// Returns the path by positions among the operands that are left: a step takes two of them, the smaller first, and its
// result goes to their end.
std::vector<std::pair<int64_t, int64_t>> PathByPositions(const ContractionPlan& plan);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_CONTRACTION_PLAN_H_
