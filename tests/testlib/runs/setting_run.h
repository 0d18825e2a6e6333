#ifndef TENSORD_TESTS_TESTLIB_RUNS_SETTING_RUN_H_
#define TENSORD_TESTS_TESTLIB_RUNS_SETTING_RUN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/exec/backend/backend.h"
#include "engine/ir/graph.h"
#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/compiled_program.h"
#include "engine/runtime/programs/program_cache.h"
#include "tests/testlib/runs/settings_matrix.h"

namespace tensord {

// Compiles graphs under one setting of the matrix, for a backend that was made for it and that it owns. Colliding
// programs go through a cache in which all have one fingerprint. The programs must not outlive it. Confined to one
// thread. Compiling keeps the process to the setting's instruction set until another setting compiles: programs are run
// before.
class SettingRun {
 public:
  // For the native CPU.
  explicit SettingRun(const MatrixSetting& setting);
  SettingRun(MatrixSetting setting, std::unique_ptr<Backend> backend);

  const std::string& name() const { return setting_.name; }
  // RunCompiled (compiled_run.h) runs what it returns.
  absl::StatusOr<CompiledProgramPtr> CompileGraph(Graph graph, bool row_major);

 private:
  const MatrixSetting setting_;
  const std::unique_ptr<Backend> backend_;
  std::unique_ptr<ProgramCache> cache_;        // of colliding programs only
  std::unique_ptr<CompilePool> compile_pool_;  // last: its threads use the cache
};

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_SETTING_RUN_H_
