#include "tests/testlib/numbers/linalg_properties.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/families/linalg/host_matrix.h"
#include "engine/families/linalg/matrix_types.h"
#include "engine/families/linalg/singular_cutoff.h"
#include "engine/families/linalg/solutions.h"
#include "engine/reference/evaluator.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

double NormOf(const HostMatrix& m) {
  double norm = 0;
  for (int64_t j = 0; j < m.columns(); ++j) {
    for (int64_t i = 0; i < m.rows(); ++i) norm = std::hypot(norm, std::abs(m(i, j)));
  }
  return norm;
}

HostMatrix Minus(HostMatrix a, const HostMatrix& b) {
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) a(i, j) -= b(i, j);
  }
  return a;
}

// One vector of a batch as the diagonal of a matrix.
HostMatrix ReadDiagonal(const Literal& vectors, int64_t b) {
  const int64_t n = vectors.shape()[0];
  Shape as_matrices = vectors.shape();
  as_matrices.insert(as_matrices.begin() + 1, 1);
  const HostMatrix column = ReadMatrix(vectors.WithShape(as_matrices), b);
  HostMatrix diagonal(n, n);
  for (int64_t i = 0; i < n; ++i) diagonal(i, i) = column(i, 0);
  return diagonal;
}

HostMatrix Transposed(const HostMatrix& a) {
  HostMatrix t(a.columns(), a.rows());
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) t(j, i) = a(i, j);
  }
  return t;
}

// The Hermitian matrix of a lower triangle.
HostMatrix Hermitian(HostMatrix a) {
  for (int64_t j = 0; j < a.columns(); ++j) {
    a(j, j) = a(j, j).real();
    for (int64_t i = 0; i < j; ++i) a(i, j) = std::conj(a(j, i));
  }
  return a;
}

template <typename Keeps>
HostMatrix Masked(HostMatrix a, const Keeps& keeps) {
  for (int64_t j = 0; j < a.columns(); ++j) {
    for (int64_t i = 0; i < a.rows(); ++i) {
      if (!keeps(i, j)) a(i, j) = 0;
    }
  }
  return a;
}

class Judge {
 public:
  Judge(const LinalgCall& call, const std::vector<Literal>& results, int64_t b)
      : call_(call), results_(results), b_(b), a_(ReadMatrix(call.operands[0], b)) {
    size_ = static_cast<double>(std::max(a_.rows(), a_.columns()));
  }

  void Check() {
    switch (call_.op) {
      case LinalgOp::kCholesky:
        return CheckCholesky();
      case LinalgOp::kLu:
        return CheckLu();
      case LinalgOp::kQr:
        return CheckQr();
      case LinalgOp::kHouseholderQr:
        return CheckHouseholderQr();
      case LinalgOp::kSvd:
        return CheckSvd();
      case LinalgOp::kEigh:
        return CheckEigh();
      case LinalgOp::kEig:
        return CheckEig();
      case LinalgOp::kSolve:
        return CheckSolve();
      case LinalgOp::kTriangularSolve:
        return CheckTriangularSolve();
      case LinalgOp::kTriangularDeterminant:
        return CheckTriangularDeterminant();
      case LinalgOp::kEquilibrate:
        return CheckEquilibrate();
      case LinalgOp::kSvdValues:
        return CheckValues(LinalgOp::kSvd, 1);
      case LinalgOp::kEighValues:
        return CheckValues(LinalgOp::kEigh, 0);
      case LinalgOp::kEigValues:
        return CheckEigValues();
      default:
        ADD_FAILURE() << "no properties of " << Def(call_.op).name;
    }
  }

 private:
  HostMatrix Result(size_t i) const { return ReadMatrix(results_[i], b_); }
  // Returns a result with a number for each matrix.
  Complex128 Scalar(size_t i) const {
    Shape as_matrices = results_[i].shape();
    as_matrices.insert(as_matrices.begin(), {1, 1});
    return ReadMatrix(results_[i].WithShape(as_matrices), b_)(0, 0);
  }
  double Epsilon() const { return EpsilonOf(call_.operands[0].dtype()); }

  void ExpectNear(const HostMatrix& x, const HostMatrix& y, double scale, absl::string_view what) const {
    const double error = NormOf(Minus(x, y)), limit = 40 * size_ * Epsilon() * scale;
    EXPECT_LE(error, limit) << what << " of " << call_.Name() << ", matrix " << b_;
  }
  void ExpectOrthonormalColumns(const HostMatrix& q, absl::string_view what) const {
    ExpectNear(Product(q.Adjoint(), q), HostMatrix::Identity(q.columns(), q.columns()), 1, what);
  }
  template <typename Keeps>
  void ExpectZeroElsewhere(const HostMatrix& m, const Keeps& keeps, absl::string_view what) const {
    EXPECT_EQ(NormOf(Minus(m, Masked(m, keeps))), 0) << what << " of " << call_.Name();
  }

