// Linear algebra, transforms, einsum, subscripts, symbols and programs of the lazy C++ API against the server binary.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/cpp/lazy/expression.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/tensord.h"
#include "tests/e2e/client_test.h"

namespace tensord::client {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClientLazyTest : public ClientTest {
 protected:
  // Expects zeros up to rounding.
  void ExpectVanishes(const Tensor& tensor) {
    const absl::StatusOr<HostTensor> norm = Eval(*client_, Norm(tensor));
    ASSERT_TRUE(norm.ok()) << norm.status();
    EXPECT_LT((*norm->Values<double>())[0], 1e-12);
  }
  void ExpectValues(const Tensor& tensor, const std::vector<double>& expected) {
    const absl::StatusOr<HostTensor> value = Eval(*client_, tensor);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(value->shape(), tensor.shape());
    EXPECT_THAT(*value->Values<double>(), ElementsAreArray(expected));
  }
};

Tensor CountingDoubles(Shape shape) {
  const int64_t count = *ElementCount(shape);
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) + 1;
  return Tensor::FromVector(std::move(values), std::move(shape));
}

// Matrices of full rank, a batch of two.
Tensor Matrices(int64_t m, int64_t n) {
  return Sin(CountingDoubles({2, m, n}) * 1.7) + Cos(CountingDoubles({2, m, n}) * 0.3);
}

Tensor Adjoint(const Tensor& x) { return Conj(Transpose(x, {0, 2, 1})); }

Tensor Identity(int64_t n) { return EmbedDiag(Full({n}, 1, DType::kF64)); }

TEST_F(ClientLazyTest, FactorsMultiplyToTheMatrix) {
  const Tensor a = Matrices(4, 3), square = Matrices(3, 3);
  const SvdResult svd = Svd(a);
  ExpectVanishes(MatMul(svd.u * ExpandDims(svd.s, 1), svd.vh) - a);
  ExpectVanishes(SvdValues(a) - svd.s);
  const SvdResult full = Svd(a, Factors::kFull);
  ExpectVanishes(MatMul(full.u, Adjoint(full.u)) - Identity(4));
  const QrResult qr = Qr(a);
  ExpectVanishes(MatMul(qr.q, qr.r) - a);
  ExpectVanishes(Triu(Transpose(qr.r, {1, 2, 0})) - Transpose(qr.r, {1, 2, 0}));
  const LuResult lu = Lu(a);
  ExpectVanishes(MatMul(lu.p, MatMul(lu.l, lu.u)) - a);
  const Tensor hermitian = MatMul(square, Adjoint(square));
  const EigenResult eigh = Eigh(hermitian);
  ExpectVanishes(MatMul(hermitian, eigh.vectors) - eigh.vectors * ExpandDims(eigh.values, 1));
  ExpectVanishes(EighValues(hermitian) - eigh.values);
  const EigenResult eig = Eig(square);
  const Tensor complex = Convert(square, DType::kC128);
  ExpectVanishes(Abs(MatMul(complex, eig.vectors) - eig.vectors * ExpandDims(eig.values, 1)));
  const Tensor lower = Cholesky(hermitian);
  ExpectVanishes(MatMul(lower, Adjoint(lower)) - hermitian);
}

TEST_F(ClientLazyTest, SolutionsSolve) {
  const Tensor a = Matrices(3, 3), b = Matrices(3, 2), tall = Matrices(5, 3);
  ExpectVanishes(MatMul(a, Solve(a, b)) - b);
  ExpectVanishes(MatMul(a[0], Solve(a[0], b[{0, kAll, 1}])) - b[{0, kAll, 1}]);
  ExpectVanishes(MatMul(a[0], Solve(a[0], b)) - b);
  ExpectVanishes(MatMul(a, Inverse(a)) - Identity(3));
  ExpectVanishes(MatMul(Pinv(tall), tall) - Identity(3));
  ExpectVanishes(Lstsq(tall, MatMul(tall, b)) - b);
  ExpectVanishes(Det(a) * Det(Inverse(a)) - 1);
  const SlogDetResult slogdet = SlogDet(a);
  ExpectVanishes(slogdet.sign * Exp(slogdet.logabs) - Det(a));
  const Tensor lower = Qr(a).r;  // upper triangular, and its adjoint lower
  ExpectVanishes(MatMul(lower, TriangularSolve(lower, b)) - b);
  ExpectVanishes(MatMul(Adjoint(lower), TriangularSolve(Adjoint(lower), b, {.lower = true})) - b);
  ExpectVanishes(
      MatMul(Adjoint(lower), TriangularSolve(lower, b, {.transpose = TriangularOptions::Transpose::kAdjoint})) - b);
  const auto rank = Eval(*client_, MatrixRank(MatMul(tall, Adjoint(tall))));
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_THAT(*rank->Values<int64_t>(), ElementsAre(3, 3));
}

