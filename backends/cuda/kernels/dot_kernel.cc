#include "backends/cuda/kernels/dot_kernel.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/kernels/copy_text.h"
#include "backends/cuda/kernels/dot_plan.h"
#include "backends/cuda/kernels/lt_product.h"
#include "backends/cuda/kernels/own_product_kernels.h"
#include "backends/cuda/kernels/product_space.h"
#include "backends/cuda/kernels/small_product_text.h"
#include "backends/cuda/libraries/status.h"
#include "engine/base/rounding.h"
#include "engine/base/status_macros.h"
#include "engine/ops/semiring.h"

namespace tensord::cuda {
namespace {

constexpr int64_t kDotScratchAlignment = 256;
constexpr int64_t kDotCopyBlocks = 16;  // a processor

// Sums of nothing.
class ZerosKernel final : public Kernel {
 public:
  ZerosKernel(const Driver* driver, int64_t bytes) : driver_(driver), bytes_(bytes) {}

  absl::Status Enqueue(const Launch& launch) const override {
    return StatusOf(*driver_,
                    driver_->cuMemsetD8Async(launch.results[0], 0, static_cast<size_t>(bytes_), launch.stream),
                    "cuMemsetD8Async");
  }
  std::string Describe() const override { return "zeros"; }

 private:
  const Driver* const driver_;
  const int64_t bytes_;
};

// Prints a copy, one that does not widen as those of all ops that move elements: by tiles where sides differ.
KernelText DotCopyText(const StridedCopy& copy, const CudaOptions& options) {
  if (copy.from != copy.to) return StridedCopyText(copy, int64_t{options.num_processors} * kDotCopyBlocks);
  CopyStage stage;
  CopyPart& part = stage.parts.emplace_back(CopyPart{.from = {.pointer = 0}, .into = {.pointer = 1}});
  int64_t dense = 1;
  for (const StridedCopy::Axis& axis : copy.axes) {
    part.axes.push_back({axis.size, copy.gathers ? axis.stride : dense, copy.gathers ? dense : axis.stride});
    dense *= axis.size;
  }
  return CopyText({stage}, SizeOf(copy.from), 0, options);
}

// A copy before or after the product.
struct DotCopy {
  std::shared_ptr<const LoadedKernel> kernel;  // null: none
  int64_t bytes = 0;                           // of the dense side, in scratch
  int64_t offset = 0;                          // of it
};

// The most blocks that a grid has along the axis on which kernels count matrices.
constexpr int64_t kMostLtBatch = 65535;
// Columns of a call, if there are others, are a multiple of these: all calls have addresses of one alignment.
constexpr int64_t kLtColumns = 16;

// Returns the multiply-adds that a call may have. Devices that were not made for science have few units for doubles.
double MostCallProducts(DType factor, const KernelContext& context) {
  const double most = static_cast<double>(context.most_call_products) * context.compiler->printing().num_processors;
  return SizeOf(RealPartOf(factor)) == 8 ? most / 8 : most;
}

// Returns the plan of a call, of so many matrices and of so many columns of each.
DotPlan LtPart(DotPlan plan, int64_t batch, int64_t columns) {
  plan.batch = batch;
  plan.n = plan.result.columns = columns;
  BatchedMatrix& right = plan.right.matrix;
  (plan.right.is_transposed ? right.rows : right.columns) = columns;
  return plan;
}

// A product of batches of matrices by cublasLt: in one call, or in parts for which it has an algorithm and that end
// soon, since nothing stops a call. Immutable after Create, so thread-safe.
class LtBatches {
 public:
  // The calling thread has entered the context. Null where the library has no algorithm for parts either.
  static absl::StatusOr<std::unique_ptr<LtBatches>> Create(const DotPlan& plan, const DotTypes& types, bool has_bias,
                                                           const KernelContext& context);

  // Enqueues result = left · right + bias, with the workspace, the stream and the handle of the launch.
  absl::Status Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress bias, CuAddress result) const;
  int64_t workspace_bytes() const;
  int64_t num_calls() const { return CeilDiv(batch_, part_) * CeilDiv(columns_, part_columns_); }

