// Transforms by cuFFT.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/fft/fft_kernel.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

std::string NumbersText(absl::Span<const int64_t> numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

std::string TransformText(const ConcreteType& type, absl::string_view kind, const std::vector<int64_t>& axes,
                          const std::vector<int64_t>& lengths = {}, absl::string_view norm = "backward") {
  return absl::StrCat("graph \"g\" {\n  %x = input : ", ToString(type),
                      "\n  %y = tensord.fft.v1.Fft(%x) {kind = ", kind, ", axes = ", NumbersText(axes),
                      lengths.empty() ? "" : absl::StrCat(", lengths = ", NumbersText(lengths)), ", norm = ", norm,
                      "}\n  output \"y\" = %y\n}");
}

class CudaFftTest : public BesideCpuTest {
 protected:
  void ExpectTransform(Backend* backend, const ConcreteType& type, absl::string_view kind,
                       const std::vector<int64_t>& axes, const std::vector<int64_t>& lengths = {},
                       absl::string_view norm = "backward") {
    const bool is_single = SizeOf(RealPartOf(type.dtype)) == 4;
    ExpectAsOnCpu(backend, TransformText(type, kind, axes, lengths, norm),
                  {RandomLiteral(type, Values::kModest, &random_)},
                  {.norm_relative = is_single ? 2e-6 : 4e-15, .least_norm = 1});
  }
};

TEST_F(CudaFftTest, KindsDtypesAndNorms) {
  hostCudaSet("DELAY_US", "200");
  const std::unique_ptr<Backend> backend = Made();
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    const bool is_complex = dtype == DType::kC64 || dtype == DType::kC128;
    for (const absl::string_view norm : {"backward", "ortho", "forward"}) {
      ExpectTransform(backend.get(), {dtype, {12, 3}}, "fft", {0}, {}, norm);
      ExpectTransform(backend.get(), {dtype, {12, 3}}, "ifft", {0}, {}, norm);
      if (!is_complex) ExpectTransform(backend.get(), {dtype, {12, 3}}, "rfft", {0}, {}, norm);
      if (is_complex) ExpectTransform(backend.get(), {dtype, {7, 3}}, "irfft", {0}, {12}, norm);
    }
  }
}

TEST_F(CudaFftTest, AnyAxes) {
  const std::unique_ptr<Backend> backend = Made();
  const std::vector<int64_t> kAxes[] = {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {2, 0}, {0, 1, 2}};
  for (const std::vector<int64_t>& axes : kAxes) {
    ExpectTransform(backend.get(), {DType::kC128, {4, 6, 5}}, "fft", axes);
    ExpectTransform(backend.get(), {DType::kF64, {4, 6, 5}}, "fft", axes);
    ExpectTransform(backend.get(), {DType::kF64, {4, 6, 5}}, "rfft", axes);
    ExpectTransform(backend.get(), {DType::kC128, {4, 6, 5}}, "irfft", axes);
  }
}

TEST_F(CudaFftTest, LinesAreCutAndFilledUp) {
  const std::unique_ptr<Backend> backend = Made();
  for (const int64_t length : {1, 5, 9, 16}) {
    ExpectTransform(backend.get(), {DType::kC64, {9, 2}}, "fft", {0}, {length});
    ExpectTransform(backend.get(), {DType::kF32, {9, 2}}, "rfft", {0}, {length});
    ExpectTransform(backend.get(), {DType::kC64, {9, 2}}, "irfft", {0}, {length});
    ExpectTransform(backend.get(), {DType::kC64, {2, 9}}, "ifft", {1}, {length});
  }
  ExpectTransform(backend.get(), {DType::kF64, {3, 4}}, "rfft", {0, 1}, {5, 3});
}

TEST_F(CudaFftTest, SizesOfNothingAndOne) {
  const std::unique_ptr<Backend> backend = Made();
  ExpectTransform(backend.get(), {DType::kC64, {4, 0}}, "fft", {0});
  ExpectTransform(backend.get(), {DType::kC64, {1, 1}}, "fft", {0, 1});
  ExpectTransform(backend.get(), {DType::kF32, {1}}, "rfft", {0});
  ExpectTransform(backend.get(), {DType::kC64, {1}}, "irfft", {0}, {1});
  ExpectTransform(backend.get(), {DType::kF32, {3, 4}}, "fft", {});
  ExpectTransform(backend.get(), {DType::kC128, {3, 4}}, "ifft", {});
}

