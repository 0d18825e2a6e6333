#ifndef TENSORD_BACKENDS_CPU_JOINS_TRANSFORMED_MAP_H_
#define TENSORD_BACKENDS_CPU_JOINS_TRANSFORMED_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "backends/cpu/joins/blocked_segments.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/join.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// A complex Fourier transform, a map of its output, and another transform of that. Nobody else reads between, and the
// transforms have an axis in common: filters, convolutions and solvers in the spectrum. A transform along several axes
// may go along them in any order. So both go along the common one next to the map, and the three run on some lines
// after others: lines are read from memory once and written once. The other axes go before and after. All of it lies in
// the memory of the result.
//
// The slowest common axis is taken: lines along it lie beside each other, element by element, which is slow to read and
// to write.
class TransformedMap final : public Join {
 public:
  static constexpr size_t kNumSegments = 3;  // the transform, the map and the way back

  // Plans the first of these segments; null if they do not run like that.
  static std::unique_ptr<const TransformedMap> Plan(absl::Span<const SegmentInstruction> segments,
                                                    const JoinContext& context);

  size_t num_segments() const override { return kNumSegments; }
  std::vector<Slot> passing() const override { return blocks_->passing(); }
  int64_t scratch_bytes() const override;
  int64_t workspace_bytes() const override { return 0; }
  std::string Describe(size_t segment) const override;
  absl::Status Run(const JoinRun& run) const override;

 private:
  TransformedMap() = default;

  std::unique_ptr<const Kernel> before_;  // along the other axes; null where there are none
  std::unique_ptr<const Kernel> after_;
  std::unique_ptr<const BlockedSegments> blocks_;  // of lines
  Slot operand_ = -1;
  Slot result_ = -1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_TRANSFORMED_MAP_H_