  static bool OnOrBelow(int64_t i, int64_t j) { return i >= j; }
  static bool OnOrAbove(int64_t i, int64_t j) { return i <= j; }

  void CheckCholesky() const {
    const HostMatrix a = Hermitian(a_), l = Result(0);
    ExpectZeroElsewhere(l, &OnOrBelow, "the factor");
    ExpectNear(Product(l, l.Adjoint()), a, NormOf(a), "L L^H");
  }

  void CheckLu() const {
    const HostMatrix p = Result(0), l = Result(1), u = Result(2);
    ExpectZeroElsewhere(l, &OnOrBelow, "L");
    ExpectZeroElsewhere(u, &OnOrAbove, "U");
    for (int64_t i = 0; i < l.columns(); ++i) EXPECT_EQ(l(i, i), 1.0);
    for (int64_t j = 0; j < l.columns(); ++j) {
      for (int64_t i = 0; i < l.rows(); ++i) EXPECT_LE(std::abs(l(i, j)), 1.5) << "no partial pivoting";
    }
    EXPECT_EQ(NormOf(Minus(Product(p, Transposed(p)), HostMatrix::Identity(p.rows(), p.rows()))), 0);
    ExpectNear(Product(p, a_), Product(l, u), NormOf(a_), "P A - L U");
    // The parity is the sign of the permutation: of its inversions.
    int64_t inversions = 0;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < p.rows(); ++i) {
      for (int64_t j = 0; j < p.columns(); ++j) {
        if (p(i, j) != 0.0) order.push_back(j);
      }
    }
    for (size_t i = 0; i < order.size(); ++i) {
      for (size_t j = i + 1; j < order.size(); ++j) inversions += order[i] > order[j] ? 1 : 0;
    }
    EXPECT_EQ(Scalar(3), inversions % 2 == 0 ? 1.0 : -1.0) << call_.Name();
  }

  // Checks matrices without zeros: each entry is that of A but for a power of two, and none is larger than 1.
  void CheckEquilibrate() const {
    const HostMatrix b = ReadMatrix(results_[0], b_);
    int64_t exponent = 0;
    const auto exponent_of = [](const Complex128& z) {
      return std::ilogb(std::max(std::abs(z.real()), std::abs(z.imag())));
    };
    for (int64_t j = 0; j < a_.columns(); ++j) {
      for (int64_t i = 0; i < a_.rows(); ++i) {
        const int power = exponent_of(a_(i, j)) - exponent_of(b(i, j));
        EXPECT_EQ(a_(i, j).real(), std::ldexp(b(i, j).real(), power)) << call_.Name();
        EXPECT_EQ(a_(i, j).imag(), std::ldexp(b(i, j).imag(), power)) << call_.Name();
        exponent += i == j ? power : 0;
      }
    }
    EXPECT_EQ(Scalar(1).real(), static_cast<double>(exponent)) << call_.Name();
  }

  // Checks matrices of ordinary numbers.
  void CheckTriangularDeterminant() const {
    Complex128 product = 1;
    for (int64_t i = 0; i < a_.rows(); ++i) product *= a_(i, i);
    const Complex128 determinant = Scalar(0), sign = Scalar(1);
    const double log = Scalar(2).real(), limit = 8 * size_ * Epsilon();
    EXPECT_LE(std::abs(determinant - product), limit * std::abs(product)) << call_.Name();
    if (product == 0.0) {
      EXPECT_EQ(sign, 0.0) << call_.Name();
      EXPECT_EQ(log, -std::numeric_limits<double>::infinity()) << call_.Name();
      return;
    }
    EXPECT_LE(std::abs(sign - product / std::abs(product)), limit) << call_.Name();
    EXPECT_LE(std::abs(log - std::log(std::abs(product))), limit * (1 + std::abs(log))) << call_.Name();
  }

  void CheckQr() const {
    const HostMatrix q = Result(0), r = Result(1);
    ExpectZeroElsewhere(r, &OnOrAbove, "R");
    ExpectOrthonormalColumns(q, "Q");
    ExpectNear(Product(q, r), a_, NormOf(a_), "Q R");
  }

  // Q is made of the reflectors; a column of zeros below the diagonal, of which the reference makes none, has tau 0.
  void CheckHouseholderQr() const {
    const HostMatrix h = Result(0), tau = ReadDiagonal(results_[1], b_);
    HostMatrix q = HostMatrix::Identity(h.rows(), h.rows());
    for (int64_t k = tau.rows() - 1; k >= 0; --k) {
      HostMatrix v(h.rows(), 1);
      v(k, 0) = 1;
      for (int64_t i = k + 1; i < h.rows(); ++i) v(i, 0) = h(i, k);
      HostMatrix scaled = v;
      for (int64_t i = k; i < h.rows(); ++i) scaled(i, 0) *= tau(k, k);
      q = Minus(q, Product(scaled, Product(v.Adjoint(), q)));
    }
    ExpectOrthonormalColumns(q, "the product of the reflectors");
    ExpectNear(Product(q, Masked(h, &OnOrAbove)), a_, NormOf(a_), "Q R");
    for (int64_t i = 0; i < tau.rows(); ++i) EXPECT_EQ(h(i, i).imag(), 0) << "LAPACK's R has a real diagonal";
  }

  void CheckSvd() const {
    const HostMatrix u = Result(0), vh = Result(2), s = ReadDiagonal(results_[1], b_);
    ExpectOrthonormalColumns(u, "U");
    ExpectOrthonormalColumns(vh.Adjoint(), "V");
    ExpectDescending(s);
    const int64_t k = s.rows();
    ExpectNear(Product(Product(u.Columns(k), s), vh.Rows(k)), a_, NormOf(a_), "U S Vh");
  }

  void ExpectDescending(const HostMatrix& s) const {
    for (int64_t i = 0; i < s.rows(); ++i) {
      EXPECT_GE(s(i, i).real(), 0);
      if (i > 0) {
        EXPECT_GE(s(i - 1, i - 1).real(), s(i, i).real());
      }
    }
  }

  void CheckEigh() const {
    const HostMatrix a = Hermitian(a_), w = ReadDiagonal(results_[0], b_), v = Result(1);
    for (int64_t i = 1; i < w.rows(); ++i) EXPECT_LE(w(i - 1, i - 1).real(), w(i, i).real());
    ExpectOrthonormalColumns(v, "vectors");
    ExpectNear(Product(a, v), Product(v, w), NormOf(a), "A V - V W");
  }

  void CheckEig() const {
    const HostMatrix w = ReadDiagonal(results_[0], b_), v = Result(1);
    ExpectNear(Product(a_, v), Product(v, w), NormOf(a_), "A V - V W");
    for (int64_t j = 0; j < v.columns(); ++j) {
      double length = 0;
      for (int64_t i = 0; i < v.rows(); ++i) length = std::hypot(length, std::abs(v(i, j)));
      EXPECT_NEAR(length, 1, 20 * size_ * Epsilon()) << call_.Name();
    }
    ExpectTrace(w);
  }

  // Eigenvalues of a general matrix may be far from the exact ones; their sum is not.
  void ExpectTrace(const HostMatrix& w) const {
    Complex128 difference = 0;
    for (int64_t i = 0; i < w.rows(); ++i) difference += a_(i, i) - w(i, i);
    EXPECT_LE(std::abs(difference), 40 * size_ * Epsilon() * NormOf(a_)) << call_.Name();
  }

  void CheckEigValues() const { ExpectTrace(ReadDiagonal(results_[0], b_)); }

  // Values alone are the reference's with vectors, up to rounding.
  void CheckValues(LinalgOp with_vectors, size_t values) const {
    const LinalgCall decompose(with_vectors, {call_.operands[0]});
    const absl::StatusOr<std::vector<Literal>> reference = RunReference(decompose);
    ASSERT_TRUE(reference.ok()) << reference.status();
    const HostMatrix w = ReadDiagonal(results_[0], b_);
    const HostMatrix a = with_vectors == LinalgOp::kEigh ? Hermitian(a_) : a_;
    ExpectNear(w, ReadDiagonal((*reference)[values], b_), NormOf(a), "values");
  }

  void CheckSolve() const {
    const HostMatrix b = ReadMatrix(call_.operands[1], b_), x = Result(0);
    ExpectNear(Product(a_, x), b, NormOf(a_) * NormOf(x), "A X - B");
  }

  void CheckTriangularSolve() const {
    const bool lower = call_.attrs.Flag("lower"), unit = call_.attrs.Flag("unit_diagonal");
    HostMatrix t = Masked(a_, lower ? &OnOrBelow : &OnOrAbove);
    for (int64_t i = 0; i < t.rows() && unit; ++i) t(i, i) = 1;
    switch (static_cast<TransposeA>(call_.attrs.Int("transpose_a"))) {
      case TransposeA::kNoTranspose:
        break;
      case TransposeA::kTranspose:
        t = Transposed(t);
        break;
      case TransposeA::kAdjoint:
        t = t.Adjoint();
    }
    const HostMatrix b = ReadMatrix(call_.operands[1], b_), x = Result(0);
    const HostMatrix product = call_.attrs.Flag("left_side") ? Product(t, x) : Product(x, t);
    ExpectNear(product, b, NormOf(t) * NormOf(x), "T X - B");
  }

  const LinalgCall& call_;
  const std::vector<Literal>& results_;
  const int64_t b_;
  const HostMatrix a_;
  double size_;
};