 private:
  LtBatches(const DotPlan& plan, const DotTypes& types, int64_t part, int64_t part_columns);

  const int64_t batch_, part_;                             // matrices of all, and of a call
  const int64_t columns_, part_columns_;                   // of a matrix, and of a call; fewer only where part_ is 1
  const int64_t left_bytes_, right_bytes_, result_bytes_;  // between matrices
  const int64_t right_column_bytes_, result_column_bytes_;
  std::unique_ptr<LtProduct> whole_, rest_;  // of a part, and of the last one if it is smaller
};

LtBatches::LtBatches(const DotPlan& plan, const DotTypes& types, int64_t part, int64_t part_columns)
    : batch_(plan.batch),
      part_(part),
      columns_(plan.n),
      part_columns_(part_columns),
      left_bytes_(plan.left.matrix.batch_stride * SizeOf(types.factor)),
      right_bytes_(plan.right.matrix.batch_stride * SizeOf(types.factor)),
      result_bytes_(plan.result.batch_stride * SizeOf(types.result)),
      right_column_bytes_((plan.right.is_transposed ? 1 : plan.right.matrix.leading) * SizeOf(types.factor)),
      result_column_bytes_(plan.result.leading * SizeOf(types.result)) {}

absl::StatusOr<std::unique_ptr<LtBatches>> LtBatches::Create(const DotPlan& plan, const DotTypes& types, bool has_bias,
                                                             const KernelContext& context) {
  const double most = MostCallProducts(types.factor, context);
  const double of_column =
      static_cast<double>(plan.m) * static_cast<double>(plan.k) * (kComplexes.Contains(types.factor) ? 4.0 : 1.0);
  const double matrices = most / (of_column * static_cast<double>(plan.n));
  const int64_t batch =
      matrices < static_cast<double>(plan.batch) ? std::max<int64_t>(1, static_cast<int64_t>(matrices)) : plan.batch;
  int64_t columns = plan.n;
  if (matrices < 1) {
    const auto groups = static_cast<int64_t>(most / of_column / static_cast<double>(kLtColumns));
    columns = std::min(columns, std::max<int64_t>(1, groups) * kLtColumns);
  }
  for (const int64_t part : {batch, kMostLtBatch}) {
    if (part > batch) break;
    std::unique_ptr<LtBatches> batches(new LtBatches(plan, types, part, columns));
    ASSIGN_OR_RETURN(batches->whole_, LtProduct::Create(LtPart(plan, part, columns), types, has_bias, context));
    if (batches->whole_ == nullptr) continue;
    const int64_t rest = plan.batch % part, rest_columns = plan.n % columns;
    if (rest == 0 && rest_columns == 0) return batches;
    const DotPlan last = rest > 0 ? LtPart(plan, rest, columns) : LtPart(plan, part, rest_columns);
    ASSIGN_OR_RETURN(batches->rest_, LtProduct::Create(last, types, has_bias, context));
    if (batches->rest_ != nullptr) return batches;
  }
  return nullptr;
}

absl::Status LtBatches::Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress bias,
                                CuAddress result) const {
  int64_t call = 0;
  for (int64_t b = 0; b < batch_; b += part_) {
    for (int64_t j = 0; j < columns_; j += part_columns_) {
      RETURN_IF_ERROR(launch.BeforePart(call++, num_calls()));
      const bool is_whole = batch_ - b >= part_ && columns_ - j >= part_columns_;
      const auto at = [](CuAddress base, int64_t bytes) { return base + static_cast<CuAddress>(bytes); };
      RETURN_IF_ERROR((is_whole ? whole_ : rest_)
                          ->Enqueue(launch, at(left, b * left_bytes_),
                                    at(right, b * right_bytes_ + j * right_column_bytes_), bias,
                                    at(result, b * result_bytes_ + j * result_column_bytes_)));
    }
  }
  return absl::OkStatus();
}

