#ifndef TENSORD_BACKENDS_CPU_JOINS_SEGMENT_BLOCKS_H_
#define TENSORD_BACKENDS_CPU_JOINS_SEGMENT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/jit/options.h"
#include "backends/cpu/joins/tensor_box.h"
#include "backends/cpu/kernel/kernel.h"
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
  // block to block. Tensors with a box, by operand and then the result, lie in memory of the block's own; the others
  // lie in their places in the whole. Nothing if the segment is no contraction and no fused map of one result, or if
  // such a map reads a boxed tensor at another element than the one that it computes.
  static std::optional<SegmentBlocks> CutBoxes(const BoundInstruction& instruction, absl::Span<const AxisCut> cuts,
                                               absl::Span<const std::optional<TensorBox>> boxes);

  const BlockWalk& walk() const { return walk_; }
  // Tells whether block b reads no element of the operand but those of its piece b.
  bool ReadsPiece(size_t operand) const;
  // Returns the bytes of the operand in one block, if it is not cut into pieces.
  int64_t BlockBytes(size_t operand) const;
  // Tells whether the segment is an elementwise op by itself, not fused.
  bool is_elementwise() const { return !space_.has_value() && !micro_.has_value() && !types_.has_value(); }
  // Returns the multiplications of all blocks.
  double multiplications() const { return multiplications_; }
  // Tells whether the results of blocks are yet to be reduced to those of the whole.
  bool reduces_parts() const { return reduces_parts_; }
  // Pairs {result, operand} of which the result may be given the operand's memory.
  bool MayOverwrite(size_t result, size_t operand) const;

  // `make` makes the kernel of an instruction that is not fused.
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(absl::FunctionRef<cpu::MakeKernel> make,
                                                     const JitOptions& jit) const;

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
  bool CutDotIntoBoxes(absl::Span<const AxisCut> cuts, absl::Span<const std::optional<TensorBox>> boxes);
  bool CutMapIntoBoxes(absl::Span<const AxisCut> cuts, absl::Span<const std::optional<TensorBox>> boxes);
  // The rest, when the axes of a space or of a micro program are cut.
  void FindReaches(const DotSpace& space);
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
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_SEGMENT_BLOCKS_H_
