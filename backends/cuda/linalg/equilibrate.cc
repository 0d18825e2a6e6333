#include <cstdint>
#include <memory>

#include "backends/cuda/kernels/text_kernel.h"
#include "backends/cuda/linalg/determinants.h"
#include "backends/cuda/linalg/matrix_kernel.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

constexpr char kEquilibrateFunctions[] = R"(
constexpr int kEquilibrateOrdinary = kIsSingle ? 48 : 384, kNothing = -2147483647 - 1;
TENSORD_FN bool IsOrdinary(R x) {
  const R size = fabs(x);
  return size == 0 || (size >= ldexp((R)1, -kEquilibrateOrdinary) && size <= ldexp((R)1, kEquilibrateOrdinary - 1));
}
TENSORD_FN int ExponentOf(T x) {
  const R size = Most(x);
  return size == 0 ? kNothing : ilogb(size) + 1;
}
TENSORD_FN T Divided(T x, int exponent) { return Number(ldexp(RealOf(x), -exponent), ldexp(ImagOf(x), -exponent)); }
TENSORD_FN bool Keeps(R part, R divided) {
  return part == 0 || (isfinite(divided) && (f64)fabs(divided) >= (kIsSingle ? 0x1p-126 : 0x1p-1022));
}
)";

// A block a matrix. `why_not` collects the reasons by which it stays as it is.
constexpr char kEquilibrateDivide[] = R"(    __shared__ int is_unordinary, why_not, is_far;
    const T* from = a + i * kN * kN;
    T* to = divided + i * kN * kN;
    int *rows = exponents + i * 2 * kN, *columns = rows + kN;
    __syncthreads();
    if (threadIdx.x == 0) is_unordinary = why_not = is_far = 0;
    __syncthreads();
    for (i64 e = threadIdx.x; e < kN * kN; e += kThreads) {
      if (!IsOrdinary(RealOf(from[e])) || !IsOrdinary(ImagOf(from[e]))) atomicOr(&is_unordinary, 1);
      if (!IsFinite(from[e])) atomicOr(&why_not, 1);
    }
    __syncthreads();
    if (is_unordinary && !why_not) {
      for (i64 k = threadIdx.x; k < kN; k += kThreads) {
        int row = kNothing, column = kNothing;
        for (i64 l = 0; l < kN; ++l) {
          const int in_row = ExponentOf(from[k + l * kN]), in_column = ExponentOf(from[l + k * kN]);
          row = in_row > row ? in_row : row;
          column = in_column > column ? in_column : column;
        }
        rows[k] = row == kNothing ? 0 : row;
        column = column == kNothing ? 0 : column;
        if (rows[k] > kEquilibrateOrdinary || rows[k] < -kEquilibrateOrdinary || column > kEquilibrateOrdinary || column < -kEquilibrateOrdinary) {
          atomicOr(&is_far, 1);
        }
      }
    }
    __syncthreads();
    if (is_far) {
      for (i64 k = threadIdx.x; k < kN; k += kThreads) {
        int column = kNothing;
        for (i64 l = 0; l < kN; ++l) {
          const int exponent = ExponentOf(from[l + k * kN]);
          if (exponent != kNothing && exponent - rows[l] > column) column = exponent - rows[l];
        }
        columns[k] = column == kNothing ? 0 : column;
      }
    }
    __syncthreads();
    if (is_far && kIsComplex) {
      for (i64 e = threadIdx.x; e < kN * kN; e += kThreads) {
        const T x = from[e], scaled = Divided(x, rows[e % kN] + columns[e / kN]);
        if (Keeps(RealOf(x), RealOf(scaled)) != Keeps(ImagOf(x), ImagOf(scaled))) atomicOr(&why_not, 1);
      }
    }
    __syncthreads();
    const bool divides = is_far && !why_not;
    for (i64 e = threadIdx.x; e < kN * kN; e += kThreads) {
      to[e] = divides ? Divided(from[e], rows[e % kN] + columns[e / kN]) : from[e];
    }
    if (threadIdx.x == 0) {
      i64 sum = 0;
      for (i64 k = 0; divides && k < kN; ++k) sum += rows[k] + columns[k];
      exponent[i] = (R)sum;
    })";

class EquilibrateKernel final : public MatrixKernel {
 public:
  explicit EquilibrateKernel(const BoundInstruction& instruction) : MatrixKernel(instruction, Refusal::kInternal) {
    exponents_ = Scratch(batch_ * 2 * n_ * 4);
  }

  absl::Status Prepare(const KernelContext& context) {
    MatrixText text(dtype_, MostBlocks(context));
    text.Constant("kN", n_);
    text.Add(kEquilibrateFunctions);
    text.EachByBlock("equilibrate", "const T* a, T* divided, R* exponent, int* exponents", batch_, kEquilibrateDivide);
    ASSIGN_OR_RETURN(divide_, context.compiler->Compile(text.Take()));
    return absl::OkStatus();
  }

  absl::Status Enqueue(const Launch& launch) const override {
    return divide_->Enqueue(launch.stream,
                            {launch.operands[0], launch.results[0], launch.results[1], exponents_.at(launch)});
  }
  std::string Describe() const override { return "a block a matrix"; }
  bool captures() const override { return true; }

 private:
  ScratchPart exponents_;  // of the rows of each matrix, and then of its columns
  std::shared_ptr<const LoadedKernel> divide_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeEquilibrate(const BoundInstruction& instruction,
                                                        const KernelContext& context) {
  const ConcreteType& operand = instruction.operands[0];
  if (operand.num_elements() == 0) {
    MatrixText text(operand.dtype, 1);
    text.Each("write_zeros", "const T*, T*, R* exponent", instruction.results[1].num_elements(),
              "    exponent[i] = 0;");
    return TextKernel::Make(text.Take(), "zeros", context);
  }
  auto kernel = std::make_unique<EquilibrateKernel>(instruction);
  RETURN_IF_ERROR(kernel->Prepare(context));
  return kernel;
}

}  // namespace tensord::cuda
