// Programs on the host CUDA device, by the engine's way, against the CPU.
#include "backends/cuda/cuda_session.h"

#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/device/lanes.h"
#include "backends/cuda/memory/device_pool.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/compile/explain.h"
#include "engine/runtime/devices/run.h"
#include "gmock/gmock.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

// Exact functions, so that all devices give the same bits: one fused kernel of f32, and a lone op of each of two
// dtypes.
constexpr absl::string_view kMaps = R"(graph "g" {
  %x = input : f32[n,3]
  %y = input : f32[n,3]
  %i = input : i32[n,3]
  %sum = add(%x, %y)
  %product = multiply(%sum, %x)
  %least = minimum(%product, %y)
  %negative = negate(%i)
  output "least" = %least
  output "negative" = %negative
})";

// A reduction of integers, which any order gives.
constexpr absl::string_view kSums = R"(graph "g" {
  %i = input : i32[64,50]
  %square = multiply(%i, %i)
  %sum = reduce(%square) {kind = sum, dimensions = [1]}
  output "sum" = %sum
})";

// Ops that no pass fuses.
constexpr absl::string_view kLone = R"(graph "g" {
  %i = input : i64[5,6,1,7]
  %largest = reduce(%i) {kind = max, dimensions = [1, 2]}
  %all = reduce(%i) {kind = product, dimensions = [0, 1, 2, 3]}
  %count = iota() {type = f16[2,3,4], dimension = 1}
  %first = iota() {type = i32[9,2], dimension = 0}
  output "largest" = %largest
  output "all" = %all
  output "count" = %count
  output "first" = %first
})";

class CudaSessionTest : public CudaTest {
 protected:
  std::unique_ptr<Backend> Made(std::chrono::nanoseconds most_ahead = CudaBackendOptions().most_ahead) {
    auto backend = MakeCudaBackend({.libraries = libraries_.get(),
                                    .tensor_bytes = 16 * kMiB,
                                    .host_memory = host_memory_,
                                    .most_ahead = most_ahead});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }

  static RunTensor Argument(const ConcreteType& type, int64_t seed) {
    const auto values = std::make_shared<std::vector<int32_t>>(static_cast<size_t>(type.num_bytes() / 4));
    for (size_t i = 0; i < values->size(); ++i) {
      const int32_t number = static_cast<int32_t>((static_cast<int64_t>(i) * 37 + seed) % 101 - 50);
      const float real = static_cast<float>(number) / 8;
      (*values)[i] = number;
      if (type.dtype == DType::kF32) std::memcpy(&(*values)[i], &real, sizeof(real));
    }
    RunTensor argument{.type = type};
    argument.bytes = std::shared_ptr<const void>(values, values->data());
    return argument;
  }
  static absl::StatusOr<std::vector<std::string>> Results(Backend* backend, absl::string_view text,
                                                          const std::vector<ConcreteType>& types,
                                                          bool profile = false) {
    auto program = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend);
    if (!program.ok()) return program.status();
    RunRequest run;
    run.program = *program;
    run.profile = profile;
    for (size_t i = 0; i < types.size(); ++i) run.arguments.push_back(Argument(types[i], static_cast<int64_t>(i)));
    auto outcome = RunProgram(run, absl::ZeroDuration());
    if (!outcome.ok()) return outcome.status();
    EXPECT_EQ(outcome->profile.empty(), !profile);
    std::vector<std::string> results;
    for (const RunTensor& result : outcome->results) {
      results.emplace_back(static_cast<const char*>(result.bytes.get()), static_cast<size_t>(result.type.num_bytes()));
    }
    return results;
  }
  void ExpectAsOnCpu(Backend* backend, absl::string_view text, const std::vector<ConcreteType>& types) {
    const auto on_cpu = Results(cpu_.get(), text, types);
    const auto on_cuda = Results(backend, text, types);
    ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
    ASSERT_TRUE(on_cuda.ok()) << on_cuda.status();
    EXPECT_TRUE(*on_cpu == *on_cuda);
  }

  static std::vector<ConcreteType> MapTypes(int64_t n) {
    return {{.dtype = DType::kF32, .shape = {n, 3}},
            {.dtype = DType::kF32, .shape = {n, 3}},
            {.dtype = DType::kI32, .shape = {n, 3}}};
  }

  const std::shared_ptr<HostBufferPool> host_memory_ = HostBufferPool::Create(1 << 30, 0);
  const std::unique_ptr<Backend> cpu_ = MakeCpuBackend({.threads = 1});
};

