// Mistakes planted into the backend's own kernels and into its calls: the host CUDA device shows each.
#include <csignal>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/testlib/numbers/linalg_properties.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

// What is done to the texts of kernels before they are compiled.
struct Planting {
  std::mutex mutex;
  std::string cut;      // the text's words that go
  long position = 0;    // of the occurrence, from 0, in the texts one after the other; -1: none
  std::string instead;  // in their place
  long seen = 0;        // occurrences
  decltype(Nvrtc::nvrtcCreateProgram) create = nullptr;
};
Planting& ThePlanting() {
  static auto* const planting = new Planting;
  return *planting;
}

NvrtcResult PlantAndCreate(NvrtcProgram* program, const char* source, const char* name, int num_headers,
                           const char* const* headers, const char* const* include_names) {
  Planting& planting = ThePlanting();
  std::string text = source;
  {
    std::lock_guard lock(planting.mutex);
    const bool plants = !planting.cut.empty();
    for (size_t at = text.find(planting.cut); plants && at != text.npos; at = text.find(planting.cut, at)) {
      if (planting.seen++ == planting.position) {
        text.replace(at, planting.cut.size(), planting.instead);
        at += planting.instead.size();
      } else {
        at += planting.cut.size();
      }
    }
  }
  return planting.create(program, text.c_str(), name, num_headers, headers, include_names);
}

class PlantedErrorsTest : public BesideCpuTest {
 protected:
  void SetUp() override {
    table_ = const_cast<Nvrtc*>(*libraries_->nvrtc());
    ThePlanting().create = std::exchange(table_->nvrtcCreateProgram, &PlantAndCreate);
  }
  void TearDown() override {
    ThePlanting().cut.clear();
    table_->nvrtcCreateProgram = ThePlanting().create;
    for (const char* setting : {"CHECK", "MULTIPROCESSORS"}) hostCudaSet(setting, "");
    ResetDevice();
    CudaTest::TearDown();
  }

  // Compiles and runs on a device of its own, with the position-th occurrence of `cut` replaced.
  absl::Status RunWith(absl::string_view cut, long position, absl::string_view instead, absl::string_view text,
                       const std::vector<Literal>& arguments) {
    Planting& planting = ThePlanting();
    planting.cut = std::string(cut);
    planting.position = position;
    planting.instead = std::string(instead);
    planting.seen = 0;
    const std::unique_ptr<Backend> backend = Made();
    return Run(backend.get(), text, arguments).status();
  }

  struct Found {
    long barriers = 0;
    long unseen = 0;  // barriers whose absence nothing showed
  };
  // Leaves out each barrier of a program's kernels, one at a time.
  Found LeaveOutBarriers(absl::string_view text, const std::vector<Literal>& arguments) {
    constexpr absl::string_view kBarrier = "__syncthreads();";
    hostCudaSet("CHECK", "1");
    hostCudaSet("MULTIPROCESSORS", "1");  // blocks that have more than one piece of work
    const long problems = hostCudaProblems();
    const absl::Status whole = RunWith(kBarrier, -1, kBarrier, text, arguments);
    EXPECT_TRUE(whole.ok()) << whole;
    EXPECT_EQ(hostCudaProblems(), problems);
    Found found{.barriers = ThePlanting().seen};
    for (long i = 0; i < found.barriers; ++i) {
      const long before = hostCudaProblems();
      const absl::Status run = RunWith(kBarrier, i, "", text, arguments);
      EXPECT_EQ(run.ok(), hostCudaProblems() == before) << run;
      if (run.ok()) {
        ++found.unseen;
      } else {
        EXPECT_EQ(ReasonOf(run), "DEVICE_LOST") << run;
        ResetDevice();
      }
    }
    return found;
  }

  Literal Any(DType dtype, Shape shape) { return RandomLiteral({dtype, std::move(shape)}, Values::kModest, &random_); }

  Nvrtc* table_ = nullptr;
};

