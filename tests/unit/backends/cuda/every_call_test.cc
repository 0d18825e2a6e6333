// Each call of each function that the backend calls fails once, from the opening of the libraries on.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/device/lane.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/run.h"
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

// Tells whether a failure leaves a program without its graph: it is launched kernel by kernel.
bool IsOfCapture(absl::string_view function) {
  return HasAnyOf(function, {"Capture", "Capturing", "GraphGetNodes", "GraphInstantiate"});
}

bool IsDriver(absl::string_view function) { return function[2] >= 'A' && function[2] <= 'Z'; }

// A device's life: libraries are opened, the backend is made, a program is compiled and run, all of it goes.
struct Life {
  std::string text;
  std::vector<Literal> arguments;
  bool compiles = false;  // its kernels anew
  bool has_virtual_memory = true;
  bool has_batches_of_spectra = true;
  int runs = 1;  // of a program whose arguments stay where they are, so that it becomes a graph
  bool profile = false;
  int64_t tensor_bytes = 64 * kMiB;
};

class EveryCallTest : public BesideCpuTest {
 protected:
  struct Lived {
    absl::Status first;  // of all up to the end of the first run
    absl::Status again;  // of another run on the same backend, where there is one
    std::vector<Literal> results;
  };

  // Compiles the program, and runs it as often as the life says. Returns the last run's results.
  static absl::StatusOr<std::vector<Literal>> RunLife(Backend* backend, const Life& life) {
    ASSIGN_OR_RETURN(const CompiledProgramPtr program,
                     Compile(ParsedGraph(life.text), {.device = "d:0"}, Fingerprint(), backend));
    RunRequest request;
    request.program = program;
    request.profile = life.profile;
    for (const Literal& argument : life.arguments) {
      RunTensor& tensor = request.arguments.emplace_back(RunTensor{.type = argument.type()});
      const absl::string_view bytes = argument.bytes();
      ASSIGN_OR_RETURN(tensor.buffer, backend->Import(bytes.data(), static_cast<int64_t>(bytes.size()), nullptr));
    }
    std::vector<Literal> results;
    for (int i = 0; i < life.runs; ++i) {
      ASSIGN_OR_RETURN(const RunOutcome outcome, RunProgram(request, absl::ZeroDuration()));
      results.clear();
      for (const RunTensor& result : outcome.results) {
        const absl::string_view bytes(static_cast<const char*>(result.bytes.get()),
                                      static_cast<size_t>(result.type.num_bytes()));
        ASSIGN_OR_RETURN(Literal literal, Literal::FromBytes(result.type, bytes));
        results.push_back(std::move(literal));
      }
    }
    return results;
  }

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
    if (!life.has_batches_of_spectra) {
      const auto solver = (*libraries)->solver();
      if (!solver.ok()) return {.first = solver.status()};
      const_cast<Solver*>(*solver)->cusolverDnXsyevBatched = nullptr;
    }
    Lived lived;
    auto run = RunLife(backend->get(), life);
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
    if (IsOfCapture(function)) {
      EXPECT_TRUE(lived.first.ok() || (is_lost && absl::IsDataLoss(lived.first))) << lived.first;
      EXPECT_EQ(LiveThings(is_lost), live);
    } else if (IsLast(function)) {
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
  // Extremes along one axis and the other: kernels that nothing joins, which a graph is made of.
  const std::string extremes = R"(graph "g" {
    %x = input : f32[64,64]
    %a = reduce(%x) {kind = max, dimensions = [0]}
    %ab = broadcast_in_dim(%a) {shape = [64, 64], broadcast_dimensions = [1]}
    %c = subtract(%x, %ab)
    %d = reduce(%c) {kind = max, dimensions = [1]}
    %db = broadcast_in_dim(%d) {shape = [64, 64], broadcast_dimensions = [0]}
    %e = subtract(%c, %db)
    %f = reduce(%e) {kind = max, dimensions = [0]}
    %fb = broadcast_in_dim(%f) {shape = [64, 64], broadcast_dimensions = [1]}
    %g = subtract(%e, %fb)
    %h = reduce(%g) {kind = min, dimensions = [1]}
    output "h" = %h
  })";
  add(extremes, {one(DType::kF32, {64, 64})}).runs = 3;
  add(extremes, {one(DType::kF32, {64, 64})}).profile = true;
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
  add(OfLinalg("Eigh", 2, type), {one(DType::kF64, {34, 34})}).has_batches_of_spectra = false;
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
  // Functions that the backend does not call, or only after another failure: WhatIsAskedAfterAFailure. What it calls
  // anew needs a life above.
  std::vector<std::string> never;
  for (const absl::string_view function : kFunctions) {
    if (!called.contains(std::string(function))) never.emplace_back(function);
  }
  const std::vector<std::string> after_a_failure = {
      "cuGetErrorName",      "cuCtxSynchronize",       "cuStreamSynchronize", "cuStreamIsCapturing",
      "nvrtcGetErrorString", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog"};
  // PinnedBlocksTest has the failures of those that pin memory; cublasLtGetVersion has no way to fail.
  const std::vector<std::string> not_called = {"cuCtxGetCurrent",     "cuDeviceTotalMem_v2",  "cuMemHostRegister_v2",
                                               "cuMemHostUnregister", "cuMemsetD32Async",     "cuStreamQuery",
                                               "cuStreamWaitEvent",   "nvrtcGetPTXSize",      "nvrtcGetPTX",
                                               "cublasLtGetVersion",  "cublasLtGetStatusName"};
  std::vector<std::string> known = after_a_failure;
  known.insert(known.end(), not_called.begin(), not_called.end());
  EXPECT_THAT(never, testing::IsSubsetOf(known));
}