const std::vector<ConcreteType> kSumTypes = {{.dtype = DType::kI32, .shape = {64, 50}}};

TEST_F(CudaSessionTest, ProgramsGiveTheBitsOfTheCpu) {
  hostCudaSet("DELAY_US", "1000");
  const std::unique_ptr<Backend> backend = Made();
  for (const int64_t n : {0, 1, 1000}) ExpectAsOnCpu(backend.get(), kMaps, MapTypes(n));
  ExpectAsOnCpu(backend.get(), kSums, kSumTypes);
  ExpectAsOnCpu(backend.get(), kLone, {{.dtype = DType::kI64, .shape = {5, 6, 1, 7}}});
  const auto profiled = Results(backend.get(), kSums, kSumTypes, true);
  ASSERT_TRUE(profiled.ok()) << profiled.status();
  EXPECT_EQ(*profiled, *Results(cpu_.get(), kSums, kSumTypes));
}

// Large maps are printed twice: for pointers at multiples of 16 bytes, and for views that begin anywhere.
TEST_F(CudaSessionTest, ViewsThatAreNotAlignedHaveTheirKernel) {
  const std::unique_ptr<Backend> backend = Made();
  const int64_t n = 300000;
  const std::vector<ConcreteType> types = MapTypes(n / 3);
  const auto on_cpu = Results(cpu_.get(), kMaps, types);
  ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
  const auto program = Compile(ParsedGraph(kMaps), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  for (const int64_t offset_bytes : {0, 4}) {
    RunRequest run;
    run.program = *program;
    for (size_t i = 0; i < types.size(); ++i) {
      const RunTensor host = Argument(types[i], static_cast<int64_t>(i));
      const std::shared_ptr<Buffer> buffer = *backend->Allocate(host.type.num_bytes() + offset_bytes);
      ASSERT_TRUE(backend
                      ->Write(buffer.get(), offset_bytes,
                              {static_cast<const char*>(host.bytes.get()), static_cast<size_t>(host.type.num_bytes())})
                      .ok());
      RunTensor argument{.type = host.type};
      argument.buffer = Buffer::View(buffer, offset_bytes, host.type.num_bytes());
      run.arguments.push_back(std::move(argument));
    }
    const auto outcome = RunProgram(run, absl::ZeroDuration());
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    for (size_t r = 0; r < outcome->results.size(); ++r) {
      const RunTensor& result = outcome->results[r];
      EXPECT_TRUE(absl::string_view(static_cast<const char*>(result.bytes.get()),
                                    static_cast<size_t>(result.type.num_bytes())) == (*on_cpu)[r])
          << offset_bytes << " " << r;
    }
  }
}

TEST_F(CudaSessionTest, EqualKernelsAreCompiledOnce) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compile(ParsedGraph(kSums), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const long compiled = hostCudaCalls("nvrtcCompileProgram");
  EXPECT_GT(compiled, 0);
  ExpectAsOnCpu(backend.get(), kSums, kSumTypes);
  EXPECT_EQ(hostCudaCalls("nvrtcCompileProgram"), compiled);
}

TEST_F(CudaSessionTest, KernelsOfAProgramAreCompiledAtOnce) {
  const auto at_once = [](int64_t tasks, absl::FunctionRef<void(int64_t)> fn) {
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < tasks; ++i) threads.emplace_back([&fn, i] { fn(i); });
    for (std::thread& thread : threads) thread.join();
  };
  const auto backend = MakeCudaBackend(
      {.libraries = libraries_.get(), .tensor_bytes = 16 * kMiB, .host_memory = host_memory_, .parallel = at_once});
  ASSERT_TRUE(backend.ok()) << backend.status();
  ExpectAsOnCpu(backend->get(), kLone, {{.dtype = DType::kI64, .shape = {5, 6, 1, 7}}});
}