Literal Written(DType dtype, const Shape& shape, const std::function<HostMatrix()>& matrix) {
  Literal literal = *Literal::Create({dtype, shape});
  for (int64_t b = 0; b < BatchSize(shape); ++b) WriteMatrix(matrix(), b, &literal);
  return literal;
}

HostMatrix RandomMatrix(int64_t m, int64_t n, bool is_complex, std::mt19937* random) {
  std::normal_distribution<double> normal;
  HostMatrix a(m, n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      const double real = normal(*random);
      a(i, j) = Complex128(real, is_complex ? normal(*random) : 0);
    }
  }
  return a;
}

Shape WithMatrices(int64_t m, int64_t n, const Shape& batch) {
  Shape shape = {m, n};
  shape.insert(shape.end(), batch.begin(), batch.end());
  return shape;
}

void UseCallsOnMatrix(DType dtype, int64_t m, int64_t n, const Shape& batch, std::mt19937* random,
                      const std::function<void(const LinalgCall&)>& use) {
  const Shape shape = WithMatrices(m, n, batch);
  for (const Literal& a : {RandomMatrices(dtype, shape, random), RandomOfRank(dtype, shape, 1, random),
                           Filled(dtype, shape, 0), Filled(dtype, shape, 1)}) {
    use(LinalgCall(LinalgOp::kLu, {a}));
    use(LinalgCall(LinalgOp::kSvdValues, {a}));
    use(LinalgCall(LinalgOp::kHouseholderQr, {a}));
    for (bool full : {false, true}) {
      for (LinalgOp op : {LinalgOp::kQr, LinalgOp::kSvd}) {
        LinalgCall call(op, {a});
        call.attrs.Set("full", full);
        use(call);
      }
    }
    if (m != n) continue;
    for (LinalgOp op : {LinalgOp::kEigh, LinalgOp::kEighValues, LinalgOp::kEig, LinalgOp::kEigValues}) {
      use(LinalgCall(op, {a}));
    }
  }
}

