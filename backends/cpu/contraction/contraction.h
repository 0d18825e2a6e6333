#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_CONTRACTION_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_CONTRACTION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "backends/cpu/contraction/contraction_plan.h"
#include "backends/cpu/contraction/half_vector_product.h"
#include "backends/cpu/contraction/lane_product.h"
#include "backends/cpu/contraction/matrix_products.h"
#include "backends/cpu/contraction/mode_product.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/contraction/panels.h"
#include "backends/cpu/contraction/tiled_gemm.h"
#include "backends/cpu/layout/strided_copy.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/tensor/shape.h"

namespace tensord::cpu {

// A planned dot_general of dense column-major tensors. Result axes are lhs free, rhs free, batch, so that each matrix
// of the batch is contiguous. They may also be a permutation of these: products write it directly if their rows can lie
// side by side there, else the result is made in order first and copied. Either side may be conjugated as it is read;
// integers wrap; BOOL is or of ands; F16 and BF16 are computed in F32; a wider result dtype is computed in that dtype.
// The sum over no elements is 0.
//
// Tiles widen 16-bit floats as they pack them, and round results in blocks if no sum is put together in the result.
//
// If the axes of each role form one axis of a matrix, operands are read as they lie. Other operands are either walked
// over in matrices, or packed a panel at a time into scratch, whichever is cheaper. Panels also hold operands to be
// converted or conjugated, and results to be rounded. They are bounded by some MiB and small beside the tensors.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail. Same bits for any number of
// threads.
class Contraction {
 public:
  // Plans a product. The axes must be valid for the shapes, and the result dtype for the operands' dtypes.
  // UNSUPPORTED_ON_DEVICE if a size is beyond BLAS's counters.
  static absl::StatusOr<Contraction> Create(const ConcreteType& lhs, const ConcreteType& rhs, const DotAxes& axes,
                                            DType result_dtype);
  // Plans a product of operands with any strides: elements may be read many times. No role is empty, and strides are
  // not negative.
  static absl::StatusOr<Contraction> Create(const DotSpace& space, const std::array<DotOperand, 2>& operands,
                                            DType result_dtype);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // Memory for panels of operands that lie in the caches; at most kMaxWorkspaceBytes.
  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Tells whether Run takes an epilogue: tiles make the result in its own dtype, in its own place.
  bool takes_epilogue() const;
  // Tells whether the epilogue may then have blocks, one a slot.
  bool makes_whole_sums() const;
  int64_t slots() const;
  int64_t block_bytes() const;
  // Both memories have that many bytes, and are aligned to 64. `epilogue` as of TiledGemm; `result` is null if it
  // has blocks.
  void Run(const void* lhs, const void* rhs, void* result, void* scratch, void* workspace, ThreadPool& pool,
           const GemmEpilogue* epilogue = nullptr) const;

 private:
  // Walks over boxes along one axis.
  struct Loop {
    DotRole role = kRows;
    int64_t count = 0;
    std::array<int64_t, kNumDotSides> steps = {0, 0, 0};  // bytes
    bool has_shorter_last = false;
  };
  // The work in one box. Boxes differ by the roles in which they are the shorter last one.
  struct Box {
    bool occurs = false;
    std::array<DotPanel, 2> panels;
    RoundedBox rounded;
    std::optional<TiledGemm> tiled;  // where that is fastest, else
    DotProducts products;
  };
  // The places of panels in scratch.
  struct Places {
    std::array<int64_t, 2> panels = {0, 0};
    std::array<int64_t, 2> staging = {0, 0};
    int64_t rounded = 0;
    int64_t partials = 0;
    int64_t result = 0;  // in order
  };
  struct Position;
  struct Memory {
    char* scratch;
    char* workspace;
    const GemmEpilogue* epilogue;
  };

  Contraction() = default;
  static absl::StatusOr<Contraction> Plan(DotSpace space, const std::array<DotOperand, 2>& operands, DType result_dtype,
                                          bool is_permuted);
  // Plans one product that makes all of the result; false if boxes do.
  bool PlanWhole(const DotSpace& space, const std::array<DotOperand, 2>& operands, bool converts);
  void PlaceResult(DotSpace* space, std::array<DotOperand, 2>* operands);
  bool PlanOneOfHalves(const DotSpace& space, const std::array<DotOperand, 2>& operands);
  absl::Status PlanBoxes(const DotSpace& space, const std::array<DotOperand, 2>& operands);
  void RunBoxes(std::array<const char*, 2> operands, char* result, const Memory& memory, ThreadPool& pool) const;
  Box MakeBox(DotSpace space, const DotPlan& plan, const std::array<DotOperand, 2>& operands) const;
  void PlaceScratch();
  void RunTiled(const TiledGemm& tiled, const Position& position, std::array<const char*, 2> operands, char* result,
                const Memory& memory, ThreadPool& pool) const;
  void RunRounded(const TiledGemm& tiled, std::array<const char*, 2> operands, char* result, const Memory& memory,
                  ThreadPool& pool) const;
  void RunBox(const Position& position, std::array<const char*, 2> operands, char* result, const Memory& memory,
              ThreadPool& pool) const;

  // Constant after Create.
  std::array<bool, 2> packs_ = {false, false};
  bool rounds_ = false;            // a dense box of the result at a time
  bool rounds_in_blocks_ = false;  // or blocks of it, as soon as they are made
  DType computed_ = DType::kInvalid;
  DType result_dtype_ = DType::kInvalid;
  // One of these makes all of the result, or boxes do.
  std::variant<std::monostate, ModeProduct, LaneProduct, HalfVectorProduct> whole_;
  bool swaps_ = false;  // lhs is taken for rhs
  bool copies_result_ = false;
  StridedCopy result_copy_;             // from where it lies in order
  absl::InlinedVector<Loop, 4> loops_;  // the fastest first, which are those over summed axes
  int64_t num_boxes_ = 0;
  std::vector<Box> boxes_;  // by the bits 1 << role of the shorter last boxes
  Places places_;
  int64_t scratch_bytes_ = 0;
  int64_t workspace_bytes_ = 0;
  int64_t blocks_offset_ = 0;  // in the workspace: of those that are rounded
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_CONTRACTION_H_