TEST_F(ClientLazyTest, TransformsAreInverted) {
  const Tensor x = Matrices(4, 6);
  ExpectVanishes(Real(Ifft(Fft(x))) - x);
  ExpectVanishes(Real(Ifftn(Fftn(x))) - x);
  ExpectVanishes(Irfft(Rfft(x, 1), 1) - x);
  ExpectVanishes(Irfftn(Rfftn(x, {0, 2}), {0, 2}) - x);
  ExpectVanishes(Abs(Rfft(x) - Fft(x)[{kRest, Range::To(4)}]));
  ExpectVanishes(Irfft(Rfft(x[{kRest, Range::To(5)}]), -1, {.lengths = {5}}) - x[{kRest, Range::To(5)}]);
  ExpectVanishes(Abs(Fft(x, -1, {.norm = FftNorm::kOrtho}) * std::sqrt(6.0) - Fft(x)));
}

TEST_F(ClientLazyTest, EinsumsAreSums) {
  const Tensor a = Matrices(3, 4), b = Matrices(4, 5);
  ExpectVanishes(Einsum("bij,bjk->bik", {a, b}) - MatMul(a, b));
  ExpectVanishes(Einsum("...ij,...jk->...ik", {a, b[0]}) - MatMul(a, b[0]));
  ExpectVanishes(Einsum("((bij,bjk),bkl)->bil", {a, b, Adjoint(b)}) - MatMul(MatMul(a, b), Adjoint(b)));
  ExpectVanishes(Einsum({{a, {7, 0, 1}}, {b, {7, 1, 100000}}}, {100000, 7, 0}) - Transpose(MatMul(a, b), {2, 0, 1}));
}

TEST_F(ClientLazyTest, SubscriptsAreThoseOfNumpy) {
  const Tensor x = CountingDoubles({3, 4});
  ExpectValues(x[1], {5, 6, 7, 8});
  ExpectValues(x[{kAll, -1}], {4, 8, 12});
  ExpectValues(x[{Range::Every(-1), Range(1, 3)}], {10, 11, 6, 7, 2, 3});
  ExpectValues(x[{Range::Every(2), Range(3, std::nullopt, -2)}], {4, 2, 12, 10});
  ExpectValues(x[{1, kNewAxis, Range::From(2)}], {7, 8});
  ExpectValues(x[Range(2, 2)], {});
  ExpectValues(Select((x > 6) & (x < 9), x, -x)[{2, 0}], {-9});
}

TEST_F(ClientLazyTest, RangesOfASymbolAreThoseOfItsSizes) {
  std::vector<Range> ranges = {Range::Every(-1)};
  for (const int64_t step : {1, -1}) {
    for (const int64_t place : {-9, -2, -1, 0, 1, 3, 9}) {
      ranges.push_back({place, std::nullopt, step});
      ranges.push_back({std::nullopt, place, step});
      ranges.push_back({1, place, step});
      ranges.push_back({place, -2, step});
    }
  }
  const auto all_ranges = [&ranges](const Tensor& x) {
    std::vector<Tensor> parts;
    for (const Range& range : ranges) parts.push_back(x[{range, Range(0, 1)}]);
    return parts;
  };
  const auto program = Compile(*client_, all_ranges, Spec<double>({Symbol("n"), 2}));
  ASSERT_TRUE(program.ok()) << program.status();
  for (const int64_t n : {0, 1, 2, 5}) {
    const Tensor x = CountingDoubles({n, 2});
    const auto parts = (*program)(*x.expression()->host);
    ASSERT_TRUE(parts.ok()) << parts.status();
    const auto expected = EvalAll(*client_, all_ranges(x));
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (size_t i = 0; i < ranges.size(); ++i) {
      EXPECT_EQ((*parts)[i].shape(), (*expected)[i].shape()) << "n " << n << ", range " << i;
      EXPECT_EQ(*(*parts)[i].Values<double>(), *(*expected)[i].Values<double>()) << "n " << n << ", range " << i;
    }
  }
}

