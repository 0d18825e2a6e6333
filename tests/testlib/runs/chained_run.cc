#include "tests/testlib/runs/chained_run.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {

absl::StatusOr<ChainedRun> RunChained(Backend* backend, Graph graph, const std::vector<std::string>& disabled_passes,
                                      const std::vector<Literal>& arguments, bool donates) {
  const CompileSettings settings{.device = "test:0", .disabled_passes = disabled_passes};
  const ProgramKey key = MakeProgramKey(graph, settings);
  ASSIGN_OR_RETURN(const auto program, Compile(std::move(graph), settings, key.fingerprint, backend));
  std::vector<ConcreteType> types;
  for (const Literal& argument : arguments) types.push_back(argument.type());
  ASSIGN_OR_RETURN(const auto bound, program->Bind(types));
  ChainedRun run{.segments = bound->num_segments(), .temporary_bytes = bound->temporary_bytes()};
  for (const BoundProgram::Session& session : bound->sessions()) {
    for (const JoinCount& join : session.prepared->joins()) run.joins.push_back(join);
    for (const SegmentChain& chain : session.prepared->chains()) {
      run.chained += chain.end - chain.begin;
      absl::StrAppend(&run.kernels, session.prepared->DescribeKernel(chain.end - 1), "\n");
    }
  }
  const absl::InlinedVector<bool, 16> donated(arguments.size(), donates);
  ASSIGN_OR_RETURN(run.results, RunCompiled(*program, arguments, 0, donated));
  return run;
}

std::vector<Literal> ArgumentsOf(const Graph& graph, std::mt19937_64* random) {
  std::vector<Literal> arguments;
  for (const GraphInput& input : graph.inputs()) {
    ConcreteType type{.dtype = input.type.dtype};
    for (const Dim& dim : input.type.shape) type.shape.push_back(dim.size.constant());
    arguments.push_back(RandomLiteral(type, Values::kModest, random));
  }
  return arguments;
}

}  // namespace tensord
