#include "tensord/linalg.h"

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/tensord.h"
#include "tests/unit/clients/cpp/lazy/client_tensors.h"
#include "tests/unit/clients/cpp/lazy/traced_text.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Linalg, ResultsAreOutputsOfOneNode) {
  const SvdResult svd = Svd(Input<double>({3, 2}));
  EXPECT_EQ(TracedText({svd.vh, svd.u, svd.s}),
            "x0 = input f64[3,2]\n"
            "n0 = (x0) extension { op { [type.googleapis.com/tensord.linalg.v1.Svd] { } } }\n"
            "y0 = n0:2\n"
            "y1 = n0\n"
            "y2 = n0:1\n");
}

TEST(Linalg, AResultMayBeUsedWithoutTheFirst) {
  EXPECT_EQ(TracedText({Negate(Qr(Input({2, 2})).r)}),
            "x0 = input f32[2,2]\n"
            "n0 = (x0) extension { op { [type.googleapis.com/tensord.linalg.v1.Qr] { } } }\n"
            "n1 = (n0:1) unary: UNARY_OP_NEGATE\n"
            "y0 = n1\n");
}

TEST(Linalg, MatricesAreTheLastTwoAxes) {
  EXPECT_EQ(TracedText({Inverse(Input({5, 3, 3}))}),
            "x0 = input f32[5,3,3]\n"
            "n0 = (x0) transpose { permutation: 1 permutation: 2 permutation: 0 }\n"
            "n1 = (n0) extension { op { [type.googleapis.com/tensord.linalg.v1.Inverse] { } } }\n"
            "n2 = (n1) transpose { permutation: 2 permutation: 0 permutation: 1 }\n"
            "y0 = n2\n");
  EXPECT_EQ(TracedText({SvdValues(Input({5, 3, 4}))}),
            "x0 = input f32[5,3,4]\n"
            "n0 = (x0) transpose { permutation: 1 permutation: 2 permutation: 0 }\n"
            "n1 = (n0) extension { op { [type.googleapis.com/tensord.linalg.v1.SvdValues] { } } }\n"
            "n2 = (n1) transpose { permutation: 1 permutation: 0 }\n"
            "y0 = n2\n");
}

TEST(Linalg, InfersShapesAndDTypes) {
  const Tensor a = Input<std::complex<float>>({7, 4, 3}), square = Input<std::complex<double>>({7, 3, 3});
  EXPECT_THAT(Svd(a).u.shape(), ElementsAre(7, 4, 3));
  EXPECT_THAT(Svd(a).s.shape(), ElementsAre(7, 3));
  EXPECT_EQ(Svd(a).s.dtype(), DType::kF32);
  EXPECT_THAT(Svd(a, Factors::kFull).u.shape(), ElementsAre(7, 4, 4));
  EXPECT_THAT(Svd(a, Factors::kFull).vh.shape(), ElementsAre(7, 3, 3));
  EXPECT_THAT(Qr(a).r.shape(), ElementsAre(7, 3, 3));
  EXPECT_THAT(Qr(a, Factors::kFull).q.shape(), ElementsAre(7, 4, 4));
  EXPECT_THAT(Qr(a, Factors::kFull).r.shape(), ElementsAre(7, 4, 3));
  EXPECT_THAT(Lu(a).p.shape(), ElementsAre(7, 4, 4));
  EXPECT_THAT(Lu(a).l.shape(), ElementsAre(7, 4, 3));
  EXPECT_THAT(Lu(a).u.shape(), ElementsAre(7, 3, 3));
  EXPECT_EQ(Eigh(square).values.dtype(), DType::kF64);
  EXPECT_EQ(Eigh(square).vectors.dtype(), DType::kC128);
  EXPECT_EQ(Eig(Input({3, 3})).values.dtype(), DType::kC64);
  EXPECT_THAT(Eig(square).vectors.shape(), ElementsAre(7, 3, 3));
  EXPECT_THAT(EigValues(square).shape(), ElementsAre(7, 3));
  EXPECT_THAT(Pinv(a).shape(), ElementsAre(7, 3, 4));
  EXPECT_THAT(Det(square).shape(), ElementsAre(7));
  EXPECT_THAT(Det(Input({3, 3})).shape(), IsEmpty());
  EXPECT_EQ(SlogDet(square).logabs.dtype(), DType::kF64);
  EXPECT_EQ(SlogDet(square).sign.dtype(), DType::kC128);
  EXPECT_EQ(MatrixRank(a).dtype(), DType::kI64);
  EXPECT_THAT(Cholesky(square).shape(), ElementsAre(7, 3, 3));
  EXPECT_EQ(Norm(a).dtype(), DType::kF32);
  EXPECT_THAT(Norm(a, -1).shape(), ElementsAre(7, 4));
  EXPECT_THAT(Norm(a, {-2, -1}, /*keep_dims=*/true).shape(), ElementsAre(7, 1, 1));
}