TEST_F(ClientLazyTest, OneProgramServesAllSizesOfASymbol) {
  const Tensor weights = CountingDoubles({4, 2});
  const auto layer = Compile(
      *client_, [&](const Tensor& x) { return MatMul(x - Mean(x, 1, true), weights) + 1; },
      Spec<double>({Symbol("n"), 4}, "x"));
  ASSERT_TRUE(layer.ok()) << layer.status();
  EXPECT_EQ(ShapeToString(layer->results()[0].shape), "[n,2]");
  for (const int64_t size : {0, 1, 3}) {
    const Tensor x = CountingDoubles({size, 4});
    const absl::StatusOr<HostTensor> y = (*layer)(*x.expression()->host);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(y->shape(), Shape({size, 2}));
    // Called with a tensor it becomes part of another graph.
    ExpectVanishes((*layer)(x)-Tensor::FromHost(*y));
  }
  const absl::StatusOr<HostTensor> refused = (*layer)(HostTensor::Scalar(1.0));
  EXPECT_EQ(refused.status().message(), "an argument does not have its parameter's type: x is f64[], wanted f64[n,4]");
  EXPECT_FALSE((*layer)(CountingDoubles({2, 3})).ok());
  EXPECT_EQ((*layer)().status().message(), "a program is called with one argument for each parameter: 0 for 1");
}

TEST_F(ClientLazyTest, SymbolsGoThroughShapesAtRunTime) {
  const int64_t n = Symbol("n");
  const auto program = Compile(
      *client_,
      [n](const Tensor& x) {
        return std::vector<Tensor>{Reshape(x, {-1}),
                                   Reshape(x, {n, 2, -1}),
                                   Concatenate({x, x}),
                                   x[{kAll, Range(1, 3)}],
                                   Full({n, 2}, 7, DType::kF64),
                                   Svd(x).s,
                                   Real(Ifft(Fft(x, 0), 0)) - x};
      },
      Spec<double>({n, 4}));
  ASSERT_TRUE(program.ok()) << program.status();
  for (const int64_t size : {1, 5}) {
    const auto results = (*program)(*CountingDoubles({size, 4}).expression()->host);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_THAT((*results)[0].shape(), ElementsAre(4 * size));
    EXPECT_THAT((*results)[1].shape(), ElementsAre(size, 2, 2));
    EXPECT_THAT((*results)[2].shape(), ElementsAre(2 * size, 4));
    EXPECT_THAT((*results)[3].shape(), ElementsAre(size, 2));
    EXPECT_THAT((*results)[4].shape(), ElementsAre(size, 2));
    EXPECT_THAT((*results)[5].shape(), ElementsAre(std::min<int64_t>(size, 4)));
    EXPECT_THAT((*results)[6].shape(), ElementsAre(size, 4));
  }
}

TEST_F(ClientLazyTest, OneSymbolIsOneSize) {
  const auto sum = Compile(
      *client_,
      [](const Tensor& x, const Tensor& y) {
        return std::array<Tensor, 2>{x + y, x - y};
      },
      Spec<double>({Symbol("n")}, "x"), Spec<double>({Symbol("n")}, "y"));
  ASSERT_TRUE(sum.ok()) << sum.status();
  const HostTensor two = *HostTensor::FromVector(std::vector<double>{1, 2}, {2});
  const HostTensor three = *HostTensor::FromVector(std::vector<double>{1, 2, 3}, {3});
  const auto results = (*sum)(two, two);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(*(*results)[0].Values<double>(), ElementsAre(2, 4));
  auto source = *sum;
  const auto moved = std::move(source);
  EXPECT_TRUE(source(two, two).ok()) << "a moved-from program is the same";  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(source(Tensor::FromHost(two), Tensor::FromHost(two))[1].ok());
  EXPECT_THAT(*(*results)[1].Values<double>(), ElementsAre(0, 0));
  EXPECT_EQ((*sum)(two, three).status().message(), "the size n is [2] and [3] in one call: argument y is f64[3]");
}

TEST_F(ClientLazyTest, ProgramsTakeResidentTensors) {
  const HostTensor state = *HostTensor::FromVector(std::vector<double>{1, 2}, {2});
  const auto step = Compile(
      *client_, [](const Tensor& x, const Tensor& by) { return x * by; }, state, Spec<double>({}, "by"));
  ASSERT_TRUE(step.ok()) << step.status();
  const auto session = client_->OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(client_->PutTensor(session->id(), "state", state).ok());
  for (int i = 0; i < 3; ++i) {
    const auto answer = step->Execute({Argument::Donated("state"), HostTensor::Scalar(2.0)},
                                      {ResultPlan::Keep("state")}, session->id());
    ASSERT_TRUE(answer.ok()) << answer.status();
  }
  const auto kept = client_->GetTensor(session->id(), "state");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_THAT(*kept->Values<double>(), ElementsAre(8, 16));
  EXPECT_FALSE(step->Execute({Argument::Donated("state"), state}, {}, session->id()).ok());
  EXPECT_TRUE(client_->CloseSession(session->id()).ok());
}

