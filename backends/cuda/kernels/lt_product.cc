#include "backends/cuda/kernels/lt_product.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cuda/libraries/status.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

// What NVIDIA recommends for Hopper; other devices take less of it.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;
constexpr uint32_t kAlignedBytes = 16;
// Partial sums go into the workspace and are added in one order.
constexpr uint32_t kOrderedReductions = kBlasLtReductionComputeType;

int LtTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return kCudaReal16;
    case DType::kBF16:
      return kCudaBrain16;
    case DType::kF64:
      return kCudaReal64;
    case DType::kC64:
      return kCudaComplex32;
    case DType::kC128:
      return kCudaComplex64;
    default:
      return kCudaReal32;
  }
}

// The type of sums and of the factors.
int SumTypeOf(DType factor) {
  const bool is_half = factor == DType::kF16 || factor == DType::kBF16;
  return is_half ? kCudaReal32 : LtTypeOf(factor);
}

int ComputeTypeOf(DType factor) {
  return factor == DType::kF64 || factor == DType::kC128 ? kBlasCompute64 : kBlasCompute32;
}

// An object of the library that is needed while a product is made.
class LtHandle {
 public:
  explicit LtHandle(const BlasLt* library) : library_(library) {}
  ~LtHandle() {
    if (handle_ != nullptr) library_->cublasLtDestroy(handle_);
  }
  LtHandle(const LtHandle&) = delete;
  LtHandle& operator=(const LtHandle&) = delete;
  absl::Status Open() { return StatusOfBlas(library_->cublasLtCreate(&handle_), "cublasLtCreate"); }
  BlasLtHandle get() const { return handle_; }

 private:
  const BlasLt* const library_;
  BlasLtHandle handle_ = nullptr;
};

class LtPreference {
 public:
  explicit LtPreference(const BlasLt* library) : library_(library) {}
  ~LtPreference() {
    if (preference_ != nullptr) library_->cublasLtMatmulPreferenceDestroy(preference_);
  }
  LtPreference(const LtPreference&) = delete;
  LtPreference& operator=(const LtPreference&) = delete;
  absl::Status Open() {
    return StatusOfBlas(library_->cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
  }
  template <typename T>
  absl::Status Set(int attribute, T value) {
    return StatusOfBlas(library_->cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof(value)),
                        "cublasLtMatmulPreferenceSetAttribute");
  }
  BlasLtPreference get() const { return preference_; }

 private:
  const BlasLt* const library_;
  BlasLtPreference preference_ = nullptr;
};

