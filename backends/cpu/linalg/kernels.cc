#include "backends/cpu/linalg/kernels.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "backends/cpu/linalg/equilibrate.h"
#include "backends/cpu/linalg/factorizations.h"
#include "backends/cpu/linalg/lanes/kernels.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/solutions.h"
#include "backends/cpu/linalg/spectra.h"
#include "backends/cpu/linalg/triangular_determinant.h"
#include "backends/cpu/machine/blas.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/linalg/factorizations.h"
#include "engine/families/linalg/solutions.h"
#include "engine/families/linalg/spectra.h"

namespace tensord::cpu {
namespace {

// Matrices without an element: the square results are identities and a parity is 1, where they are not empty too.
class EmptyMatricesKernel final : public Kernel {
 public:
  explicit EmptyMatricesKernel(const BoundInstruction& instruction)
      : results_(instruction.results.begin(), instruction.results.end()),
        rank_(static_cast<int>(instruction.operands[0].shape.size())) {}

  void Run(const KernelArgs& args) const override {
    for (size_t i = 0; i < results_.size(); ++i) {
      const ConcreteType& type = results_[i];
      if (type.num_elements() == 0) continue;
      std::fill_n(static_cast<char*>(args.results[i]), type.num_bytes(), 0);
      VisitDType(type.dtype, [&]<typename T>(TypeTag<T>) {
        if constexpr (RealElement<T> || ComplexElement<T>) SetOnes(type, static_cast<T*>(args.results[i]));
      });
    }
  }

 private:
  template <typename T>
  void SetOnes(const ConcreteType& type, T* values) const {
    if (type.rank() < rank_) {
      std::fill_n(values, type.num_elements(), T(1));
      return;
    }
    const int64_t n = type.shape[0], step = n * type.shape[1];
    for (int64_t at = 0; at < type.num_elements(); at += step) SetDiagonal(n, type.shape[1], T(1), values + at);
  }

  const std::vector<ConcreteType> results_;
  const int rank_;
};

absl::Status CheckSizes(const BoundInstruction& instruction) {
  constexpr int64_t kMost = std::numeric_limits<lapack_int>::max() / 64;  // times a block size it still fits
  for (const ConcreteType& operand : instruction.operands) {
    if (operand.shape[0] <= kMost && operand.shape[1] <= kMost) continue;
    return Refuse(Refusal::kUnsupportedOnDevice, absl::StrCat("LAPACK counts in 32 bits, and an operand of ",
                                                              instruction.op->name, " is ", ToString(operand)));
  }
  return absl::OkStatus();
}

template <auto* make>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const BoundInstruction& instruction, const FamilyContext& context) {
  UseSerialBlas();
  for (const ConcreteType& operand : instruction.operands) {
    if (operand.num_elements() == 0) return std::make_unique<EmptyMatricesKernel>(instruction);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> small, MakeSmallMatrixKernel(instruction));
  if (small != nullptr) return small;
  RETURN_IF_ERROR(CheckSizes(instruction));
  if constexpr (std::is_same_v<decltype(make), MakeFamilyKernel*>) {
    return make(instruction, context);
  } else {
    return make(instruction);
  }
}

constexpr FamilyKernel kLinalgKernels[] = {{kCholeskyDef.name, &Make<&MakeLapackCholesky>},
                                           {kLuDef.name, &Make<&MakeLapackLu>},
                                           {kQrDef.name, &Make<&MakeLapackQr>},
                                           {kHouseholderQrDef.name, &Make<&MakeLapackHouseholderQr>},
                                           {kSvdDef.name, &Make<&MakeLapackSvd>},
                                           {kSvdValuesDef.name, &Make<&MakeLapackSvd>},
                                           {kEighDef.name, &Make<&MakeLapackEigh>},
                                           {kEighValuesDef.name, &Make<&MakeLapackEigh>},
                                           {kEigDef.name, &Make<&MakeLapackEig>},
                                           {kEigValuesDef.name, &Make<&MakeLapackEig>},
                                           {kSolveDef.name, &Make<&MakeLapackSolve>},
                                           {kTriangularSolveDef.name, &Make<&MakeLapackTriangularSolve>},
                                           {kTriangularDeterminantDef.name, &MakeTriangularDeterminant},
                                           {kEquilibrateDef.name, &MakeEquilibrate}};

}  // namespace

absl::Span<const FamilyKernel> LinalgKernels() { return kLinalgKernels; }

}  // namespace tensord::cpu
