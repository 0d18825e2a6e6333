// Each call of each function that the backend calls fails once, from the opening of the libraries on.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "tests/testlib/numbers/linalg_properties.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;

constexpr absl::string_view kFunctions[] = {
#define TENSORD_NAME(name, result, arguments) #name,
    TENSORD_CUDA_DRIVER_FUNCTIONS(TENSORD_NAME) TENSORD_CUDA_NVRTC_FUNCTIONS(TENSORD_NAME)
        TENSORD_CUDA_BLAS_LT_FUNCTIONS(TENSORD_NAME) TENSORD_CUDA_BLAS_FUNCTIONS(TENSORD_NAME)
            TENSORD_CUDA_SOLVER_FUNCTIONS(TENSORD_NAME) TENSORD_CUDA_SOLVER_LATER_FUNCTIONS(TENSORD_NAME)
                TENSORD_CUDA_FFT_FUNCTIONS(TENSORD_NAME)
#undef TENSORD_NAME
};

bool HasAnyOf(absl::string_view function, std::initializer_list<absl::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](absl::string_view part) { return absl::StrContains(function, part); });
}
// Tells whether a failure is nobody's to report: the call gives something back, or says what an error is called.
bool IsLast(absl::string_view function) {
  return HasAnyOf(function, {"Destroy", "Unload", "Unmap", "Free", "CtxRelease", "CtxReset", "ErrorName"});
}
// Tells whether a failure may leave a library's version unknown.
bool IsOfVersion(absl::string_view function) {
  return HasAnyOf(function,
                  {"cublasGetProperty", "cublasLtGetVersion", "cusolverGetVersion", "cufftGetVersion", "nvrtcVersion"});
}

// Tells whether a failure may leave no more than a time unknown.
bool IsOfTimes(absl::string_view function) { return HasAnyOf(function, {"cuEvent"}); }

bool IsDriver(absl::string_view function) { return function[2] >= 'A' && function[2] <= 'Z'; }

// A device's life: libraries are opened, the backend is made, a program is compiled and run, all of it goes.
struct Life {
  std::string text;
  std::vector<Literal> arguments;
  bool compiles = false;  // its kernels anew
  bool has_virtual_memory = true;
  int64_t tensor_bytes = 64 * kMiB;
};

class EveryCallTest : public BesideCpuTest {
 protected:
  struct Lived {
    absl::Status first;  // of all up to the end of the first run
    absl::Status again;  // of another run on the same backend, where there is one
    std::vector<Literal> results;
  };

  // `before_again` is called between the runs.
  Lived Live(const Life& life, absl::FunctionRef<void()> before_again) {
    hostCudaSet("VIRTUAL_MEMORY", life.has_virtual_memory ? "" : "0");
    const std::string folder = std::filesystem::path(TENSORD_HOST_CUDA).parent_path();
    auto libraries = Libraries::Open(
        {.folders = {folder}, .asks_loader = false, .toolkit_folders = {}, .driver_release_file = "/dev/null"});
    if (!libraries.ok()) return {.first = libraries.status()};
    auto backend = MakeCudaBackend({.libraries = libraries->get(),
                                    .tensor_bytes = life.tensor_bytes,
                                    .host_memory = host_memory_,
                                    .cubins = life.compiles ? CubinStore::InMemory() : cubins_});
    if (!backend.ok()) return {.first = backend.status()};
    Lived lived;
    auto run = Run(backend->get(), life.text, life.arguments);
    lived.first = run.status();
    before_again();
    if (!run.ok()) run = Run(backend->get(), life.text, life.arguments);
    lived.again = run.status();
    if (run.ok()) lived.results = *std::move(run);
    EXPECT_EQ((*backend)->Memory().in_use_bytes, 0);
    return lived;
  }

  // Returns what is not given back; objects of libraries that a lost device had stay.
  long LiveThings(bool is_lost) const {
    const long objects = is_lost ? 0 : hostCudaLiveObjects();
    return hostCudaLiveMemory() + hostCudaLivePinned() + hostCudaLiveHandles() + objects;
  }
  void TearDown() override { CudaTest::TearDown(); }