void UseCallsOnSquare(DType dtype, int64_t n, int64_t sides, const Shape& batch, std::mt19937* random,
                      const std::function<void(const LinalgCall&)>& use) {
  const Shape shape = WithMatrices(n, n, batch);
  const Literal positive = RandomPositiveDefinite(dtype, shape, random);
  for (LinalgOp op : {LinalgOp::kCholesky, LinalgOp::kEigh, LinalgOp::kEighValues}) use(LinalgCall(op, {positive}));
  use(LinalgCall(LinalgOp::kTriangularDeterminant, {RandomTriangles(dtype, shape, random)}));
  use(LinalgCall(LinalgOp::kTriangularDeterminant, {Filled(dtype, shape, 0)}));
  use(LinalgCall(LinalgOp::kEquilibrate, {RandomMatrices(dtype, shape, random)}));
  use(LinalgCall(LinalgOp::kEquilibrate, {Filled(dtype, shape, SizeOf(RealPartOf(dtype)) == 4 ? 1e20 : 1e200)}));
  use(LinalgCall(LinalgOp::kSolve,
                 {RandomMatrices(dtype, shape, random), RandomMatrices(dtype, WithMatrices(n, sides, batch), random)}));
  for (int flags = 0; flags < 8; ++flags) {
    for (int64_t transpose = 0; transpose < 3; ++transpose) {
      const bool left = (flags & 1) != 0;
      LinalgCall call(LinalgOp::kTriangularSolve,
                      {RandomTriangles(dtype, shape, random),
                       RandomMatrices(dtype, WithMatrices(left ? n : sides, left ? sides : n, batch), random)});
      call.attrs.Set("left_side", left)
          .Set("lower", (flags & 2) != 0)
          .Set("unit_diagonal", (flags & 4) != 0)
          .Set("transpose_a", transpose);
      use(call);
    }
  }
}

}  // namespace

