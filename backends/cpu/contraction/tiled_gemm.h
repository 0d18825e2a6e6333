#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_TILED_GEMM_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_TILED_GEMM_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/contraction/operands/factored_lines.h"
#include "backends/cpu/contraction/operands/tiled_operand.h"
#include "backends/cpu/machine/thread_pool.h"
#include "backends/cpu/matmul/tiles.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// A piece of a result whose sums are complete: rows that lie side by side, in columns at one step. Steps count
// elements.
struct GemmPiece {
  const char* elements = nullptr;  // where the tiles have written it
  int64_t elements_step = 0;       // from column to column there…
  int64_t first = 0;               // …and its place in the result
  int64_t first_step = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t slot = 0;  // below TiledGemm::slots(); no two pieces at a time have the same
};

// A step applied to each piece of a result, by the thread that made the piece and while it is in that thread's cache.
struct GemmEpilogue {
  absl::FunctionRef<void(const GemmPiece& piece)> finish;
  // A block of memory a slot, TiledGemm::block_bytes() each, in which pieces are made; null: in the result.
  char* blocks = nullptr;
};

// The products of matrices of a contraction in F32 or F64, by loops of ours. Rows, columns and summed axes may be any
// number of axes with any strides. Operands that cannot be read as they lie, or are read often, are packed into panels,
// a box of the product at a time. All threads pack one operand of a box for all. The other, if it is long enough, is
// packed in parts, each by the thread that multiplies the part and finds it in its cache. Small products of a batch are
// packed the same way. The cuts of the sums depend on sizes and strides only: same bits for any number of threads.
//
// Immutable after construction, so thread-safe. Run does not allocate and cannot fail.
class TiledGemm {
 public:
  // Plans the product; nothing if the machine lacks the loops or they are not the fastest way. Operands may be read
  // with zeros around them.
  static std::optional<TiledGemm> Plan(const DotSpace& space, DType dtype, const PaddedTensors& padded = {});
  // Plans the product of operands of which some are products of factors.
  static std::optional<TiledGemm> Plan(const DotSpace& space, DType dtype, const FactoredTensors& factored);
  // Plans the product in F32 of operands that may be 16-bit floats, which are always packed. IsFastest said so of F32.
  static TiledGemm PlanWidening(const DotSpace& space, const std::array<DType, 2>& read);
  // Answers whether Plan gives a product, for who only asks.
  static bool IsFastest(const DotSpace& space, DType dtype);

  int64_t scratch_bytes() const { return scratch_bytes_; }
  // Tells whether rows are windows that tiles read in place.
  bool reads_windows() const { return operands_[kLhs].windows.is_used(); }
  // Returns the number of threads that make pieces of the result at a time.
  int64_t slots() const { return slots_; }
  int64_t block_bytes() const;
  // Tells whether all of the result is made in pieces that suit an epilogue: no tile goes over the end of an axis.
  bool makes_pieces() const {
    return (result_rows_.size() == 1 || result_rows_[0].size % tiles_.rows == 0) &&
           (result_columns_.size() == 1 || result_columns_[0].size % tiles_.columns == 0);
  }
  // Tells whether no sum is put together in the result, so that its pieces may be made elsewhere.
  bool makes_whole_sums() const { return terms_.parts() <= 1; }
  // `scratch` is aligned to 64. `accumulates`: adds to the result. `epilogue` may be null, and is where makes_pieces()
  // is false; it gets all of the result, each element once, and where it has blocks nothing is written to `result`.
  void Run(const char* lhs, const char* rhs, char* result, char* scratch, bool accumulates, ThreadPool& pool,
           const GemmEpilogue* epilogue = nullptr) const;
  // Runs with operands that are products of factors, given by the addresses of the factors; such an operand itself is
  // null.
  void RunFactored(const std::array<const char*, 2>& operands, const FactorAddresses& factors, char* result,
                   char* scratch, ThreadPool& pool) const;