bool LtCounts(const DotPlan& plan) {
  return std::max({plan.m, plan.n, plan.k, plan.batch}) < std::numeric_limits<int32_t>::max();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LtProduct>> LtProduct::Create(const DotPlan& plan, const DotTypes& types,
                                                             const KernelContext& context) {
  if (!LtCounts(plan)) return nullptr;
  ASSIGN_OR_RETURN(const BlasLt* const library, context.libraries->blas_lt());
  std::unique_ptr<LtProduct> product(new LtProduct(library));
  RETURN_IF_ERROR(product->Describe(plan, types));
  LtHandle handle(library);
  RETURN_IF_ERROR(handle.Open());
  ASSIGN_OR_RETURN(const bool has_algorithms, product->ChooseAll(handle.get(), types));
  if (!has_algorithms) return nullptr;
  return product;
}

// These are of the host alone, also where the device is lost.
LtProduct::~LtProduct() {
  for (const BlasLtMatrixLayout layout : {left_, right_, result_}) {
    if (layout != nullptr) library_->cublasLtMatrixLayoutDestroy(layout);
  }
  if (desc_ != nullptr) library_->cublasLtMatmulDescDestroy(desc_);
}

absl::Status LtProduct::Describe(const DotPlan& plan, const DotTypes& types) {
  const int sum_type = SumTypeOf(types.factor);
  const auto set_one = [&](auto one) { std::memcpy(one_.data(), &one, sizeof(one)); };
  // Of complex numbers the real part.
  sum_type == kCudaReal32 || sum_type == kCudaComplex32 ? set_one(1.0f) : set_one(1.0);
  RETURN_IF_ERROR(StatusOfBlas(library_->cublasLtMatmulDescCreate(&desc_, ComputeTypeOf(types.factor), sum_type),
                               "cublasLtMatmulDescCreate"));
  const auto set_operation = [&](int attribute, const DotFactor& factor) {
    const int32_t operation = !factor.is_transposed  ? kBlasNoTranspose
                              : factor.is_conjugated ? kBlasConjugateTranspose
                                                     : kBlasTranspose;
    return StatusOfBlas(library_->cublasLtMatmulDescSetAttribute(desc_, attribute, &operation, sizeof(operation)),
                        "cublasLtMatmulDescSetAttribute");
  };
  RETURN_IF_ERROR(set_operation(kBlasLtDescTransposeA, plan.left));
  RETURN_IF_ERROR(set_operation(kBlasLtDescTransposeB, plan.right));
  RETURN_IF_ERROR(AddLayout(plan.left.matrix, types.factor, plan.batch, &left_));
  RETURN_IF_ERROR(AddLayout(plan.right.matrix, types.factor, plan.batch, &right_));
  return AddLayout(plan.result, types.result, plan.batch, &result_);
}

absl::Status LtProduct::AddLayout(const BatchedMatrix& matrix, DType dtype, int64_t batch, BlasLtMatrixLayout* layout) {
  RETURN_IF_ERROR(
      StatusOfBlas(library_->cublasLtMatrixLayoutCreate(layout, LtTypeOf(dtype), static_cast<uint64_t>(matrix.rows),
                                                        static_cast<uint64_t>(matrix.columns), matrix.leading),
                   "cublasLtMatrixLayoutCreate"));
  if (batch == 1) return absl::OkStatus();
  const auto set = [&](int attribute, auto value) {
    return StatusOfBlas(library_->cublasLtMatrixLayoutSetAttribute(*layout, attribute, &value, sizeof(value)),
                        "cublasLtMatrixLayoutSetAttribute");
  };
  RETURN_IF_ERROR(set(kBlasLtLayoutBatch, static_cast<int32_t>(batch)));
  return set(kBlasLtLayoutBatchStride, matrix.batch_stride);
}

absl::StatusOr<bool> LtProduct::ChooseAll(BlasLtHandle handle, const DotTypes& types) {
  LtPreference preference(library_);
  RETURN_IF_ERROR(preference.Open());
  RETURN_IF_ERROR(preference.Set(kBlasLtPreferMaxWorkspaceBytes, kMostWorkspaceBytes));
  RETURN_IF_ERROR(preference.Set(kBlasLtPreferReductionSchemes, kOrderedReductions));
  const auto choose = [&](uint32_t alignment_bytes, BlasLtHeuristic* chosen) -> absl::StatusOr<bool> {
    for (const int attribute :
         {kBlasLtPreferAlignmentA, kBlasLtPreferAlignmentB, kBlasLtPreferAlignmentC, kBlasLtPreferAlignmentD}) {
      RETURN_IF_ERROR(preference.Set(attribute, alignment_bytes));
    }
    int found = 0;
    const BlasResult result = library_->cublasLtMatmulAlgoGetHeuristic(handle, desc_, left_, right_, result_, result_,
                                                                       preference.get(), 1, chosen, &found);
    if (result == kBlasNotSupported || result == kBlasArchitectureMismatch) return false;
    RETURN_IF_ERROR(StatusOfBlas(result, "cublasLtMatmulAlgoGetHeuristic"));
    return found > 0 && chosen->state == kBlasSuccess;
  };
  ASSIGN_OR_RETURN(const bool has_aligned, choose(kAlignedBytes, &aligned_));
  if (!has_aligned) return false;
  return choose(static_cast<uint32_t>(std::min(SizeOf(types.factor), SizeOf(types.result))), &any_);
}

absl::Status LtProduct::Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress result) const {
  ASSIGN_OR_RETURN(const BlasLtHandle handle, launch.handles->blas_lt());
  const bool is_aligned = (left | right | result) % kAlignedBytes == 0;
  const BlasLtHeuristic& chosen = is_aligned ? aligned_ : any_;
  const auto pointer = [](CuAddress address) { return reinterpret_cast<void*>(address); };
  return StatusOfBlas(
      library_->cublasLtMatmul(handle, desc_, one_.data(), pointer(left), left_, pointer(right), right_, zero_.data(),
                               pointer(result), result_, pointer(result), result_, &chosen.algorithm,
                               pointer(launch.workspace), chosen.workspace_bytes, launch.stream),
      "cublasLtMatmul");
}

int64_t LtProduct::workspace_bytes() const {
  return static_cast<int64_t>(std::max(aligned_.workspace_bytes, any_.workspace_bytes));
}

}  // namespace tensord::cuda
