#include "engine/runtime/programs/discarded_programs.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "engine/runtime/compile/compiler.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

CompiledProgramPtr Program(Backend* backend) {
  Graph graph;
  Node node{.name = "k", .op = &Def(CoreOp::kConstant), .attrs = Attributes(Def(CoreOp::kConstant).attrs)};
  node.attrs.Set("value", std::make_shared<const Literal>(*Literal::Create({.dtype = DType::kBool, .shape = {7}})));
  graph.AddOutput("y", graph.AddNode(std::move(node)));
  return *Compile(std::move(graph), {.device = "hidden:0"}, Fingerprint(), backend);
}

TEST(DiscardedProgramsTest, LetsGoAndReturnsMemoryOnceItIsMuch) {
  HiddenMemoryBackend backend;
  std::atomic<int> returned{0};
  DiscardedPrograms discarded([&returned] { ++returned; });
  const std::weak_ptr<const CompiledProgram> small = [&] {
    CompiledProgramPtr program = Program(&backend);
    std::weak_ptr<const CompiledProgram> weak = program;
    discarded.Add(std::move(program), 1000);
    return weak;
  }();
  while (!small.expired()) std::this_thread::yield();
  EXPECT_EQ(returned, 0) << "a thousand bytes are not worth it";
  discarded.Add(Program(&backend), DiscardedPrograms::kReturnedBytes);
  while (returned == 0) std::this_thread::yield();
  discarded.Add(Program(&backend), 1000);
  EXPECT_EQ(returned, 1) << "counted anew";
}

TEST(DiscardedProgramsTest, ManyReturnsAreOne) {
  HiddenMemoryBackend backend;
  std::atomic<int> returned{0};
  {
    DiscardedPrograms discarded([&returned] { ++returned; }, std::chrono::hours(1));
    const std::weak_ptr<const CompiledProgram> last = [&] {
      std::weak_ptr<const CompiledProgram> weak;
      for (int i = 0; i < 50; ++i) {
        CompiledProgramPtr program = Program(&backend);
        weak = program;
        discarded.Add(std::move(program), DiscardedPrograms::kReturnedBytes);
      }
      return weak;
    }();
    while (!last.expired()) std::this_thread::yield();
  }
  EXPECT_EQ(returned, 1) << "the others wait an hour, or for the end";
  DiscardedPrograms discarded([&returned] { ++returned; }, std::chrono::milliseconds(1));
  discarded.Add(Program(&backend), DiscardedPrograms::kReturnedBytes);
  while (returned < 2) std::this_thread::yield();
  discarded.Add(Program(&backend), DiscardedPrograms::kReturnedBytes);
  while (returned < 3) std::this_thread::yield();
  discarded.LetGo(DiscardedPrograms::kReturnedBytes);
  while (returned < 4) std::this_thread::yield();
}

TEST(DiscardedProgramsTest, WhoStillRunsOneKeepsIt) {
  HiddenMemoryBackend backend;
  const CompiledProgramPtr running = Program(&backend);
  {
    DiscardedPrograms discarded;
    discarded.Add(running, 1000);
  }
  EXPECT_EQ(running.use_count(), 1);
}

}  // namespace
}  // namespace tensord