// Lines of nothing are filled up with zeros, along whichever axis comes first.
TEST_F(CudaFftTest, AxesOfNothingBesideOthers) {
  const std::unique_ptr<Backend> backend = Made();
  ExpectTransform(backend.get(), {DType::kC64, {0, 3}}, "fft", {0}, {4});
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0, 1}, std::vector<int64_t>{1, 0}}) {
    for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{0, 0}}) {
      ExpectTransform(backend.get(), {DType::kC64, shape}, "fft", axes, {4, 5});
      ExpectTransform(backend.get(), {DType::kF32, shape}, "ifft", axes, {4, 5}, "ortho");
      ExpectTransform(backend.get(), {DType::kF64, shape}, "rfft", axes, {4, 5});
      ExpectTransform(backend.get(), {DType::kC128, shape}, "irfft", axes, {4, 5});
    }
  }
  ExpectTransform(backend.get(), {DType::kC64, {0, 0, 3}}, "fft", {0, 1, 2}, {2, 3, 3});
  ExpectTransform(backend.get(), {DType::kF64, {0, 3, 0}}, "rfft", {2, 1, 0}, {2, 1, 3});
}

// Behind a tensor of 960 bytes: a run's memory is aligned to 64, and cuFFT wants more.
TEST_F(CudaFftTest, WorkspacesBesideOtherTensorsAreAligned) {
  const std::unique_ptr<Backend> backend = Made();
  const ConcreteType type = {DType::kC64, {40, 3}};
  ExpectAsOnCpu(backend.get(),
                absl::StrCat("graph \"g\" {\n  %x = input : ", ToString(type),
                             "\n  %n = negate(%x)\n  %m = tensord.fft.v1.Fft(%n) {kind = fft, axes = [0]}\n"
                             "  %p = multiply(%m, %n)\n  %y = tensord.fft.v1.Fft(%p) {kind = fft, axes = [0, 1]}\n"
                             "  output \"y\" = %y\n}"),
                {RandomLiteral(type, Values::kModest, &random_)}, {.norm_relative = 4e-6, .least_norm = 1});
}

TEST_F(CudaFftTest, ALineThatIsNotFiniteIsAlone) {
  const std::unique_ptr<Backend> backend = Made();
  const ConcreteType type = {DType::kC128, {8, 3}};
  Literal argument = RandomLiteral(type, Values::kModest, &random_);
  const std::string text = TransformText(type, "fft", {0});
  const auto whole = Run(backend.get(), text, {argument});
  argument.mutable_values<std::complex<double>>()[9] = {std::numeric_limits<double>::quiet_NaN(), 0};
  const auto broken = Run(backend.get(), text, {argument});
  ASSERT_TRUE(whole.ok() && broken.ok());
  for (size_t i = 0; i < 24; ++i) {
    const std::complex<double> got = (*broken)[0].values<std::complex<double>>()[i];
    if (i / 8 == 1) {
      EXPECT_TRUE(std::isnan(got.real()));
    } else {
      EXPECT_EQ(got, (*whole)[0].values<std::complex<double>>()[i]);
    }
  }
}

TEST_F(CudaFftTest, SizesThatTheLibraryRefuses) {
  const ConcreteType type = {DType::kC64, {4, 6}};
  for (const FftResult result : {kFftInvalidSize, kFftInvalidValue, kFftNotSupported}) {
    const std::unique_ptr<Backend> backend = Made();
    hostCudaFail("cufftMakePlanMany64", 1, result);
    const auto refused =
        Run(backend.get(), TransformText(type, "fft", {0}), {RandomLiteral(type, Values::kModest, &random_)});
    hostCudaFail("", 0, 0);
    EXPECT_EQ(ReasonOf(refused.status()), "UNSUPPORTED_ON_DEVICE") << result;
    EXPECT_NE(refused.status().message().find("6 lines of 4 numbers"), std::string::npos) << refused.status();
  }
}

TEST_F(CudaFftTest, EachCallMayFail) {
  const ConcreteType type = {DType::kC64, {4, 6}};
  ExpectFailuresLeaveNothing({"cufftCreate", "cufftSetAutoAllocation", "cufftMakePlanMany64", "cufftSetStream",
                              "cufftSetWorkArea", "cufftXtExec"},
                             TransformText(type, "fft", {0, 1}), {RandomLiteral(type, Values::kModest, &random_)});
}

}  // namespace
}  // namespace tensord::cuda
