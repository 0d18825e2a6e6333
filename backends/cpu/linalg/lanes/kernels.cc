#include "backends/cpu/linalg/lanes/kernels.h"

#include <algorithm>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/linalg/lanes/loops.h"
#include "backends/cpu/machine/task_slots.h"
#include "engine/base/refusal.h"
#include "engine/base/rounding.h"
#include "engine/base/stop_signal.h"
#include "engine/families/linalg/linalg_ops.h"
#include "engine/families/linalg/matrix_refusal.h"

namespace tensord::cpu {
namespace {

// Returns the size of the largest matrices that are much faster across lanes in a batch, while a single one takes at
// most two or three times as long as in LAPACK. It is smaller for ops that store L, U and P and exchange rows of L, or
// that sweep.
int64_t LargestSize(SmallMatrixOp op) {
  const bool ends_sooner = op == SmallMatrixOp::kLu || op == SmallMatrixOp::kSvd || op == SmallMatrixOp::kEigh;
  return ends_sooner ? 16 : kMaxSmallMatrixSize;
}

// An instruction as the loops see it: its operands and results are theirs, except that values alone are one result.
struct SmallMatrixCase {
  SmallMatrixOp op;
  SmallMatrixBatch sizes;
  Refusal refusal = Refusal::kInternal;
  size_t first_result = 0;
};

bool IsIterative(SmallMatrixOp op) { return op == SmallMatrixOp::kSvd || op == SmallMatrixOp::kEigh; }

std::optional<SmallMatrixCase> CaseOf(const BoundInstruction& instruction) {
  const Attributes& attrs = *instruction.attrs;
  const Shape& shape = instruction.operands[0].shape;
  SmallMatrixCase found{.sizes = {.rows = shape[0], .columns = shape[1]}};
  switch (static_cast<LinalgOp>(instruction.op->index)) {
    case LinalgOp::kCholesky:
      found.op = SmallMatrixOp::kCholesky;
      found.refusal = Refusal::kMatrixNotPositiveDefinite;
      return found;
    case LinalgOp::kLu:
      found.op = SmallMatrixOp::kLu;
      return found;
    case LinalgOp::kQr:
      found.op = SmallMatrixOp::kQr;
      found.sizes.full = attrs.Flag("full");
      return found;
    case LinalgOp::kSvd:
      found.sizes.full = attrs.Flag("full");
      [[fallthrough]];
    case LinalgOp::kSvdValues:
      found.op = SmallMatrixOp::kSvd;
      found.refusal = Refusal::kNoConvergence;
      found.sizes.only_values = instruction.results.size() == 1;
      found.first_result = found.sizes.only_values ? 1 : 0;
      return found;
    case LinalgOp::kEigh:
    case LinalgOp::kEighValues:
      found.op = SmallMatrixOp::kEigh;
      found.sizes.only_values = instruction.results.size() == 1;
      found.refusal = Refusal::kNoConvergence;
      return found;
    case LinalgOp::kSolve:
      found.op = SmallMatrixOp::kSolve;
      found.refusal = Refusal::kMatrixSingular;
      found.sizes.right_sides = instruction.operands[1].shape[1];
      return found;
    case LinalgOp::kTriangularSolve:
      found.op = SmallMatrixOp::kTriangularSolve;
      found.sizes.left_side = attrs.Flag("left_side");
      found.sizes.lower = attrs.Flag("lower");
      found.sizes.unit_diagonal = attrs.Flag("unit_diagonal");
      found.sizes.transposed = attrs.Int("transpose_a") != 0;
      found.sizes.conjugated = attrs.Int("transpose_a") == 2;
      found.sizes.right_sides = instruction.operands[1].shape[found.sizes.left_side ? 1 : 0];
      return found;
    default:
      return std::nullopt;
  }
}

// Tasks are ranges of groups of matrices that lie across lanes. Scratch holds each task's first failure. Workspaces of
// tasks stay in the caches: there are as many as tasks may run at a time.
class SmallMatrixKernel final : public Kernel {
 public:
  SmallMatrixKernel(const BoundInstruction& instruction, const SmallMatrixCase& found, const SmallMatrixLoops& loops)
      : case_(found), loops_(loops), shape_(instruction.operands[0].shape) {
    matrices_ = 1;
    for (size_t i = 2; i < shape_.size(); ++i) matrices_ *= shape_[i];
    for (const ConcreteType& operand : instruction.operands) operand_bytes_.push_back(operand.num_bytes() / matrices_);
    for (const ConcreteType& result : instruction.results) result_bytes_.push_back(result.num_bytes() / matrices_);
    place_bytes_ = RoundUp(SmallMatrixScratchEntries(case_.op, case_.sizes) * loops_.entry_bytes, 64);
    const SmallMatrixBatch& sizes = case_.sizes;
    const int64_t work = (sizes.rows + sizes.right_sides) * sizes.columns * std::min(sizes.rows, sizes.columns) *
                         (IsIterative(case_.op) ? kSweeps : 1);
    const int64_t groups = CeilDiv(matrices_, loops_.lanes);
    const int64_t block = std::max(CeilDiv(kTaskWork, work), CeilDiv(groups, kMaxTasks));
    tasks_ = CeilDiv(groups, block);
    task_matrices_ = block * loops_.lanes;
    piece_matrices_ = std::max<int64_t>(1, kPieceWork / work) * loops_.lanes;
    places_ = std::min(TaskSlots(tasks_), std::max<int64_t>(1, kMaxWorkspaceBytes / place_bytes_));
  }

