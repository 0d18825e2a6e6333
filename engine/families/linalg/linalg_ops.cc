#include "engine/families/linalg/linalg_ops.h"

#include <iterator>

#include "engine/families/linalg/factorizations.h"
#include "engine/families/linalg/matrix_compositions.h"
#include "engine/families/linalg/solutions.h"
#include "engine/families/linalg/spectra.h"

namespace tensord {
namespace {

constexpr OpDef kOps[] = {kCholeskyDef,
                          kLuDef,
                          kQrDef,
                          kSvdDef,
                          kSvdValuesDef,
                          kEighDef,
                          kEighValuesDef,
                          kEigDef,
                          kEigValuesDef,
                          kSolveDef,
                          kTriangularSolveDef,
                          kInverseDef,
                          kDeterminantDef,
                          kSignLogDeterminantDef,
                          kPseudoInverseDef,
                          kLeastSquaresDef,
                          kMatrixRankDef,
                          kHouseholderQrDef,
                          kTriangularDeterminantDef,
                          kEquilibrateDef};
static_assert(std::size(kOps) == kNumLinalgOps);

constexpr bool IndicesAreDense() {
  for (size_t i = 0; i < std::size(kOps); ++i) {
    if (kOps[i].index != i) return false;
  }
  return true;
}
static_assert(IndicesAreDense());

}  // namespace

absl::Span<const OpDef> LinalgOps() { return kOps; }

const OpDef& Def(LinalgOp op) { return kOps[static_cast<size_t>(op)]; }

bool Is(const OpDef& def, LinalgOp op) { return &def == &Def(op); }

}  // namespace tensord