TEST(Linalg, SolvesBroadcastBatchesAndTakeVectors) {
  EXPECT_THAT(Solve(Input({3, 3}), Input({3})).shape(), ElementsAre(3));
  EXPECT_THAT(Solve(Input({3, 3}), Input({3, 2})).shape(), ElementsAre(3, 2));
  EXPECT_THAT(Solve(Input({5, 3, 3}), Input({3})).shape(), ElementsAre(5, 3));
  EXPECT_THAT(Solve(Input({5, 1, 3, 3}), Input({4, 3, 2})).shape(), ElementsAre(5, 4, 3, 2));
  EXPECT_THAT(TriangularSolve(Input({3, 3}), Input({3}), {.lower = true}).shape(), ElementsAre(3));
  EXPECT_THAT(Lstsq(Input({5, 3}), Input({5, 2})).shape(), ElementsAre(3, 2));
  EXPECT_THAT(Lstsq(Input({5, 3}), Input({5})).shape(), ElementsAre(3));
}

TEST(Linalg, TracesAttributes) {
  EXPECT_THAT(LastOp(TriangularSolve(Input({3, 3}), Input({3, 1}),
                                     {.unit_diagonal = true, .transpose = TriangularOptions::Transpose::kAdjoint})),
              HasSubstr("left_side: true unit_diagonal: true transpose_a: ADJOINT"));
  EXPECT_THAT(LastOp(Pinv(Input({3, 2}), 0.25)), HasSubstr("relative_cutoff: 0.25"));
  EXPECT_THAT(LastOp(Svd(Input({3, 2}), Factors::kFull).u), HasSubstr("full: true"));
}

TEST(Linalg, RefusesWhatHasNoMatrices) {
  EXPECT_EQ(Why(Inverse(Input({2, 3}))), "Inverse: needs square matrices: [2,3]");
  EXPECT_EQ(Why(Det(Input({2}))), "Det: needs matrices in the last two axes: [2]");
  EXPECT_EQ(Why(Svd(Input<int32_t>({2, 2})).vh), "Svd: needs f32, f64, c64 or c128, convert it: i32[2,2]");
  EXPECT_EQ(Why(Solve(Input({2, 2}), Input<double>({2, 2}))),
            "Solve: dtypes differ, and nothing is converted unasked: f32 and f64");
  EXPECT_EQ(Why(Solve(Input({2, 2}), Input({3, 1}))), "Solve: the matrices have unlike rows: [2,2] and [3,1]");
  EXPECT_EQ(Why(Solve(Input({4, 2, 2}), Input({3, 2, 1}))), "Solve: shapes do not broadcast: [4] and [3]");
  EXPECT_THAT(Why(Solve(Input({2}), Input({2, 1}))), HasSubstr("Solve: needs matrices"));
  EXPECT_THAT(Why(Solve(Input({2}), Input({2}))), HasSubstr("Solve: needs matrices"));
  EXPECT_THAT(Why(Norm(Input<int32_t>({2}))), HasSubstr("Norm: needs a floating-point or complex tensor"));
  const Tensor failed = Tensor::Failed(absl::AbortedError("why"));
  for (const Tensor& next : {Solve(failed, Input({2})), Solve(Input({2, 2}), failed), Svd(failed).s,
                             Eigh(failed).vectors, Lu(failed).p, SlogDet(failed).sign, Norm(failed)}) {
    EXPECT_EQ(Why(next), "why");
  }
}

TEST(Fft, InfersShapesAndDTypes) {
  const Tensor real = Input({4, 10}), complex = Input<std::complex<double>>({4, 6});
  EXPECT_EQ(Fft(real).dtype(), DType::kC64);
  EXPECT_THAT(Fft(real).shape(), ElementsAre(4, 10));
  EXPECT_THAT(Rfft(real).shape(), ElementsAre(4, 6));
  EXPECT_THAT(Rfft(real, 0).shape(), ElementsAre(3, 10));
  EXPECT_THAT(Irfft(complex).shape(), ElementsAre(4, 10));
  EXPECT_EQ(Irfft(complex).dtype(), DType::kF64);
  EXPECT_THAT(Irfft(complex, -1, {.lengths = {11}}).shape(), ElementsAre(4, 11));
  EXPECT_THAT(Rfftn(real, {1, 0}).shape(), ElementsAre(3, 10));
  EXPECT_THAT(Irfftn(complex).shape(), ElementsAre(4, 10));
  EXPECT_THAT(Ifftn(complex, {}, {.lengths = {2, 3}}).shape(), ElementsAre(2, 3));
  EXPECT_EQ(LastOp(Ifft(complex, 0, {.lengths = {8}, .norm = FftNorm::kOrtho})),
            "extension { op { [type.googleapis.com/tensord.fft.v1.Fft] { kind: KIND_IFFT axes: 0 lengths: 8 norm: "
            "NORM_ORTHO } } }");
}