  // Lets the n-th call of a function fail, with this result.
  void ExpectFailure(const Life& life, const std::string& function, long n, int result,
                     const std::vector<Literal>& results) {
    SCOPED_TRACE(absl::StrCat(function, " number ", n, " gives ", result));
    // Whoever cannot enter the context cannot wait for its work either.
    const bool is_lost = result == kCuIllegalAddress || function == "cuCtxSetCurrent";
    const long before = hostCudaCalls(function.c_str()), live = LiveThings(is_lost);
    bool has_failed = false;
    hostCudaFail(function.c_str(), n, result);
    const Lived lived = Live(life, [&] {
      has_failed = hostCudaCalls(function.c_str()) - before >= n;
      hostCudaFail("", 0, 0);
    });
    has_failed |= hostCudaCalls(function.c_str()) - before >= n;
    hostCudaFail("", 0, 0);
    if (!has_failed) return;  // as often as a wait asks
    ++failures_;
    if (IsLast(function)) {
      EXPECT_TRUE(lived.first.ok() || is_lost) << lived.first;
      EXPECT_LE(LiveThings(is_lost), live + 1);
    } else if (!lived.first.ok() || (!IsOfVersion(function) && !IsOfTimes(function))) {
      EXPECT_FALSE(lived.first.ok());
      EXPECT_THAT(lived.first.code(), AnyOf(Eq(absl::StatusCode::kInternal), Eq(absl::StatusCode::kUnavailable),
                                            Eq(absl::StatusCode::kDataLoss), Eq(absl::StatusCode::kResourceExhausted)))
          << lived.first;
      const bool is_at_start = HasAnyOf(function, {"cuInit", "cuDeviceGetCount", "cuDriverGetVersion"});
      EXPECT_THAT(std::string(lived.first.message()),
                  HasSubstr(is_at_start ? "libcuda" : function.substr(0, function.find('_'))));
      EXPECT_EQ(LiveThings(is_lost), live);
    }
    EXPECT_TRUE(lived.again.ok()) << lived.again;
    EXPECT_TRUE(lived.results.empty() || lived.results == results);
    ResetDevice();
  }

  const std::shared_ptr<CubinStore> cubins_ = CubinStore::InMemory();
  int failures_ = 0;
};

std::string OfLinalg(absl::string_view op, int results, const ConcreteType& type, absl::string_view attrs = "",
                     int operands = 1) {
  std::string text = absl::StrCat("graph \"g\" {\n  %x = input : ", ToString(type), "\n  %y",
                                  results > 1 ? absl::StrCat(":", results) : "", " = tensord.linalg.v1.", op, "(%x",
                                  operands > 1 ? ", %x" : "", ")", attrs, "\n");
  return absl::StrCat(text, "  output \"y\" = %y", results > 1 ? ":0" : "", "\n}\n");
}

