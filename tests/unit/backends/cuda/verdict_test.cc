// Kernels that look for faults in their operands, and what the session says then.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/compile/cubin_store.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/cuda_session.h"
#include "backends/cuda/kernels/verdict.h"
#include "engine/base/refusal.h"
#include "engine/ops/core_ops.h"
#include "gmock/gmock.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

constexpr int64_t kElements = 200;

// Finds negative elements, and writes all over its workspace.
class JudgingKernel final : public Kernel {
 public:
  explicit JudgingKernel(std::shared_ptr<const LoadedKernel> loaded) : loaded_(std::move(loaded)) {}

  absl::Status Enqueue(const Launch& launch) const override {
    EXPECT_EQ(launch.workspace % 256, 0u);
    return loaded_->Enqueue(launch.stream, {launch.operands[0], launch.workspace, launch.verdict});
  }
  int64_t workspace_bytes() const override { return 4 * kElements + 1; }
  std::string Describe() const override { return "judging"; }
  bool judges() const override { return true; }
  absl::Status Refused(const Verdict& verdict) const override {
    if (verdict.reason == 7) return absl::OkStatus();
    return Refuse(Refusal::kShapeMismatch, absl::StrCat("element ", verdict.batch, ", reason ", verdict.reason));
  }

 private:
  const std::shared_ptr<const LoadedKernel> loaded_;
};

class VerdictTest : public CudaTest {
 protected:
  // Runs two judging kernels, on operands whose elements are 1, but for the given ones. Returns the end's status.
  absl::Status Run(const std::vector<std::pair<int, int>>& first, const std::vector<std::pair<int, int>>& second) {
    const std::shared_ptr<Context> context = Entered();
    auto compiler = *KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
    const KernelText text{
        .source = R"(extern "C" __global__ void judge(const int* x, int* work, unsigned long long* verdict) {
  const int i = threadIdx.x;
  work[i] = x[i];
  if (x[i] < 0) atomicMin(verdict, (unsigned long long)i << 24 | (unsigned)-x[i]);
})",
        .launches = {{.entry = "judge", .threads_per_block = kElements}}};
    const auto make = [&](const BoundInstruction&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
      auto loaded = compiler->Compile(text);
      if (!loaded.ok()) return loaded.status();
      return std::make_unique<JudgingKernel>(*loaded);
    };
    const Slot slots[] = {0, 1};
    const SegmentInstruction segments[] = {
        {.bound = {.op = &Def(CoreOp::kExp)}, .operands = {&slots[0], 1}, .node = "early"},
        {.bound = {.op = &Def(CoreOp::kLog)}, .operands = {&slots[1], 1}, .node = "late"}};
    auto program = CudaProgram::CreateOf(segments, make);
    if (!program.ok()) return program.status();
    auto memory = *DevicePool::Create(context, {.limit_bytes = kMiB, .limit_name = "limit"});
    Lanes lanes(context, libraries_.get(), 1);
    std::vector<std::shared_ptr<Buffer>> buffers;
    std::vector<void*> addresses;
    Lanes::Loan lane = *lanes.Borrow();
    for (const auto* faults : {&first, &second}) {
      std::vector<int> values(kElements, 1);
      for (const auto& [place, value] : *faults) values[static_cast<size_t>(place)] = value;
      buffers.push_back(*memory->Allocate(4 * kElements));
      addresses.push_back(buffers.back()->address());
      EXPECT_TRUE(lane->Upload(reinterpret_cast<CuAddress>(addresses.back()),
                               reinterpret_cast<const char*>(values.data()), 4 * kElements)
                      .ok());
    }
    CudaSession session(context, memory, std::move(lane), /*most_ahead=*/std::chrono::hours(1));
    const absl::Status run = session.Run(**program, addresses, {}, {});
    EXPECT_TRUE(run.ok()) << run;
    const absl::Status finished = session.Finish();
    buffers.clear();
    EXPECT_EQ(memory->stats().in_use_bytes, 0);
    return finished;
  }
};

TEST_F(VerdictTest, TheFirstFaultOfTheFirstKernelIsRefusedWithItsNode) {
  hostCudaSet("DELAY_US", "2000");
  EXPECT_TRUE(Run({}, {}).ok());
  for (const char* order : {"forward", "reverse"}) {
    hostCudaSet("ORDER", order);
    const absl::Status late = Run({}, {{150, -3}, {20, -2}});
    EXPECT_EQ(ReasonOf(late), "SHAPE_MISMATCH");
    EXPECT_THAT(std::string(late.message()), HasSubstr("element 20, reason 2"));
    EXPECT_EQ(DetailOf(late)->node, "late");
    EXPECT_EQ(DetailOf(late)->op, "log");
  }
  hostCudaSet("ORDER", "");
  EXPECT_EQ(DetailOf(Run({{199, -1}}, {{0, -1}}))->node, "early");
  EXPECT_TRUE(Run({{5, -7}}, {}).ok()) << "the kernel lets that pass";
  EXPECT_EQ(DetailOf(Run({{5, -7}}, {{6, -1}}))->node, "late");
}

}  // namespace
}  // namespace tensord::cuda
