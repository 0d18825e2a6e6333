#ifndef TENSORD_TESTS_TESTLIB_RUNS_COMPILED_RUN_H_
#define TENSORD_TESTS_TESTLIB_RUNS_COMPILED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/runtime/compile/compiled_program.h"
#include "engine/tensor/literal.h"

namespace tensord {

struct CompiledRunOptions {
  Backend* backend = nullptr;
  bool row_major = false;  // arguments and results are handed over as a row-major client's bytes
  std::vector<std::string> disabled_passes = {};
  std::vector<std::string> enabled_passes = {};
};

// Compiles an untyped graph for its backend, as the server does.
absl::StatusOr<CompiledProgramPtr> CompileAlone(Graph graph, const CompiledRunOptions& options);

// Compiles an untyped graph and runs it once through the same steps as the server. Literals are column-major on both
// sides, whatever the options say about the bytes in between.
absl::StatusOr<std::vector<Literal>> CompileAndRun(Graph graph, const CompiledRunOptions& options,
                                                   const std::vector<Literal>& arguments);

// Runs the program, on arguments handed over at `misalignment` bytes past a multiple of 64. It may write over the
// arguments marked in `donated`. It ends with the refusal of `check`.
absl::StatusOr<std::vector<Literal>> RunCompiled(const CompiledProgram& program, const std::vector<Literal>& arguments,
                                                 int64_t misalignment = 0, absl::Span<const bool> donated = {},
                                                 const RunCheck& check = nullptr);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_COMPILED_RUN_H_
