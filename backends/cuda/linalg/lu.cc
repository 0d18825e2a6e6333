#include <algorithm>

#include "absl/strings/str_cat.h"
#include "backends/cuda/linalg/division_text.h"
#include "backends/cuda/linalg/factorizations.h"
#include "backends/cuda/linalg/lu_factors.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kLuParameters[] =
    "const T* a, T* factors, i64* pivots, int* infos, const int* is_broken, int* is_divided, i64* order, "
    "T* permutation, T* lower, T* upper, T* parity";

constexpr char kLuSmall[] =
    R"(    FactorByDivision(kM, kN, factors + i * kM * kN, pivots + i * kK, infos + i, 0, kK);)";

// The row of A that each row of P A is.
constexpr char kLuOrder[] = R"(    i64* rows = order + i * kM;
    for (i64 r = 0; r < kM; ++r) rows[r] = r;
    R sign = 1;
    for (i64 k = 0; k < kK; ++k) {
      const i64 pivot = pivots[i * kK + k] - 1;
      if (pivot == k) continue;
      const i64 row = rows[k];
      rows[k] = rows[pivot];
      rows[pivot] = row;
      sign = -sign;
    }
    parity[i] = Number(sign, 0);)";

constexpr char kLuPermutation[] = R"(    const i64 b = i / (kM * kM), row = i % kM, column = i / kM % kM;
    permutation[i] = Number(order[b * kM + row] == column ? 1 : 0, 0);)";

constexpr char kLuLower[] = R"(    const i64 b = i / (kM * kK), row = i % kM, column = i / kM % kK;
    lower[i] = row < column    ? Number(0, 0)
               : row == column ? Number(1, 0)
               : is_broken[b]  ? NotANumber()
                               : factors[b * kM * kN + row + column * kM];)";

constexpr char kLuUpper[] = R"(    const i64 b = i / (kK * kN), row = i % kK, column = i / kK % kN;
    upper[i] = row > column   ? Number(0, 0)
               : is_broken[b] ? NotANumber()
                              : factors[b * kM * kN + row + column * kM];)";

// P A = L U. A singular matrix is no error.
class LuResultKernel final : public LuKernel {
 public:
  explicit LuResultKernel(const BoundInstruction& instruction) : LuKernel(instruction, Refusal::kInternal) {
    order_ = Scratch(batch_ * m_ * 8);
  }

  absl::Status Prepare(const KernelContext& context) {
    RETURN_IF_ERROR(PrepareFactors(context, is_small_));
    const int64_t k = std::min(m_, n_);
    MatrixText text(dtype_, MostBlocks(context));
    AddDivision(context, kLuParameters, "", is_small_ ? kLuSmall : nullptr, &text);
    text.Each("order_rows", kLuParameters, batch_, kLuOrder);
    text.Each("write_permutation", kLuParameters, batch_ * m_ * m_, kLuPermutation);
    text.Each("write_lower", kLuParameters, batch_ * m_ * k, kLuLower);
    text.Each("write_upper", kLuParameters, batch_ * k * n_, kLuUpper);
    ASSIGN_OR_RETURN(take_apart_, context.compiler->Compile(text.Take()));
    return absl::OkStatus();
  }

  absl::Status Enqueue(const Launch& launch) const override {
    const int64_t calls = is_small_ ? 0 : batch_;
    RETURN_IF_ERROR(EnqueueFactors(launch, calls + take_apart_->num_parts()));
    PaceBehind pace(launch.pace, calls);
    return take_apart_->Enqueue(launch.stream,
                                {launch.operands[0], factors_.at(launch), pivots_.at(launch), infos_.at(launch),
                                 guarded_.is_broken.at(launch), is_divided_.at(launch), order_.at(launch),
                                 launch.results[0], launch.results[1], launch.results[2], launch.results[3]},
                                &pace);
  }
  std::string Describe() const override {
    return is_small_ ? "a block a matrix" : absl::StrCat("cuSOLVER getrf, ", batch_, " calls");
  }

 private:
  const bool is_small_ = std::max(m_, n_) <= kMostSmallSize;
  ScratchPart order_;
  std::shared_ptr<const LoadedKernel> take_apart_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeLu(const BoundInstruction& instruction, const KernelContext& context) {
  auto kernel = std::make_unique<LuResultKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