TEST_F(ClientLazyTest, ASessionIsAValueThatCallsItsClient) {
  const absl::StatusOr<Session> session = client_->OpenSession(absl::Seconds(90));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->lease(), absl::Seconds(90));
  ASSERT_TRUE(session->Put("x", HostTensor::Scalar(2.0)).ok());
  ASSERT_TRUE(session->Put("y", HostTensor::Scalar(3.0)).ok());
  const auto product = Compile(
      *client_, [](const Tensor& x, const Tensor& y) { return x * y; }, Spec<double>({}), Spec<double>({}));
  ASSERT_TRUE(product.ok()) << product.status();

  const Session copy = *session;
  const std::unique_ptr<Pipeline> pipeline = copy.OpenPipeline();
  for (int i = 0; i < 2; ++i) {
    const auto sent =
        pipeline->Submit(product->CallWith({Argument::Donated("x"), Argument::Handle("y")}, {ResultPlan::Keep("x")}));
    ASSERT_TRUE(sent.ok()) << sent.status();
  }
  const absl::Status finished = pipeline->Finish();
  ASSERT_TRUE(finished.ok()) << finished;
  EXPECT_THAT(*copy.Get("x")->Values<double>(), ElementsAre(18));
  const auto missing = copy.Delete({"y", "z"});
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_THAT(*missing, ElementsAre("z"));
  EXPECT_EQ(ReasonOf(session->Get("y").status()), "HANDLE_UNKNOWN");
  EXPECT_TRUE(copy.Close().ok());
  EXPECT_EQ(ReasonOf(session->Get("x").status()), "SESSION_UNKNOWN");
}

TEST_F(ClientLazyTest, ScalarsAreTensorsOfOneElement) {
  EXPECT_EQ(EvalScalar<double>(*client_, Sum(CountingDoubles({3}))).value_or(0), 6);
  EXPECT_EQ(EvalScalar<double>(*client_, CountingDoubles({3})).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(EvalScalar<float>(*client_, Tensor()).status().message()), HasSubstr("none was assigned"));
}

TEST_F(ClientLazyTest, EqualFunctionsAreOneProgram) {
  const auto first = Compile(
      *client_, [](const Tensor& x) { return Tanh(x) * 3.25; }, Spec<double>({2}, "a"));
  const auto second = Compile(
      *client_, [](const Tensor& y) { return Tanh(y) * 3.25; }, Spec<double>({2}, "b"));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->fingerprint(), second->fingerprint());
}

TEST_F(ClientLazyTest, ErrorsOfTheRunNameTheCall) {
  const auto inverse = Eval(*client_, Inverse(Full({2, 2}, 1, DType::kF64)));
  ASSERT_FALSE(inverse.ok());
  const auto detail = GetErrorDetail(inverse.status());
  ASSERT_TRUE(detail.has_value()) << inverse.status();
  EXPECT_THAT(detail->node, HasSubstr("Inverse_")) << inverse.status();
  EXPECT_THAT(detail->node, HasSubstr("@client_lazy_test.cc#L")) << inverse.status();
}

TEST_F(ClientLazyTest, AFunctionThatFailsIsNotCompiled) {
  const auto program = Compile(
      *client_, [](const Tensor& x) { return x + CountingDoubles({3}); }, Spec<double>({2}));
  EXPECT_THAT(std::string(program.status().message()),
              StartsWith("Add: shapes do not broadcast: [2] and [3]; at client_lazy_test.cc:"));
  EXPECT_FALSE(Compile(*client_, [] { return std::vector<Tensor>(); }).ok());
  EXPECT_FALSE(Compile(
                   *client_, [](const Tensor& x, const Tensor&) { return x; }, Spec<double>({}, "same"),
                   Spec<double>({}, "same"))
                   .ok());
}

TEST_F(ClientLazyTest, AFunctionThatReturnsFewerTensorsNextTimeFails) {
  const auto calls = std::make_shared<int>(0);
  const auto program = CompiledFunction::Compile(
      *client_, {Spec<double>({2})},
      [calls](absl::Span<const Tensor> x) { return std::vector<Tensor>((*calls)++ == 0 ? 2 : 1, x[0]); }, {});
  ASSERT_TRUE(program.ok()) << program.status();
  const Program<std::array<Tensor, 2>> pair(*program);
  const std::array<Tensor, 2> again = pair(CountingDoubles({2}));
  for (const Tensor& tensor : again) {
    EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("as many tensors at each call: 1, and before 2"));
  }
}

}  // namespace
}  // namespace tensord::client
