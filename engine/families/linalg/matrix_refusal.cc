#include "engine/families/linalg/matrix_refusal.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tensord {
namespace {

std::string NameOf(absl::Span<const int64_t> shape, int64_t matrix) {
  if (shape.size() <= 2) return "the matrix";
  Shape index;
  for (int64_t size : shape.subspan(2)) {
    index.push_back(matrix % size);
    matrix /= size;
  }
  return absl::StrCat("the matrix at batch index ", ToString(index));
}

}  // namespace

absl::Status RefuseMatrix(Refusal refusal, absl::Span<const int64_t> shape, int64_t matrix, int64_t info) {
  const std::string name = NameOf(shape, matrix);
  switch (refusal) {
    case Refusal::kMatrixSingular:
      return Refuse(refusal, absl::StrCat(name, " is singular: pivot ", info,
                                          " of its LU factorization is zero (LAPACK's info is ", info, ")"));
    case Refusal::kMatrixNotPositiveDefinite:
      return Refuse(refusal, absl::StrCat(name, " is not positive definite: its leading minor of order ", info,
                                          " is not positive (LAPACK's info is ", info, ")"));
    case Refusal::kNoConvergence:
      return Refuse(refusal, absl::StrCat("the iteration for ", name, " did not converge (LAPACK's info is ", info,
                                          "); scale it, or use a wider dtype"));
    default:
      return Refuse(Refusal::kInternal, absl::StrCat(name, " made LAPACK refuse its argument ", -info));
  }
}

}  // namespace tensord
