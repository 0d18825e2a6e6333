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

int32_t OperationOf(const DotFactor& factor) {
  if (!factor.is_transposed) return kBlasNoTranspose;
  return factor.is_conjugated ? kBlasConjugateTranspose : kBlasTranspose;
}

bool LtCounts(const DotPlan& plan) {
  return std::max({plan.m, plan.n, plan.k, plan.batch}) < std::numeric_limits<int32_t>::max();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LtProduct>> LtProduct::Create(const DotPlan& plan, const DotTypes& types, bool has_bias,
                                                             const KernelContext& context) {
  if (!LtCounts(plan)) return nullptr;
  ASSIGN_OR_RETURN(const BlasLt* const library, context.libraries->blas_lt());
  std::unique_ptr<LtProduct> product(new LtProduct(library, plan, types, has_bias));
  RETURN_IF_ERROR(product->Describe(plan));
  LtHandle handle(library);
  RETURN_IF_ERROR(handle.Open());
  ASSIGN_OR_RETURN(const bool has_algorithms, product->ChooseAll(handle.get()));
  if (!has_algorithms) return nullptr;
  return product;
}

LtProduct::LtProduct(const BlasLt* library, const DotPlan& plan, const DotTypes& types, bool has_bias)
    : library_(library),
      types_(types),
      left_operation_(OperationOf(plan.left)),
      right_operation_(OperationOf(plan.right)),
      has_bias_(has_bias) {}

// These are of the host alone, also where the device is lost.
LtProduct::~LtProduct() {
  for (const BlasLtMatrixLayout layout : {left_, right_, result_}) {
    if (layout != nullptr) library_->cublasLtMatrixLayoutDestroy(layout);
  }
  if (desc_ != nullptr) library_->cublasLtMatmulDescDestroy(desc_);
}

absl::Status LtProduct::Describe(const DotPlan& plan) {
  const int sum_type = SumTypeOf(types_.factor);
  const auto set_one = [&](auto one) { std::memcpy(one_.data(), &one, sizeof(one)); };
  // Of complex numbers the real part.
  sum_type == kCudaReal32 || sum_type == kCudaComplex32 ? set_one(1.0f) : set_one(1.0);
  if (!has_bias_) RETURN_IF_ERROR(MakeDesc(0, &desc_));
  RETURN_IF_ERROR(AddLayout(plan.left.matrix, types_.factor, plan.batch, &left_));
  RETURN_IF_ERROR(AddLayout(plan.right.matrix, types_.factor, plan.batch, &right_));
  return AddLayout(plan.result, types_.result, plan.batch, &result_);
}

absl::Status LtProduct::MakeDesc(CuAddress bias, BlasLtMatmulDesc* desc) const {
  RETURN_IF_ERROR(
      StatusOfBlas(library_->cublasLtMatmulDescCreate(desc, ComputeTypeOf(types_.factor), SumTypeOf(types_.factor)),
                   "cublasLtMatmulDescCreate"));
  const auto set = [&](int attribute, auto value) {
    return StatusOfBlas(library_->cublasLtMatmulDescSetAttribute(*desc, attribute, &value, sizeof(value)),
                        "cublasLtMatmulDescSetAttribute");
  };
  RETURN_IF_ERROR(set(kBlasLtDescTransposeA, left_operation_));
  RETURN_IF_ERROR(set(kBlasLtDescTransposeB, right_operation_));
  if (!has_bias_) return absl::OkStatus();
  RETURN_IF_ERROR(set(kBlasLtDescEpilogue, uint32_t{kBlasLtEpilogueBias}));
  return set(kBlasLtDescBiasPointer, reinterpret_cast<const void*>(bias));
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

absl::StatusOr<bool> LtProduct::ChooseAll(BlasLtHandle handle) {
  ASSIGN_OR_RETURN(const bool has_aligned, Choose(handle, kAlignedBytes, &aligned_));
  if (!has_aligned) return false;
  return Choose(handle, static_cast<uint32_t>(std::min(SizeOf(types_.factor), SizeOf(types_.result))), &any_);
}

absl::StatusOr<bool> LtProduct::Choose(BlasLtHandle handle, uint32_t alignment_bytes, BlasLtHeuristic* chosen) {
  LtPreference preference(library_);
  RETURN_IF_ERROR(preference.Open());
  RETURN_IF_ERROR(preference.Set(kBlasLtPreferMaxWorkspaceBytes, kMostWorkspaceBytes));
  RETURN_IF_ERROR(preference.Set(kBlasLtPreferReductionSchemes, kOrderedReductions));
  for (const int attribute :
       {kBlasLtPreferAlignmentA, kBlasLtPreferAlignmentB, kBlasLtPreferAlignmentC, kBlasLtPreferAlignmentD}) {
    RETURN_IF_ERROR(preference.Set(attribute, alignment_bytes));
  }
  // Of a bias the library looks at the address, and reads nothing: that has the alignment too.
  BlasLtMatmulDesc desc = desc_;
  absl::Status made = has_bias_ ? MakeDesc(alignment_bytes, &desc) : absl::OkStatus();
  int found = 0;
  BlasResult result = kBlasSuccess;
  if (made.ok()) {
    result = library_->cublasLtMatmulAlgoGetHeuristic(handle, desc, left_, right_, result_, result_, preference.get(),
                                                      1, chosen, &found);
  }
  if (has_bias_ && desc != nullptr) library_->cublasLtMatmulDescDestroy(desc);
  RETURN_IF_ERROR(made);
  if (result == kBlasNotSupported || result == kBlasArchitectureMismatch) return false;
  RETURN_IF_ERROR(StatusOfBlas(result, "cublasLtMatmulAlgoGetHeuristic"));
  return found > 0 && chosen->state == kBlasSuccess;
}

absl::Status LtProduct::Enqueue(const Launch& launch, CuAddress left, CuAddress right, CuAddress bias,
                                CuAddress result) const {
  const bool is_aligned = (left | right | bias | result) % kAlignedBytes == 0;
  const BlasLtHeuristic& chosen = is_aligned ? aligned_ : any_;
  if (!has_bias_) return Multiply(launch, desc_, chosen, left, right, result);
  BlasLtMatmulDesc desc = nullptr;
  absl::Status multiplied = MakeDesc(bias, &desc);
  if (multiplied.ok()) multiplied = Multiply(launch, desc, chosen, left, right, result);
  if (desc != nullptr) library_->cublasLtMatmulDescDestroy(desc);
  return multiplied;
}

absl::Status LtProduct::Multiply(const Launch& launch, BlasLtMatmulDesc desc, const BlasLtHeuristic& chosen,
                                 CuAddress left, CuAddress right, CuAddress result) const {
  ASSIGN_OR_RETURN(const BlasLtHandle handle, launch.handles->blas_lt());
  const auto pointer = [](CuAddress address) { return reinterpret_cast<void*>(address); };
  return StatusOfBlas(
      library_->cublasLtMatmul(handle, desc, one_.data(), pointer(left), left_, pointer(right), right_, zero_.data(),
                               pointer(result), result_, pointer(result), result_, &chosen.algorithm,
                               pointer(launch.workspace), chosen.workspace_bytes, launch.stream),
      "cublasLtMatmul");
}

int64_t LtProduct::workspace_bytes() const {
  return static_cast<int64_t>(std::max(aligned_.workspace_bytes, any_.workspace_bytes));
}

}  // namespace tensord::cuda