LinalgCall::LinalgCall(LinalgOp called, std::vector<Literal> with)
    : op(called), attrs(Def(called).attrs), operands(std::move(with)) {}

std::vector<ConcreteType> LinalgCall::ResultTypes() const {
  std::vector<TensorType> types;
  for (const Literal& operand : operands) types.push_back(ToTensorType(operand.type()));
  std::vector<const TensorType*> pointers;
  for (const TensorType& type : types) pointers.push_back(&type);
  std::vector<ShapeGuard> guards;
  RunTimeBounds bounds;
  InferContext context(attrs, pointers, 0, "n", &guards, &bounds);
  const auto inferred = Def(op).infer.get()(context);
  EXPECT_TRUE(inferred.ok()) << inferred.status();
  std::vector<ConcreteType> results;
  for (const TensorType& type : *inferred) results.push_back(ToConcreteType(type));
  return results;
}

std::string LinalgCall::Name() const {
  std::string name(Def(op).name);
  for (const Literal& operand : operands) absl::StrAppend(&name, " ", ToString(operand.type()));
  return name;
}

absl::StatusOr<std::vector<Literal>> RunReference(const LinalgCall& call) {
  std::vector<const Literal*> operands;
  for (const Literal& operand : call.operands) operands.push_back(&operand);
  return EvaluateNode(Def(call.op), call.attrs, operands, call.ResultTypes());
}

Literal RandomMatrices(DType dtype, const Shape& shape, std::mt19937* random) {
  return Written(dtype, shape, [&] { return RandomMatrix(shape[0], shape[1], kComplexes.Contains(dtype), random); });
}

Literal RandomPositiveDefinite(DType dtype, const Shape& shape, std::mt19937* random) {
  return Written(dtype, shape, [&] {
    const int64_t n = shape[0];
    const HostMatrix a = RandomMatrix(n, n, kComplexes.Contains(dtype), random);
    HostMatrix positive = Product(a, a.Adjoint());
    for (int64_t j = 0; j < n; ++j) {
      positive(j, j) += 1;
      for (int64_t i = 0; i < j; ++i) positive(i, j) = std::numeric_limits<double>::quiet_NaN();
    }
    return positive;
  });
}

Literal RandomOfRank(DType dtype, const Shape& shape, int64_t rank, std::mt19937* random) {
  const bool is_complex = kComplexes.Contains(dtype);
  return Written(dtype, shape, [&] {
    const HostMatrix a = RandomMatrix(shape[0], rank, is_complex, random);
    return Product(a, RandomMatrix(rank, shape[1], is_complex, random));
  });
}

Literal RandomTriangles(DType dtype, const Shape& shape, std::mt19937* random) {
  return Written(dtype, shape, [&] {
    const int64_t n = shape[0];
    HostMatrix a = RandomMatrix(n, n, kComplexes.Contains(dtype), random);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) a(i, j) = i == j ? a(i, j) / std::abs(a(i, j)) : a(i, j) / static_cast<double>(n);
    }
    return a;
  });
}

Literal Filled(DType dtype, const Shape& shape, double value) {
  return Written(dtype, shape, [&] {
    HostMatrix a(shape[0], shape[1]);
    for (int64_t j = 0; j < a.columns(); ++j) {
      for (int64_t i = 0; i < a.rows(); ++i) a(i, j) = value;
    }
    return a;
  });
}

void ExpectProperties(const LinalgCall& call, const std::vector<Literal>& results) {
  for (int64_t b = 0; b < BatchSize(call.operands[0].shape()); ++b) Judge(call, results, b).Check();
}

void ForEachRandomCall(const std::function<void(const LinalgCall&)>& use) {
  std::mt19937 random(11);
  const std::pair<int64_t, int64_t> sizes[] = {{1, 1}, {2, 2}, {3, 3},   {5, 3},  {3, 5},   {1, 4},
                                               {4, 1}, {8, 8}, {17, 17}, {21, 9}, {13, 40}, {40, 40}};
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    for (const auto& [m, n] : sizes) {
      for (const Shape& batch : {Shape{}, Shape{5}, Shape{2, 3}}) {
        if (m * n > 400 && !batch.empty()) continue;
        UseCallsOnMatrix(dtype, m, n, batch, &random, use);
        if (m == n) UseCallsOnSquare(dtype, n, 1 + n / 2, batch, &random, use);
      }
    }
  }
}

}  // namespace tensord