TEST(Fft, Refuses) {
  EXPECT_EQ(Why(Rfft(Input<std::complex<float>>({4}))), "Rfft: needs a real operand: c64");
  EXPECT_EQ(Why(Fft(Input<int64_t>({4}))), "Fft: needs f32, f64, c64 or c128, convert it: i64");
  EXPECT_EQ(Why(Fft(Input({4}), 1)), "Fft: axis is out of range: axis 1, rank 1");
  EXPECT_EQ(Why(Fftn(Input({}))), "Fftn: needs an axis, and the tensor has rank 0");
  EXPECT_EQ(Why(Fft(Input({2, 0}))), "Fft: an axis has no element to transform: length 0, axis 1 of [2,0]");
  EXPECT_EQ(Why(Irfft(Input<std::complex<float>>({1}))),
            "Irfft: an axis has no element to transform: length 1, axis 0 of [1]");
  EXPECT_EQ(Why(Fft(Input({4}), 0, {.lengths = {4, 4}})), "Fft: needs one length for each axis: 2 lengths, 1 axes");
}

TEST(Fft, FrequenciesAreThoseOfNumpy) {
  const auto values_of = [](const Tensor& x) {
    const std::string& bytes = x.expression()->op.constant().value().data();
    const double* first = reinterpret_cast<const double*>(bytes.data());
    return std::vector<double>(first, first + bytes.size() / sizeof(double));
  };
  EXPECT_THAT(values_of(FftFreq(5, 0.5)), ElementsAre(0, 0.4, 0.8, -0.8, -0.4));
  EXPECT_THAT(values_of(FftFreq(4)), ElementsAre(0, 0.25, -0.5, -0.25));
  EXPECT_THAT(values_of(RfftFreq(4)), ElementsAre(0, 0.25, 0.5));
  EXPECT_FALSE(FftFreq(0).ok());
  EXPECT_THAT(Why(FftFreq(std::numeric_limits<int64_t>::max())), HasSubstr("FftFreq: has more than 134217728"));
  EXPECT_THAT(Why(RfftFreq(int64_t{1} << 28)), HasSubstr("RfftFreq: has more than 134217728"));
  EXPECT_FALSE(RfftFreq(4, 0).ok());
}

TEST(Einsum, InfersShapes) {
  const Tensor a = Input({2, 3}), b = Input({3, 4}), batched = Input({5, 1, 2, 3});
  EXPECT_THAT(Einsum("ij,jk->ik", {a, b}).shape(), ElementsAre(2, 4));
  EXPECT_THAT(Einsum("(ij, jk), kl -> il", {a, b, Input({4, 6})}).shape(), ElementsAre(2, 6));
  EXPECT_THAT(Einsum("ij->", {a}).shape(), IsEmpty());
  EXPECT_THAT(Einsum("ii->i", {Input({3, 3})}).shape(), ElementsAre(3));
  EXPECT_THAT(Einsum("i->ii", {Input({3})}).shape(), ElementsAre(3, 3));
  EXPECT_THAT(Einsum("...ij,...jk->...ik", {batched, Input({7, 3, 4})}).shape(), ElementsAre(5, 7, 2, 4));
  EXPECT_THAT(Einsum({{a, {0, 1000}}, {b, {1000, 2}}}, {2, 0}).shape(), ElementsAre(4, 2));
  EXPECT_EQ(LastOp(Einsum("ij->ji", {a},
                          {.optimizer = EinsumOptions::Optimizer::kGreedy, .path = {{0}}, .largest_intermediate = 9})),
            "extension { op { [type.googleapis.com/tensord.einsum.v1.Einsum] { equation: \"ij->ji\" optimizer: "
            "OPTIMIZER_GREEDY path { operands: 0 } largest_intermediate: 9 } } }");
}

TEST(Einsum, Refuses) {
  const Tensor a = Input({2, 3});
  EXPECT_THAT(Why(Einsum("ij", {a})), HasSubstr("has one arrow"));
  EXPECT_THAT(Why(Einsum("ij;jk->ik", {a, a})), HasSubstr("needs a term for each operand: 1 terms of ij;jk->ik"));
  EXPECT_THAT(Why(Einsum("i.j->i", {a})), HasSubstr("a term is letters, digits"));
  EXPECT_THAT(Why(Einsum("ijk->i", {a})), HasSubstr("operand 0 has rank 2, and its term 3 labels: [2,3]"));
  EXPECT_THAT(Why(Einsum("ij,jk->ik", {a, a})),
              HasSubstr("sizes of \"j\" differ: [3] before operand 1, and there [2]"));
  EXPECT_THAT(Why(Einsum("ij->k", {a})), HasSubstr("no operand has the output's label \"k\""));
  EXPECT_THAT(Why(Einsum("...j->j", {a})), HasSubstr("an ellipsis stands for 1 axes"));
  EXPECT_THAT(Why(Einsum("ij,jk->ik", {a, Input<double>({3, 3})})), HasSubstr("f32 and f64 of operand 1"));
  EXPECT_THAT(Why(Einsum("->", {})), HasSubstr("1 terms"));
  EXPECT_THAT(Why(Einsum(std::vector<LabeledTensor>(), {})), HasSubstr("needs an operand"));
  EXPECT_THAT(Why(Einsum({{a, {0, -3}}}, {0})), HasSubstr("labels count from 0: -3"));
  EXPECT_EQ(Why(Einsum("i,i->", {Tensor::Failed(absl::AbortedError("why")), a})), "why");
}

}  // namespace
}  // namespace tensord::client
