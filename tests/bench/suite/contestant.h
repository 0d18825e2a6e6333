#ifndef TENSORD_TESTS_BENCH_SUITE_CONTESTANT_H_
#define TENSORD_TESTS_BENCH_SUITE_CONTESTANT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/exec/backend/backend.h"
#include "engine/runtime/compile/compiled_program.h"
#include "engine/tensor/literal.h"
#include "tests/bench/suite/workloads.h"

namespace tensord {

// Inputs of a graph as its workload wants them, the same each time.
std::vector<std::shared_ptr<const Literal>> MakeInputs(const Workload& workload, const Graph& graph);

// A compiled graph with arguments in the device's memory. The backend must outlive it. Not thread-safe.
class Contestant {
 public:
  // Makes a contestant. A run may write over the arguments of inputs named in `state`; the result of that name is the
  // next run's argument.
  static absl::StatusOr<Contestant> Create(Graph graph, std::vector<std::string> disabled_passes, Backend* backend,
                                           const std::vector<std::shared_ptr<const Literal>>& inputs,
                                           const std::vector<std::string>& state);

  const CompiledProgram& program() const { return *program_; }
  const BoundProgram& bound() const { return *bound_; }
  double compile_ms() const { return compile_ms_; }

  absl::StatusOr<std::vector<BufferPtr>> Run();
  // Milliseconds of a run and of releasing what it gave.
  absl::StatusOr<double> RunTimed();

 private:
  Contestant() = default;
  absl::Status CopyArgument(const Literal& input, Backend* backend);

  CompiledProgramPtr program_;
  std::shared_ptr<const BoundProgram> bound_;
  std::shared_ptr<const BufferPlan> plan_;  // null: of a run that writes over no argument
  std::vector<BufferPtr> arguments_;
  std::vector<size_t> successors_;  // by result: the argument that it becomes, or kNoArgument
  double compile_ms_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SUITE_CONTESTANT_H_
