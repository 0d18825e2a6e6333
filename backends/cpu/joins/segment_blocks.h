#ifndef TENSORD_BACKENDS_CPU_JOINS_SEGMENT_BLOCKS_H_
#define TENSORD_BACKENDS_CPU_JOINS_SEGMENT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/fft/lanes/lanes.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/tensor_box.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/bound_instruction.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// The places of a segment's tensors in each of its blocks. A value type.
class BlockWalk {
 public:
  // One loop over blocks, the fastest first.
  struct Loop {
    int64_t count = 1;
    std::vector<int64_t> steps;  // bytes, by operand, then by result
    size_t axis = 0;             // of a micro program
    int64_t part = 0;            // of that axis in a block
  };

  BlockWalk() = default;
  BlockWalk(std::vector<Loop> loops, size_t num_axes) : loops_(std::move(loops)), num_axes_(num_axes) {}

  const std::vector<Loop>& loops() const { return loops_; }
  size_t num_axes() const { return num_axes_; }  // of the micro program; 0 where there is none
  // `offsets` has an entry a tensor, in bytes; `origin` one an axis of the micro program.
  void Locate(int64_t block, absl::Span<int64_t> offsets, absl::Span<int64_t> origin) const;

 private:
  std::vector<Loop> loops_;
  size_t num_axes_ = 0;
};

// Returns the numbers of equal contiguous blocks that a tensor can be cut into, up to so many, ascending.
std::vector<int64_t> BlockCounts(const ConcreteType& type, int64_t most);

// The box of a tensor that passes between segments.
struct PassingBox {
  Slot slot = 0;
  TensorBox box;
};

// A segment in equal blocks: block b computes piece b of each result, where a piece is one of as many contiguous parts
// of equal size as there are blocks. All blocks are alike, so one kernel serves them all; sums are the same as in the
// whole. Knows contractions, fused micro programs, elementwise ops and Fourier transforms.
//
// Constant after Cut; borrows the instruction.
class SegmentBlocks {
 public:
  // Returns nothing if the segment cannot be cut in this way.
  static std::optional<SegmentBlocks> Cut(const BoundInstruction& instruction, int64_t blocks);

  // Cuts a reduction by itself, or a fused one whose results are its reductions, into blocks of its operands' slowest
  // axes. If these are kept, block b computes piece b of each result. If they are reduced, block b computes a tensor of
  // each result's type, and the reduction of these is the result. Nothing if it cannot be cut in this way.
  static std::optional<SegmentBlocks> CutReduction(const BoundInstruction& instruction, int64_t blocks);

  // Cuts into blocks that each have a box of the result: one part of every cut axis, the first being the fastest from
  // block to block. Tensors that pass lie in their boxes, in memory of the block's own; the others lie in their places
  // in the whole. Nothing if the segment is no contraction, no fused map of one result and no
  // complex transform along one axis, or if a map reads a boxed tensor at another element than the one that it
  // computes, or if the lines of a transform do not lie side by side in a block.
  static std::optional<SegmentBlocks> CutBoxes(const SegmentInstruction& segment, absl::Span<const AxisCut> cuts,
                                               absl::Span<const PassingBox> passing);

  const BlockWalk& walk() const { return walk_; }
  // Tells whether block b reads no element of the operand but those of its piece b.
  bool ReadsPiece(size_t operand) const;
  // Returns the bytes of the operand in one block, if it is not cut into pieces.
  int64_t BlockBytes(size_t operand) const;
  // Tells whether the segment is an elementwise op by itself, not fused.
  bool is_elementwise() const { return !space_ && !micro_ && !types_ && !lines_; }
  // Returns the multiplications of all blocks.
  double multiplications() const { return multiplications_; }
  // Tells whether the results of blocks are yet to be reduced to those of the whole.
  bool reduces_parts() const { return reduces_parts_; }
  // Pairs {result, operand} of which the result may be given the operand's memory.
  bool MayOverwrite(size_t result, size_t operand) const;

  // Makes the kernel of one block.
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const JoinContext& context) const;

 private:
  // The elements that block 0 may read of an operand.
  struct Reach {
    int64_t first = 0;
    int64_t last = -1;
  };

  // The types of an op of one operand, in a block.
  struct BlockTypes {
    ConcreteType operand;
    ConcreteType result;
  };

  SegmentBlocks(const BoundInstruction& instruction, int64_t blocks) : instruction_(&instruction), blocks_(blocks) {}
  bool CutDot();
  bool CutFused();
  bool CutElementwise();
  bool CutTransform();
  bool CutPlainReduction();
  bool CutFusedReduction();
  // Boxes are by operand, then the result's.
  bool CutDotIntoBoxes(absl::Span<const AxisCut> cuts, absl::Span<const std::optional<TensorBox>> boxes);
  bool CutMapIntoBoxes(absl::Span<const AxisCut> cuts, absl::Span<const std::optional<TensorBox>> boxes);
  bool CutLinesIntoBoxes(absl::Span<const AxisCut> cuts, absl::Span<const std::optional<TensorBox>> boxes);
  BlockWalk::Loop CutAxis(int64_t parts, DotAxis* axis) const;
  // The rest, when the axes of a space or of a micro program are cut.
  void PlaceDot(DotSpace space, std::vector<BlockWalk::Loop> loops);
  bool PlaceFused(const MicroProgram& whole, const MicroProgram& micro, std::vector<BlockWalk::Loop> loops);

  const BoundInstruction* instruction_;
  int64_t blocks_ = 1;
  BlockWalk walk_;
  std::vector<Reach> reaches_;  // by operand
  double multiplications_ = 0;
  bool reduces_parts_ = false;
  // The space of a block: one of them, or nothing.
  std::optional<DotSpace> space_;
  std::optional<MicroProgram> micro_;
  std::optional<BlockTypes> types_;
  std::optional<FftLines> lines_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_SEGMENT_BLOCKS_H_