// What says more of a failure may fail itself: the first failure is told, without it.
TEST_F(EveryCallTest, WhatIsAskedAfterAFailure) {
  hostCudaFail("cuGetErrorName", 1, kCuUnknown);
  const absl::Status nameless = Context::Create(&libraries_->driver(), 99).status();
  EXPECT_THAT(std::string(nameless.message()), HasSubstr("cuDeviceGet: CUresult 101"));

  const std::shared_ptr<Context> context = Entered();
  auto compiler = KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  for (const char* function : {"nvrtcGetProgramLogSize", "nvrtcGetProgramLog"}) {
    hostCudaFail(function, 1, 0);
    const absl::Status wordless =
        (*compiler)->Compile({.source = "this is no kernel", .launches = {{.entry = "k"}}}).status();
    EXPECT_EQ(wordless.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(wordless.message(), "NVRTC refuses the text of a kernel: ");
  }

  // What is on its way is waited for by the stream, else by the context; else the device is lost.
  for (const bool can_wait : {true, false}) {
    auto lane = Lane::Create(context, libraries_.get());
    ASSERT_TRUE(lane.ok()) << lane.status();
    hostCudaFail("cuStreamSynchronize", 1, kCuUnknown);
    if (!can_wait) hostCudaFail("cuCtxSynchronize", 1, kCuUnknown);
    const absl::Status failed = (*lane)->Enqueue([](CuStream) { return absl::InternalError("no work"); });
    EXPECT_THAT(std::string(failed.message()), HasSubstr("no work"));
    EXPECT_EQ(failed.code(), can_wait ? absl::StatusCode::kInternal : absl::StatusCode::kDataLoss);
    EXPECT_EQ(context->is_lost(), !can_wait);
  }
}

// A capture that does not end is asked whether it is one still, and that may fail.
TEST_F(EveryCallTest, ACaptureOfUnknownState) {
  const std::shared_ptr<Context> context = Entered();
  auto lane = Lane::Create(context, libraries_.get());
  ASSERT_TRUE(lane.ok()) << lane.status();
  hostCudaFail("cuStreamEndCapture", 1, kCuUnknown);
  hostCudaFail("cuStreamIsCapturing", 1, kCuUnknown);
  EXPECT_EQ((*lane)->Capture([](CuStream) { return absl::OkStatus(); }), nullptr);
  const absl::Status finished = (*lane)->Finish();
  EXPECT_TRUE(finished.ok() || !(*lane)->is_usable()) << finished;
}

}  // namespace
}  // namespace tensord::cuda
