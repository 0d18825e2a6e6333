#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_LANE_PRODUCT_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_LANE_PRODUCT_H_

#include <array>
#include <cstdint>
#include <optional>

#include "backends/cpu/contraction/lane_product_loops.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/layout/strided_copy.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A contraction of small matrices whose batch lies side by side in the result: vectors lie across the matrices. Both
// operands are copied into small panels in which the batch lies the same way.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail; all work is done by the calling
// thread.
class LaneProduct {
 public:
  // The bytes of both operands, copied into the order of lanes: they leave half of a session's workspace to the
  // operands and results that go by.
  static constexpr int64_t kMostPanelBytes = int64_t{4} << 20;

  // Plans the contraction; nothing if it is no such one, or the machine lacks the loops.
  static std::optional<LaneProduct> Plan(const DotSpace& space, DType dtype);
  // Answers whether a contraction of these sizes would be such a one if its result lay like that.
  static bool TakesSizes(int64_t rows, int64_t columns, int64_t terms, int64_t batch, DType dtype);

  int64_t scratch_bytes() const { return panel_bytes_[kLhs] + panel_bytes_[kRhs]; }
  // `scratch` is aligned to 64.
  void Run(const char* lhs, const char* rhs, char* result, char* scratch) const;

 private:
  LaneProduct(const DotSpace& space, DType dtype);

  LaneProducts products_;  // without addresses
  LaneProductFunction multiply_ = nullptr;
  std::array<StridedCopy, 2> copies_;  // of the operands into their panels
  std::array<int64_t, 2> panel_bytes_ = {0, 0};
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_LANE_PRODUCT_H_