TEST_F(PlantedErrorsTest, ABarrierThatIsMissing) {
  struct Program {
    const char* name;
    std::string text;
    std::vector<Literal> arguments;
    long seen;  // barriers, at least; others are of a text for other addresses, or there for a next piece of work
  };
  std::mt19937 random{3};
  const Program programs[] = {
      {"rows of a block",
       R"(graph "g" {
        %x = input : f32[32768,2]
        %m = reduce(%x) {kind = max, dimensions = [0]}
        %mb = broadcast_in_dim(%m) {shape = [32768, 2], broadcast_dimensions = [1]}
        %d = subtract(%x, %mb)
        %e = exp(%d)
        %s = reduce(%e) {kind = sum, dimensions = [0]}
        output "s" = %s
      })",
       {Any(DType::kF32, {32768, 2})},
       2},
      {"tiles of a transpose",
       R"(graph "g" {
        %x = input : f32[256,128]
        %y = transpose(%x) {permutation = [1, 0]}
        output "y" = %y
      })",
       {Any(DType::kF32, {256, 128})},
       1},
      {"tiles of a product",
       R"(graph "g" {
        %a = input : i32[70,33]
        %b = input : i32[33,40]
        %y = dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
        output "y" = %y
      })",
       {Any(DType::kI32, {70, 33}), Any(DType::kI32, {33, 40})},
       2},
      {"a small Cholesky factor",
       R"(graph "g" {
        %x = input : f64[9,9,3]
        %y = tensord.linalg.v1.Cholesky(%x)
        output "y" = %y
      })",
       {RandomPositiveDefinite(DType::kF64, {9, 9, 3}, &random)},
       3},
  };
  for (const Program& program : programs) {
    SCOPED_TRACE(program.name);
    const Found found = LeaveOutBarriers(program.text, program.arguments);
    EXPECT_GE(found.barriers - found.unseen, program.seen) << "of " << found.barriers;
  }
}

// Far past all that is mapped, which needs no checks to be seen.
TEST_F(PlantedErrorsTest, AWritePastTheEnd) {
  const std::string text = R"(graph "g" {
    %x = input : f32[1000]
    %y = exp(%x)
    output "y" = %y
  })";
  const std::vector<Literal> arguments = {Any(DType::kF32, {1000})};
  EXPECT_TRUE(RunWith("r0[", -1, "", text, arguments).ok());
  ASSERT_GT(ThePlanting().seen, 0);
  const absl::Status past = RunWith("r0[", 0, "r0[268435456 + ", text, arguments);
  EXPECT_EQ(ReasonOf(past), "DEVICE_LOST") << past;
  ResetDevice();
}

// Nothing is done on the device before the results are taken from where they would come to.
TEST_F(PlantedErrorsTest, AWaitThatIsMissing) {
  const std::string text = R"(graph "g" {
    %x = input : f32[1000]
    %y = exp(%x)
    output "y" = %y
  })";
  const std::vector<Literal> arguments = {Any(DType::kF32, {1000})};
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const auto right = RunCompiled(**program, arguments);
  ASSERT_TRUE(right.ok()) << right.status();
  auto* const driver = const_cast<Driver*>(&libraries_->driver());
  const Driver whole = *driver;
  driver->cuStreamSynchronize = [](CuStream) -> CuResult { return kCuSuccess; };
  driver->cuEventSynchronize = [](CuEvent) -> CuResult { return kCuSuccess; };
  driver->cuEventQuery = [](CuEvent) -> CuResult { return kCuSuccess; };
  hostCudaSet("HOLD", "1");
  const auto early = RunCompiled(**program, arguments);
  *driver = whole;
  hostCudaSet("HOLD", "");
  EXPECT_EQ(driver->cuCtxSynchronize(), kCuSuccess);
  EXPECT_TRUE(!early.ok() || !((*early)[0].bytes() == (*right)[0].bytes()));
}

TEST_F(PlantedErrorsTest, TheHostReadsATensorOfTheDevice) {
  const std::unique_ptr<Backend> backend = Made();
  const BufferPtr tensor = *backend->Import("abcd", 4, nullptr);
  EXPECT_EXIT(static_cast<void>(*static_cast<const volatile char*>(tensor->address())),
              testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace tensord::cuda