int64_t LtBatches::workspace_bytes() const {
  return std::max(whole_->workspace_bytes(), rest_ == nullptr ? 0 : rest_->workspace_bytes());
}

class DotKernel final : public Kernel {
 public:
  // Null where the library does not take the product. A bias is the operand behind those of the product.
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const DotPlan& plan, const DotTypes& types, bool has_bias,
                                                      const KernelContext& context) {
    std::unique_ptr<DotKernel> kernel(new DotKernel(plan, has_bias));
    RETURN_IF_ERROR(kernel->AddCopy(plan.left.pack, types.factor, context, &kernel->left_));
    RETURN_IF_ERROR(kernel->AddCopy(plan.right.pack, types.factor, context, &kernel->right_));
    RETURN_IF_ERROR(kernel->AddCopy(plan.unpack, types.result, context, &kernel->result_));
    ASSIGN_OR_RETURN(kernel->product_, LtBatches::Create(plan, types, has_bias, context));
    if (kernel->product_ == nullptr) return nullptr;
    return kernel;
  }

  absl::Status Enqueue(const Launch& launch) const override {
    ASSIGN_OR_RETURN(const CuAddress left, Packed(launch, plan_.left.side, left_));
    ASSIGN_OR_RETURN(const CuAddress right, Packed(launch, plan_.right.side, right_));
    const bool unpacks = result_.kernel != nullptr;
    const CuAddress result = unpacks ? launch.scratch + static_cast<CuAddress>(result_.offset) : launch.results[0];
    RETURN_IF_ERROR(product_->Enqueue(launch, left, right, has_bias_ ? launch.operands[2] : 0, result));
    if (!unpacks) return absl::OkStatus();
    return result_.kernel->Enqueue(launch.stream, {result, launch.results[0]});
  }
  absl::Status MakeHandles(LibraryHandles* handles) const override { return handles->blas_lt().status(); }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  std::string Describe() const override {
    const int copies = (left_.kernel != nullptr) + (right_.kernel != nullptr) + (result_.kernel != nullptr);
    return absl::StrCat("cublasLt ", plan_.m, " x ", plan_.n, " x ", plan_.k,
                        plan_.batch > 1 ? absl::StrCat(", batch of ", plan_.batch) : "",
                        has_bias_ ? ", with the bias" : "",
                        product_->num_calls() > 1 ? absl::StrCat(", ", product_->num_calls(), " calls") : "",
                        copies > 0 ? absl::StrCat(", ", copies, copies == 1 ? " copy" : " copies") : "");
  }

 private:
  DotKernel(const DotPlan& plan, bool has_bias) : plan_(plan), has_bias_(has_bias) {}

  absl::Status AddCopy(const std::optional<StridedCopy>& copy, DType dense, const KernelContext& context,
                       DotCopy* added) {
    if (!copy.has_value()) return absl::OkStatus();
    ASSIGN_OR_RETURN(added->kernel, context.compiler->Compile(DotCopyText(*copy, context.compiler->printing())));
    added->bytes = copy->num_elements() * SizeOf(dense);
    added->offset = scratch_bytes_;
    scratch_bytes_ += RoundUp(added->bytes, kDotScratchAlignment);
    return absl::OkStatus();
  }

  // Returns where the library reads an operand.
  absl::StatusOr<CuAddress> Packed(const Launch& launch, DotSide side, const DotCopy& copy) const {
    const CuAddress operand = launch.operands[side];
    if (copy.kernel == nullptr) return operand;
    const CuAddress packed = launch.scratch + static_cast<CuAddress>(copy.offset);
    RETURN_IF_ERROR(copy.kernel->Enqueue(launch.stream, {operand, packed}));
    return packed;
  }

  const DotPlan plan_;
  const bool has_bias_;
  DotCopy left_, right_, result_;  // constant after Make, like the next
  int64_t scratch_bytes_ = 0;
  std::unique_ptr<LtBatches> product_;
};