TEST_F(EveryCallTest, MayFailAndNothingIsLeft) {
  std::mt19937 random{5};
  const auto one = [&](DType dtype, Shape shape) { return RandomMatrices(dtype, std::move(shape), &random); };
  std::vector<Life> lives;
  const auto add = [&](const std::string& text, std::vector<Literal> arguments) -> Life& {
    return lives.emplace_back(Life{.text = text, .arguments = std::move(arguments)});
  };
  const std::string sums = R"(graph "g" {
    %x = input : f32[64,50]
    %y = exp(%x)
    %s = reduce(%y) {kind = sum, dimensions = [1]}
    output "s" = %s
  })";
  add(sums, {one(DType::kF32, {64, 50})});
  add(sums, {one(DType::kF32, {64, 50})}).compiles = true;
  add(sums, {one(DType::kF32, {64, 50})}).has_virtual_memory = false;
  add(sums, {one(DType::kF32, {64, 50})}).tensor_bytes = -1;
  add(R"(graph "g" {
    %x = input : f64[34,34,2]
    %p = dot_general(%x, %x) {lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1], lhs_batching_dimensions = [2], rhs_batching_dimensions = [2]}
    %e = slice(%x) {start_indices = [0, 0, 0], limit_indices = [34, 0, 1], strides = [1, 1, 1]}
    %z = dot_general(%e, %e) {lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [1, 2]}
    output "p" = %p
    output "z" = %z
  })",
      {one(DType::kF64, {34, 34, 2})});
  add(R"(graph "g" {
    %x = input : c64[4,6]
    %y = tensord.fft.v1.Fft(%x) {kind = fft, axes = [0, 1], norm = ortho}
    output "y" = %y
  })",
      {one(DType::kC64, {4, 6})});
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kC128}) {
    const ConcreteType type = {dtype, {34, 34}};
    add(OfLinalg("Cholesky", 1, type), {RandomPositiveDefinite(dtype, {34, 34}, &random)});
    add(OfLinalg("Qr", 2, type), {one(dtype, {34, 34})});
    add(OfLinalg("TriangularSolve", 1, type, "", 2), {RandomTriangles(dtype, {34, 34}, &random)});
  }
  const ConcreteType type = {DType::kF64, {34, 34}}, two = {DType::kF64, {34, 34, 2}};
  const ConcreteType larger = {DType::kF64, {257, 257}};
  add(OfLinalg("Cholesky", 1, larger), {RandomPositiveDefinite(DType::kF64, {257, 257}, &random)});
  add(OfLinalg("Solve", 1, type, "", 2), {one(DType::kF64, {34, 34})});
  add(OfLinalg("Eigh", 2, type), {one(DType::kF64, {34, 34})});
  add(OfLinalg("Eigh", 2, two), {one(DType::kF64, {34, 34, 2})});
  add(OfLinalg("Svd", 3, type), {one(DType::kF64, {34, 34})});
  add(OfLinalg("Eig", 2, type), {one(DType::kF64, {34, 34})});

  std::set<std::string> called;
  for (const Life& life : lives) {
    SCOPED_TRACE(life.text);
    std::vector<long> before;
    for (const absl::string_view function : kFunctions) before.push_back(hostCudaCalls(std::string(function).c_str()));
    const Lived whole = Live(life, [] {});
    ASSERT_TRUE(whole.first.ok()) << whole.first;
    for (size_t f = 0; f < std::size(kFunctions); ++f) {
      const std::string function(kFunctions[f]);
      const long calls = hostCudaCalls(function.c_str()) - before[f];
      // Kernels are loaded from the store from the second life on, so that only the last ones differ.
      if (calls == 0 || !called.insert(function).second) continue;
      for (long n = 1; n <= calls; n += calls > 20 ? calls / 10 : 1) {
        ExpectFailure(life, function, n, IsDriver(function) ? kCuUnknown : 0, whole.results);
        if (IsDriver(function)) ExpectFailure(life, function, n, kCuIllegalAddress, whole.results);
      }
    }
  }
  EXPECT_GT(failures_, 130);
  // Functions that the backend does not call, or only after another failure. What it calls anew needs a life above.
  std::vector<std::string> never;
  for (const absl::string_view function : kFunctions) {
    if (!called.contains(std::string(function))) never.emplace_back(function);
  }
  EXPECT_THAT(
      never,
      testing::IsSubsetOf(std::vector<std::string>{
          "cuGetErrorName", "cuDeviceTotalMem_v2", "cuCtxSynchronize", "cuMemsetD32Async",
          // Whose failures are tolerated: pinned_blocks_test.
          "cuCtxGetCurrent", "cuMemHostRegister_v2", "cuMemHostUnregister", "cuStreamSynchronize", "cuStreamQuery",
          "cuStreamWaitEvent", "cuEventElapsedTime", "cuFuncGetAttribute", "cuStreamBeginCapture_v2",
          "cuStreamEndCapture", "cuStreamIsCapturing", "cuGraphInstantiateWithFlags", "cuGraphGetNodes",
          "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy", "nvrtcGetErrorString", "nvrtcGetProgramLogSize",
          "nvrtcGetProgramLog", "nvrtcGetPTXSize", "nvrtcGetPTX",
          // Of large matrices: linalg_test.
          "cusolverDnXsyevd_bufferSize", "cusolverDnXsyevd", "cublasLtGetVersion", "cublasLtGetStatusName"}));
}

}  // namespace
}  // namespace tensord::cuda
