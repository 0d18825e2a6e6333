#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_LINALG_PROPERTIES_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_LINALG_PROPERTIES_H_

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/families/linalg/linalg_ops.h"
#include "engine/tensor/literal.h"

namespace tensord {

// The properties of results of linear algebra, whoever computed them: factors multiply to the matrix, vectors are
// orthonormal, values are in order, and unique values are the reference's. Errors may be some multiple of the dtype's
// epsilon, of the size and of the norm.

struct LinalgCall {
  LinalgOp op;
  Attributes attrs;
  std::vector<Literal> operands;

  LinalgCall(LinalgOp called, std::vector<Literal> with);
  // Returns the types of the op's type rule.
  std::vector<ConcreteType> ResultTypes() const;
  std::string Name() const;
};

absl::StatusOr<std::vector<Literal>> RunReference(const LinalgCall& call);

// Elements of the order of 1.
Literal RandomMatrices(DType dtype, const Shape& shape, std::mt19937* random);
// A·A^H + 1, of which the upper triangle is overwritten with NaN.
Literal RandomPositiveDefinite(DType dtype, const Shape& shape, std::mt19937* random);
// A matrix of rank `rank`, up to rounding.
Literal RandomOfRank(DType dtype, const Shape& shape, int64_t rank, std::mt19937* random);
// Far from singular in both of its triangles.
Literal RandomTriangles(DType dtype, const Shape& shape, std::mt19937* random);
Literal Filled(DType dtype, const Shape& shape, double value);

// Fails the test where the results do not have the properties of the op.
void ExpectProperties(const LinalgCall& call, const std::vector<Literal>& results);

// Calls of all ops that are no compositions: tall, wide, square, batched, of size 1, of deficient rank, with every
// attribute.
void ForEachRandomCall(const std::function<void(const LinalgCall&)>& use);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_LINALG_PROPERTIES_H_