// Returns the types of a product that is cublasLt's; nothing for those of own kernels.
std::optional<DotTypes> TypesForLibrary(const BoundInstruction& instruction) {
  if (AlgebraOf(*instruction.attrs) != Algebra::kStandard || IsSmallProduct(ProductSpaceOf(instruction))) {
    return std::nullopt;
  }
  return DotTypesOf(instruction.operands[0].dtype, instruction.results[0].dtype);
}

DotPlan PlanOf(const BoundInstruction& instruction, const DotSpace& space, const DotTypes& types) {
  const DotAxes axes = DotAxesOf(*instruction.attrs);
  return PlanDot(space, types, axes.conjugates_lhs, axes.conjugates_rhs);
}

// Tells whether the access reads so many numbers in a row, again and again, in a program over the elements of a matrix
// that has as many rows.
bool ReadsOneARow(const MicroProgram& map, const MicroAccess& access, int64_t rows) {
  int64_t read = 1;
  for (size_t d = 0; d < map.axes.size(); ++d) {
    if (access.strides[d] != (read < rows ? read : 0)) return false;
    if (read < rows) read *= map.axes[d].size;
  }
  return access.offset == 0 && read == rows;
}

// Tells whether `map` adds a bias of F32 to operand `product`, a matrix that has so many rows.
bool AddsBias(const MicroProgram& map, int32_t product, int64_t rows) {
  if (map.tensors.size() != 2 || map.has_reduced_axes() || map.instructions.size() != 3 || map.results.size() != 1) {
    return false;
  }
  const MicroInstruction* const load = map.instructions.data();
  const MicroInstruction& sum = map.instructions[2];
  if (load[0].kind != MicroKind::kLoad || load[1].kind != MicroKind::kLoad || sum.kind != MicroKind::kBinary ||
      sum.op != CoreOp::kAdd || sum.operands[0] + sum.operands[1] != 1 || map.results[0].value != 2) {
    return false;
  }
  for (const MicroInstruction& instruction : map.instructions) {
    if (instruction.dtype != DType::kF32 || instruction.level != MicroLevel::kFull) return false;
  }
  const size_t first = load[0].tensor == product ? 0 : 1;
  return load[first].tensor == product && load[1 - first].tensor != product &&
         IsDense(map, load[first].access, MicroLevel::kFull) && ReadsOneARow(map, load[1 - first].access, rows);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeBiasedDotKernel(const BoundInstruction& instruction,
                                                            const MicroProgram& map, int32_t product,
                                                            const KernelContext& context) {
  const std::optional<DotTypes> types = TypesForLibrary(instruction);
  if (!types.has_value() || types->operand != DType::kF32 || types->result != DType::kF32) return nullptr;
  const DotSpace space = DotSpaceOf(instruction);
  if (space.Size(kSummed) == 0 || instruction.results[0].num_elements() == 0) return nullptr;
  const DotPlan plan = PlanOf(instruction, space, *types);
  const bool is_in_place = !plan.unpack.has_value() && plan.batch == 1 && plan.result.leading == plan.m;
  // A map of the product's first columns reads them densely too.
  const bool reads_all = map.num_points(MicroLevel::kFull) == instruction.results[0].num_elements();
  if (!is_in_place || !reads_all || !AddsBias(map, product, plan.m)) return nullptr;
  return DotKernel::Make(plan, *types, true, context);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDotKernel(const BoundInstruction& instruction,
                                                      const KernelContext& context) {
  const std::optional<DotTypes> types = TypesForLibrary(instruction);
  if (!types.has_value()) return MakeOwnProductKernel(instruction, context);
  const DotSpace space = DotSpaceOf(instruction);
  if (space.Size(kSummed) == 0) {
    return std::make_unique<ZerosKernel>(&context.libraries->driver(), instruction.results[0].num_bytes());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                   DotKernel::Make(PlanOf(instruction, space, *types), *types, false, context));
  if (kernel == nullptr) return MakeOwnProductKernel(instruction, context);
  return kernel;
}

}  // namespace tensord::cuda