 private:
  // Sizes of one role in parts, all but the last equal.
  struct Cut {
    int64_t size = 0;
    int64_t part = 0;
    int64_t parts() const { return part == 0 ? 0 : (size + part - 1) / part; }
    int64_t Length(int64_t index) const { return size - index * part < part ? size - index * part : part; }
  };
  struct Box;

  // The threads that pack an operand.
  enum class Method {
    kShared,       // both operands by all threads for all
    kOwnRows,      // rhs by all threads for all, rows of lhs by who multiplies them
    kOwnColumns,   // the other way round
    kOwnProducts,  // products of a batch by who multiplies them
  };

  TiledGemm(const DotSpace& ordered, DType dtype, const PaddedTensors& padded, const std::array<DType, 2>& read,
            const FactoredTensors& factored);
  int64_t BytesOf(DotSide side) const { return side == kDotResult ? element_bytes_ : SizeOf(operands_[side].dtype); }
  bool reads_halves() const { return operands_[kLhs].dtype != dtype_ || operands_[kRhs].dtype != dtype_; }
  // Tells whether each thread brings the rows of lhs that it multiplies into its cache.
  bool HasOwnRows() const;
  int64_t LineBytes() const { return terms_.part * element_bytes_; }
  void PlanWindows(const PaddedTensor& padded);
  void PlanTerms();
  void PlanBoxes(const PaddedTensor& padded_lhs);
  void PlanSlide(const PaddedTensor& padded);
  void PlanOwnRows(int64_t most);
  void PlanOwnColumns(int64_t most);
  void PlanShared(int64_t most);
  Method ChooseMethod(int64_t most) const;
  int64_t PackedBytes(DotSide side, int64_t lines) const;
  int64_t BatchOffset(DotSide side, int64_t index) const;
  int64_t PanelGroups(DotSide side, const Box& box) const;
  void PackPanels(DotSide side, const Box& box, int64_t group) const;
  void PackAll(DotSide side, const Box& box) const;
  void Multiply(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const;
  void MultiplyPiece(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const;
  // The product is written to `scattered`, column after column, or where it is null to the result.
  void MultiplyBlock(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns,
                     char* scattered = nullptr) const;
  void MultiplyScattered(const Box& box, int64_t row, int64_t rows, int64_t column, int64_t columns) const;
  void MoveToProduct(int64_t index, Box* box) const;
  template <typename Task>
  void RunTasks(int64_t tasks, ThreadPool& pool, Task task) const;
  template <typename Task>
  void RunInSlots(int64_t tasks, ThreadPool& pool, Task task) const;
  void MoveToTerms(int64_t index, Box* box) const;
  void RunPart(Box part, int64_t index, int64_t slot, int64_t first, int64_t count) const;
  void RunOwnRows(const Box& box, int64_t first, int64_t count, ThreadPool& pool) const;
  void RunRowsOfProducts(Box box, ThreadPool& pool) const;
  void RunOwnColumns(const Box& box, ThreadPool& pool) const;
  void RunShared(const Box& box, ThreadPool& pool) const;
  void RunBoxes(Box box, ThreadPool& pool) const;
  void RunProduct(Box box) const;
  void RunFrom(Box box, char* scratch, ThreadPool& pool) const;

  GemmTiles tiles_;
  DType dtype_ = DType::kInvalid;  // that is computed in
  int64_t element_bytes_ = 1;
  std::array<TiledOperand, 2> operands_;
  DotAxisList result_batch_;
  DotAxisList result_rows_;
  DotAxisList result_columns_;
  int64_t num_products_ = 0;
  Method method_ = Method::kShared;
  bool runs_on_caller_ = false;
  Cut rows_, columns_, terms_;                  // boxes
  absl::InlinedVector<int64_t, 16> part_ends_;  // of own rows
  int64_t task_rows_ = 0;                       // of a box
  int64_t task_columns_ = 0;
  // The places of packed panels in scratch: of the shared ones, and of as many parts as may be worked on at a time.
  std::array<int64_t, 2> places_ = {0, 0};
  int64_t slots_ = 1;
  int64_t slot_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_TILED_GEMM_H_
