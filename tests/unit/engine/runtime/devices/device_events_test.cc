#include "engine/runtime/devices/device_events.h"

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

using ::testing::Each;

class DeviceEventsTest : public testing::Test {
 protected:
  CompiledProgramPtr CompileText(absl::string_view text) {
    absl::StatusOr<Graph> graph = ParseGraph(text, CoreRegistry());
    const auto program = Compile(*std::move(graph), {.device = "gated:0"}, Fingerprint(), &backend_);
    EXPECT_TRUE(program.ok()) << program.status();
    return *program;
  }

  absl::Status Run(const CompiledProgramPtr& program) {
    const auto bytes = std::make_shared<std::vector<float>>(2, 1.0f);
    RunTensor argument{.type = {.dtype = DType::kF32, .shape = {2}}};
    argument.bytes = std::shared_ptr<const void>(bytes, bytes->data());
    RunRequest request{.program = program, .arguments = {std::move(argument)}};
    request.deadline = deadline_;
    request.events = &events_;
    return RunProgram(request, absl::ZeroDuration()).status();
  }

  int64_t Faults(DeviceFault fault) const { return events_.counts().faults[static_cast<size_t>(fault)]; }

  GatedBackend backend_;
  DeviceEvents events_;
  absl::Time deadline_ = absl::InfiniteFuture();
  CompiledProgramPtr two_ = CompileText(R"(graph "two" {
    %x = input : f32[2]
    %y = add(%x, %x)
    %z = multiply(%y, %x)
    output "z" = %z
  })");
};

TEST_F(DeviceEventsTest, CountsSegmentsOfRunsThatSucceed) {
  ASSERT_TRUE(Run(two_).ok());
  ASSERT_TRUE(Run(two_).ok());
  EXPECT_EQ(events_.counts().segments, 4);
  backend_.fault = Refuse(Refusal::kInternal, "a test's");
  ASSERT_FALSE(Run(two_).ok());
  EXPECT_EQ(events_.counts().segments, 4);
}

TEST_F(DeviceEventsTest, AFaultIsNotWhatTheRequestIsToBlameFor) {
  backend_.fault = Refuse(Refusal::kOutOfMemory, "a test's");
  EXPECT_FALSE(Run(two_).ok());
  backend_.fault = Refuse(Refusal::kUnsupportedOnDevice, "a test's");
  EXPECT_FALSE(Run(two_).ok());
  backend_.fault = absl::OkStatus();
  deadline_ = absl::InfinitePast();
  EXPECT_EQ(Run(two_).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(events_.counts().faults, Each(0));
  deadline_ = absl::InfiniteFuture();
  backend_.fault = Refuse(Refusal::kInternal, "a test's");
  EXPECT_FALSE(Run(two_).ok());
  EXPECT_EQ(Faults(DeviceFault::kInternal), 1);
  EXPECT_TRUE(events_.counts().is_up) << "one program may be at fault";
}

TEST_F(DeviceEventsTest, WhatALibraryThrowsIsAFault) {
  backend_.before_run = [] { throw std::bad_alloc(); };
  EXPECT_THROW(Run(two_).IgnoreError(), std::bad_alloc);
  EXPECT_EQ(Faults(DeviceFault::kInternal), 1);
}

TEST_F(DeviceEventsTest, ADeviceThatLostDataIsDownUntilARunSucceeds) {
  EXPECT_TRUE(events_.counts().is_up);
  backend_.fault = absl::DataLossError("a test's");
  EXPECT_FALSE(Run(two_).ok());
  EXPECT_FALSE(events_.counts().is_up);
  EXPECT_EQ(Faults(DeviceFault::kDataLoss), 1);
  backend_.fault = absl::InternalError("a test's");
  EXPECT_FALSE(Run(two_).ok());
  EXPECT_FALSE(events_.counts().is_up);
  backend_.fault = absl::OkStatus();
  EXPECT_TRUE(Run(two_).ok());
  EXPECT_TRUE(events_.counts().is_up);
}

}  // namespace
}  // namespace tensord