// Sums of columns whose text is the same for any number of them that fills the blocks.
constexpr absl::string_view kManySums = R"(graph "g" {
  %i = input : i32[64,4096]
  %j = input : i32[64,8192]
  %few = reduce(%i) {kind = sum, dimensions = [0]}
  %many = reduce(%j) {kind = sum, dimensions = [0]}
  output "few" = %few
  output "many" = %many
})";

TEST_F(CudaSessionTest, KernelsOfEqualTextHaveTheirOwnGrids) {
  const std::unique_ptr<Backend> backend = Made();
  const long compiled = hostCudaCalls("nvrtcCompileProgram");
  ExpectAsOnCpu(backend.get(), kManySums,
                {{.dtype = DType::kI32, .shape = {64, 4096}}, {.dtype = DType::kI32, .shape = {64, 8192}}});
  EXPECT_EQ(hostCudaCalls("nvrtcCompileProgram"), compiled + 2)
      << "so the texts are one, for pointers that allow vectors and for others";
}

TEST_F(CudaSessionTest, OpsWithoutKernelsAreRefusedWithTheirNode) {
  const std::unique_ptr<Backend> backend = Made();
  OpDef missing = Def(CoreOp::kAdd);
  missing.op_class = OpClass::kExtension;
  missing.name = "example.Missing";
  const Attributes attrs(missing.attrs);
  SegmentInstruction segment{.bound = {.op = &missing, .attrs = &attrs}, .node = "lost"};
  segment.bound.results.push_back({.dtype = DType::kF32, .shape = {2}});
  const auto refused = backend->Prepare({&segment, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(ReasonOf(refused.status()), "UNSUPPORTED_ON_DEVICE");
  EXPECT_EQ(DetailOf(refused.status())->node, "lost");
}

TEST_F(CudaSessionTest, ARunThatIsNotWantedLeavesNothingOnItsWay) {
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compile(ParsedGraph(kSums), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  hostCudaSet("DELAY_US", "3000");
  RunRequest run;
  run.program = *program;
  run.arguments = {Argument(kSumTypes[0], 0)};
  const auto cancel = std::make_shared<CancelToken>();
  run.cancel = cancel;
  run.admit = [cancel] {
    cancel->Cancel();
    return absl::OkStatus();
  };
  EXPECT_EQ(ReasonOf(RunProgram(run, absl::ZeroDuration()).status()), "CANCELLED");
  EXPECT_EQ(backend->Memory().in_use_bytes, 0);
  ExpectAsOnCpu(backend.get(), kSums, kSumTypes);
}

// Fills its operand, and then lacks memory of the host.
class ThrowingKernel final : public Kernel {
 public:
  static constexpr int64_t kBytes = kMiB;
  explicit ThrowingKernel(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  absl::Status Enqueue(const Launch& launch) const override {
    EXPECT_EQ(context_->driver().cuMemsetD8Async(launch.operands[0], 7, kBytes, launch.stream), kCuSuccess);
    throw std::bad_alloc();
  }
  std::string Describe() const override { return "throwing"; }

 private:
  const std::shared_ptr<Context> context_;
};

TEST_F(CudaSessionTest, ARunThatAnExceptionEndsLeavesNothingOnItsWay) {
  const std::shared_ptr<Context> context = Entered();
  const Slot slot = 0;
  const SegmentInstruction segment{.bound = {.op = &Def(CoreOp::kExp)}, .operands = {&slot, 1}, .node = "fills"};
  const auto make = [&](const BoundInstruction&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return std::make_unique<ThrowingKernel>(context);
  };
  const auto program = CudaProgram::CreateOf({&segment, 1}, make);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto memory = *DevicePool::Create(context, {.limit_bytes = 16 * kMiB});
  Lanes lanes(context, libraries_.get(), 1);
  hostCudaSet("DELAY_US", "3000");
  for (int i = 0; i < 4; ++i) {  // the later ones at the same addresses, which become a graph
    const auto run = [&] {
      const std::shared_ptr<Buffer> buffer = *memory->Allocate(ThrowingKernel::kBytes);
      CudaSession session(context, memory, *lanes.Borrow(), std::chrono::hours(1));
      session.Run(**program, {buffer->address()}, {}, {}).IgnoreError();
    };
    EXPECT_THROW(run(), std::bad_alloc);
    EXPECT_EQ(memory->stats().in_use_bytes, 0);
    memory->Trim();  // this does not wait
    EXPECT_EQ(context->driver().cuCtxSynchronize(), kCuSuccess) << i;
    EXPECT_TRUE((*lanes.Borrow())->Finish().ok()) << i;
  }
  EXPECT_FALSE(context->is_lost());
}

TEST_F(CudaSessionTest, EachCallMayFailOnceAndNothingIsLeft) {
  int failures = 0;
  for (const char* function :
       {"nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBINSize", "nvrtcGetCUBIN", "cuDeviceGetAttribute",
        "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuStreamCreate"}) {
    const std::unique_ptr<Backend> backend = Made();
    for (long n = 1; n < 20; ++n) {
      const long calls = hostCudaCalls(function);
      hostCudaFail(function, n, function[0] == 'n' ? kNvrtcInvalidProgram : kCuUnknown);
      const auto results = Results(backend.get(), kSums, kSumTypes);
      hostCudaFail("", 0, 0);
      if (hostCudaCalls(function) - calls < n) break;
      EXPECT_EQ(results.status().code(), absl::StatusCode::kInternal) << function << " " << n;
      EXPECT_EQ(backend->Memory().in_use_bytes, 0) << function << " " << n;
      ++failures;
    }
    ExpectAsOnCpu(backend.get(), kSums, kSumTypes);
  }
  EXPECT_GE(failures, 10);
}

// Four segments that no pass joins.
constexpr absl::string_view kProfiled = R"(graph "g" {
  %i = input : i32[64,50]
  %sum = reduce(%i) {kind = sum, dimensions = [0]}
  %flat = reshape(%i) {shape = [3200]}
  %largest = reduce(%flat) {kind = max, dimensions = [0]}
  %swapped = transpose(%i) {permutation = [1, 0]}
  %double = add(%i, %i)
  output "sum" = %sum
  output "largest" = %largest
  output "swapped" = %swapped
  output "double" = %double
})";

TEST_F(CudaSessionTest, AProfiledRunWaitsForItsEndAloneAsAnyOther) {
  const std::unique_ptr<Backend> backend = Made(std::chrono::hours(1));
  const auto program = Compile(ParsedGraph(kProfiled), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  RunRequest run;
  run.program = *program;
  RunTensor& argument = run.arguments.emplace_back(Argument(kSumTypes[0], 0));
  argument.buffer = *backend->Import(argument.bytes.get(), argument.type.num_bytes(), nullptr);
  argument.bytes = nullptr;
  ASSERT_TRUE(RunProgram(run, absl::ZeroDuration()).ok());  // the times of its steps are known
  for (const bool profile : {false, true}) {
    run.profile = profile;
    const auto kernels = [&] { return hostCudaCalls("cuLaunchKernel"); };
    const auto waits = [&] { return hostCudaCalls("cuEventSynchronize"); };
    const long kernels_before = kernels(), waits_before = waits();
    long enqueued = 0;
    hostCudaSet("HOLD", "1");
    std::thread other([&] {
      while (waits() == waits_before) std::this_thread::yield();
      enqueued = kernels() - kernels_before;
      hostCudaSet("HOLD", "0");
    });
    const auto outcome = RunProgram(run, absl::ZeroDuration());
    other.join();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_GE(enqueued, 4);
    EXPECT_EQ(kernels() - kernels_before, enqueued);
    if (!profile) continue;
    ASSERT_GE(outcome->profile.size(), 4u);
    absl::Duration end = absl::ZeroDuration();
    for (const SegmentProfile& segment : outcome->profile) {
      EXPECT_GE(segment.start, end) << segment.kernel;
      EXPECT_GE(segment.duration, absl::ZeroDuration());
      EXPECT_FALSE(segment.nodes.empty());
      end = segment.start + segment.duration;
    }
    EXPECT_GT(end, absl::ZeroDuration());
    EXPECT_LE(end, outcome->run_time + absl::Milliseconds(1)) << "the device's clock rounds";
  }
}

// The lane has events of its own, on which results depend.
TEST_F(CudaSessionTest, EachCallOfAProfileMayFailOnceAndNothingIsLeft) {
  for (const char* function : {"cuEventCreate", "cuEventRecord", "cuEventElapsedTime"}) {
    SCOPED_TRACE(function);
    const std::unique_ptr<Backend> backend = Made();
    const auto want = Results(cpu_.get(), kSums, kSumTypes);
    int survived = 0;
    for (long n = 1; n < 40; ++n) {
      const long calls = hostCudaCalls(function);
      hostCudaFail(function, n, kCuUnknown);
      const auto results = Results(backend.get(), kSums, kSumTypes, true);
      hostCudaFail("", 0, 0);
      if (hostCudaCalls(function) - calls < n) break;
      EXPECT_EQ(backend->Memory().in_use_bytes, 0) << n;
      survived += results.ok();
      if (results.ok()) {
        EXPECT_EQ(*results, *want) << n;
      } else {
        EXPECT_EQ(results.status().code(), absl::StatusCode::kInternal) << n;
        EXPECT_NE(function, absl::string_view("cuEventElapsedTime"));
      }
    }
    EXPECT_GE(survived, 1) << "times fail no run";
    const auto results = Results(backend.get(), kSums, kSumTypes, true);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(*results, *want);
  }
}

TEST_F(CudaSessionTest, KernelsSayHowTheyAreSpread) {
  const std::unique_ptr<Backend> backend = Made();
  hostCudaSet("REGISTERS", "41");
  hostCudaSet("LOCAL_BYTES", "16");
  const auto told = [&](absl::string_view text) {
    const auto program = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend.get());
    EXPECT_TRUE(program.ok()) << program.status();
    return program.ok() ? ExplainProgram(**program) : "";
  };
  const std::string profiled = told(kProfiled);
  EXPECT_THAT(profiled, HasSubstr("    kernel  printed rows, 16 threads a row, 8 rows a block, 4 neighbours a thread, "
                                  "1 launch of 7 x 128 threads, "));
  EXPECT_THAT(profiled, HasSubstr("    kernel  printed map, 1 element a thread, 1 launch of "));
  EXPECT_THAT(profiled, HasSubstr("    kernel  copied, 1 launch of "));
  EXPECT_THAT(profiled, HasSubstr(" threads, 41 registers and 16 bytes of local memory a thread\n"));
  hostCudaSet("LOCAL_BYTES", "");
  const std::string softmax = told(R"(graph "g" {
    %x = input : f32[1000,64]
    %e = exp(%x)
    %s = reduce(%e) {kind = sum, dimensions = [0]}
    %b = broadcast_in_dim(%s) {shape = [1000, 64], broadcast_dimensions = [1]}
    %y = divide(%e, %b)
    output "y" = %y
  })");
  EXPECT_THAT(softmax, HasSubstr(" 2 passes, values kept in "));
  EXPECT_THAT(softmax, HasSubstr("41 registers, by vectors\n"));
  hostCudaSet("REGISTERS", "");
}

TEST_F(CudaSessionTest, TheCompilersWordsAreTold) {
  const std::shared_ptr<Context> context = Entered();
  auto compiler = KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  ASSERT_TRUE(compiler.ok());
  const absl::Status refused =
      (*compiler)->Compile({.source = "this is no kernel", .launches = {{.entry = "k"}}}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("NVRTC refuses the text of a kernel"));
}

}  // namespace
}  // namespace tensord::cuda
