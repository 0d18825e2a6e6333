#ifndef TENSORD_BACKENDS_CPU_JOINS_FACTORED_PRODUCT_H_
#define TENSORD_BACKENDS_CPU_JOINS_FACTORED_PRODUCT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "backends/cpu/contraction/tiled_gemm.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/join.h"

namespace tensord::cpu {

// A contraction with one or two multiplications before it, mostly of broadcasts, that make its operands for nobody
// else: the contraction multiplies factors as it packs them, and never writes their product. Each product is rounded as
// it would be by itself.
class FactoredProduct final : public Join {
 public:
  // Plans the first of these segments; null if they do not run together.
  static std::unique_ptr<const FactoredProduct> Plan(absl::Span<const SegmentInstruction> segments, EpilogueUse use);

  // Tells whether it is one product of matrices whose factored rows lie side by side: the fastest to be packed.
  bool packs_runs_of_rows() const { return packs_runs_of_rows_; }

  size_t num_segments() const override { return passing_.size() + 1; }
  std::vector<Slot> passing() const override { return {passing_.begin(), passing_.end()}; }
  int64_t scratch_bytes() const override { return 0; }
  int64_t workspace_bytes() const override { return product_.scratch_bytes(); }
  std::string Describe(size_t segment) const override;
  // The contraction has all of the time: that of the multiplications is not told apart.
  absl::Status Run(const JoinRun& run) const override;

 private:
  explicit FactoredProduct(TiledGemm product) : product_(std::move(product)) {}
  static std::unique_ptr<const FactoredProduct> PlanMaps(absl::Span<const SegmentInstruction> maps,
                                                         const SegmentInstruction& dot, EpilogueUse use);

  const TiledGemm product_;
  // The slots of the factors, or of the operand that is there, by side of the products.
  std::array<absl::InlinedVector<Slot, 2>, 2> operands_;
  std::array<bool, 2> is_factored_ = {false, false};
  bool packs_runs_of_rows_ = false;
  absl::InlinedVector<Slot, 2> passing_;  // by multiplication
  Slot result_ = -1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_FACTORED_PRODUCT_H_