  void Run(const KernelArgs& args) const override {
    SmallMatrixFailure* const failures = static_cast<SmallMatrixFailure*>(args.scratch);
    char* const places =
        tasks_ == 1 ? static_cast<char*>(args.scratch) + FailureBytes() : static_cast<char*>(args.workspace);
    const auto run = [&](int64_t task, int64_t place) {
      const int64_t end = std::min(matrices_, (task + 1) * task_matrices_);
      for (int64_t begin = task * task_matrices_; begin < end && !StopRequested(); begin += piece_matrices_) {
        const int64_t piece_end = std::min(end, begin + piece_matrices_);
        failures[task] = loops_.run(OfMatrices(begin, piece_end, args), places + place * place_bytes_);
        if (failures[task].matrix < 0) continue;
        failures[task].matrix += begin;
        return;
      }
    };
    if (!RunInSlots(tasks_, places_, *args.pool, run)) return;
    for (int64_t task = 0; task < tasks_; ++task) {
      if (failures[task].matrix < 0) continue;
      *args.failure = RefuseMatrix(case_.refusal, shape_, failures[task].matrix, failures[task].info);
      return;
    }
  }

  int64_t scratch_bytes() const override { return FailureBytes() + (tasks_ == 1 ? place_bytes_ : 0); }
  int64_t workspace_bytes() const override { return tasks_ == 1 ? 0 : places_ * place_bytes_; }

  std::string Describe() const override { return "matrices across the lanes of vectors"; }

 private:
  static constexpr int64_t kMaxTasks = 64;  // as of batches that LAPACK has: more would not end more evenly
  static constexpr int64_t kTaskWork = int64_t{1} << 15;  // of vector operations
  // The work between two looks whether the run is still wanted: some milliseconds.
  static constexpr int64_t kPieceWork = int64_t{1} << 21;
  static constexpr int64_t kSweeps = 30;  // times as much work as without

  int64_t FailureBytes() const { return RoundUp(tasks_ * static_cast<int64_t>(sizeof(SmallMatrixFailure)), 64); }

  SmallMatrixBatch OfMatrices(int64_t begin, int64_t end, const KernelArgs& args) const {
    SmallMatrixBatch batch = case_.sizes;
    batch.count = end - begin;
    for (size_t i = 0; i < operand_bytes_.size(); ++i) {
      batch.operands[i] = static_cast<const char*>(args.operands[i]) + begin * operand_bytes_[i];
    }
    for (size_t i = 0; i < result_bytes_.size(); ++i) {
      batch.results[case_.first_result + i] = static_cast<char*>(args.results[i]) + begin * result_bytes_[i];
    }
    return batch;
  }

  const SmallMatrixCase case_;
  const SmallMatrixLoops loops_;
  const Shape shape_;
  int64_t matrices_ = 0;
  int64_t place_bytes_ = 0;
  int64_t tasks_ = 0;
  int64_t places_ = 0;
  int64_t task_matrices_ = 0;
  int64_t piece_matrices_ = 0;
  absl::InlinedVector<int64_t, 2> operand_bytes_;
  absl::InlinedVector<int64_t, 4> result_bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallMatrixKernel(const BoundInstruction& instruction) {
  const std::optional<SmallMatrixCase> found = CaseOf(instruction);
  if (!found.has_value()) return nullptr;
  const SmallMatrixBatch& sizes = found->sizes;
  const int64_t most = LargestSize(found->op);
  if (std::max({sizes.rows, sizes.columns, sizes.right_sides}) > most) return nullptr;
  for (const ConcreteType& operand : instruction.operands) {
    if (operand.num_elements() == 0) return nullptr;
  }
  const SmallMatrixLoops loops = GetSmallMatrixLoops(found->op, instruction.operands[0].dtype);
  if (loops.run == nullptr) return nullptr;
  return std::make_unique<SmallMatrixKernel>(instruction, *found, loops);
}

}  // namespace tensord::cpu
