#ifndef TENSORD_BACKENDS_CPU_JOINS_TRANSFORMED_MAP_H_
#define TENSORD_BACKENDS_CPU_JOINS_TRANSFORMED_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "backends/cpu/fft/lanes/lanes.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/joins/chain_plan.h"
#include "backends/cpu/joins/join.h"
#include "backends/cpu/joins/segment_blocks.h"
#include "backends/cpu/kernel/kernel.h"

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
  std::vector<Slot> passing() const override { return passing_; }
  int64_t scratch_bytes() const override;
  int64_t workspace_bytes() const override { return 0; }
  std::string Describe(size_t segment) const override;
  // The time of the lines is split evenly.
  absl::Status Run(const JoinRun& run) const override;

 private:
  // The offsets in a slot of the scratch, behind the lines of a block, of the memory for their transforms and the map.
  struct Scratch {
    int64_t transform_offset = 0;
    int64_t map_offset = 0;
    int64_t map_workspace_offset = 0;
    int64_t bytes = 0;
  };

  TransformedMap() = default;
  bool MakeMap(const SegmentInstruction& map, Slot passed, absl::Span<const AxisCut> cuts, const JitOptions& jit);
  void PlaceScratch(int64_t lines_bytes, int threads);
  void RunBlock(int64_t block, const JoinRun& run, char* scratch) const;

  std::unique_ptr<const Kernel> before_;  // along the other axes; null where there are none
  std::unique_ptr<const Kernel> after_;
  std::shared_ptr<const FftLaneTransform> transform_;
  FftLines forth_{};  // of a block, all but the addresses
  FftLines back_{};
  BlockWalk places_;  // of the lines of a block, which lie beside each other: where they are read, and written
  int64_t num_blocks_ = 1;
  std::unique_ptr<const Kernel> map_;
  BlockWalk walk_;
  std::vector<Slot> map_operands_;
  size_t lines_operand_ = 0;  // of the map: which one the lines are
  Scratch scratch_;
  int64_t scratch_slots_ = 1;

  std::vector<Slot> passing_;  // what goes into the map, and what comes out of it
  Slot operand_ = -1;
  Slot result_ = -1;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_TRANSFORMED_MAP_H_
