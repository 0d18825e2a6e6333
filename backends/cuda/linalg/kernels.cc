#include "backends/cuda/linalg/kernels.h"

#include <utility>
#include <vector>

#include "backends/cuda/linalg/determinants.h"
#include "backends/cuda/linalg/factorizations.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/solutions.h"
#include "backends/cuda/linalg/spectra.h"
#include "engine/base/status_macros.h"
#include "engine/families/linalg/factorizations.h"
#include "engine/families/linalg/solutions.h"
#include "engine/families/linalg/spectra.h"

namespace tensord::cuda {
namespace {

// Results of matrices without an element: square ones are identities and a parity is 1, where they are not empty too.
class EmptyMatricesKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const BoundInstruction& instruction,
                                                      const KernelContext& context) {
    auto kernel = std::make_unique<EmptyMatricesKernel>();
    const auto rank = static_cast<int>(instruction.operands[0].shape.size());
    for (size_t i = 0; i < instruction.results.size(); ++i) {
      const ConcreteType& type = instruction.results[i];
      if (type.num_elements() == 0) continue;
      const bool is_matrix = type.rank() == rank;
      MatrixText text(type.dtype, context.compiler->printing().num_processors * MatrixText::kBlocksPerProcessor);
      text.Constant("kRows", is_matrix ? type.shape[0] : 1);
      text.Constant("kColumns", is_matrix ? type.shape[1] : 1);
      text.Each("write_identity", "T* x", type.num_elements(),
                "    x[i] = Number(i % kRows == i / kRows % kColumns ? 1 : 0, 0);");
      Written written{.result = i};
      ASSIGN_OR_RETURN(written.kernel, context.compiler->Compile(text.Take()));
      kernel->written_.push_back(std::move(written));
    }
    return kernel;
  }

  absl::Status Enqueue(const Launch& launch) const override {
    for (const Written& written : written_) {
      RETURN_IF_ERROR(written.kernel->Enqueue(launch.stream, {launch.results[written.result]}));
    }
    return absl::OkStatus();
  }
  std::string Describe() const override { return "identities"; }

 private:
  struct Written {
    size_t result;
    std::shared_ptr<const LoadedKernel> kernel;
  };
  std::vector<Written> written_;
};

template <auto* make>
absl::StatusOr<std::unique_ptr<Kernel>> Make(const BoundInstruction& instruction, const KernelContext& context) {
  for (const ConcreteType& operand : instruction.operands) {
    if (operand.num_elements() == 0) return EmptyMatricesKernel::Make(instruction, context);
  }
  return make(instruction, context);
}

constexpr DTypeSet kFields = {DType::kF32, DType::kF64, DType::kC64, DType::kC128};
constexpr FamilyKernel kLinalgKernels[] = {
    {kCholeskyDef.name, kFields, &Make<&MakeCholesky>},
    {kLuDef.name, kFields, &Make<&MakeLu>},
    {kQrDef.name, kFields, &Make<&MakeQr>},
    {kHouseholderQrDef.name, kFields, &Make<&MakeHouseholderQr>},
    {kSvdDef.name, kFields, &Make<&MakeSvd>},
    {kSvdValuesDef.name, kFields, &Make<&MakeSvd>},
    {kEighDef.name, kFields, &Make<&MakeEigh>},
    {kEighValuesDef.name, kFields, &Make<&MakeEigh>},
    {kEigDef.name, kFields, &Make<&MakeEig>},
    {kEigValuesDef.name, kFields, &Make<&MakeEig>},
    {kSolveDef.name, kFields, &Make<&MakeSolve>},
    {kTriangularSolveDef.name, kFields, &Make<&MakeTriangularSolve>},
    {kTriangularDeterminantDef.name, kFields, &MakeTriangularDeterminant},
    {kEquilibrateDef.name, kFields, &MakeEquilibrate},
};

}  // namespace

absl::Span<const FamilyKernel> LinalgKernels() { return kLinalgKernels; }

}  // namespace tensord::cuda
