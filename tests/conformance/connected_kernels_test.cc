// Random graphs of kernels that feed each other, of sizes from 0 to 300: for any sizes, for these sizes and as a
// constant, under settings that join and cut kernels wherever they can and for every instruction set of the machine,
// against the reference evaluator.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs. A failure is made small and printed; a
// crash tells its seed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/machine/instruction_set.h"
#include "engine/exec/program/program_passes.h"
#include "tests/testlib/property/agreement.h"
#include "tests/testlib/property/connected_case.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/setting_run.h"
#include "tests/testlib/runs/settings_matrix.h"

namespace tensord::property {
namespace {

std::vector<std::unique_ptr<SettingRun>> Settings() {
  const MatrixSetting joined = {
      .name = "all that can be joined", .threads = 3, .jit = "on", .epilogues = "on", .chain_block_bytes = 512};
  MatrixSetting without_code = joined, without_passes = joined;
  without_code.name = "all that can be joined, without code";
  without_code.jit = "off";
  without_passes.name = "all that can be joined, without any pass";
  without_passes.disabled_passes = PassNames();
  std::vector<MatrixSetting> settings = {MatrixSetting{.name = "default"}, joined, without_code, without_passes};
  std::vector<CpuIsa> isas = MachineCpuIsas();
  isas.pop_back();  // the best is the others'
  for (const CpuIsa isa : isas) {
    settings.push_back(joined);
    settings.back().name = absl::StrCat("all that can be joined, by ", Name(isa));
    settings.back().isa = std::string(Name(isa));
  }
  std::vector<std::unique_ptr<SettingRun>> runs;
  for (const MatrixSetting& setting : settings) runs.push_back(std::make_unique<SettingRun>(setting));
  return runs;
}

// The seed whose graph runs, in digits, for who handles a crash.
class SeedOnCrash {
 public:
  SeedOnCrash() {
    for (const int signal : {SIGFPE, SIGSEGV, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, &Tell);
  }
  ~SeedOnCrash() {
    for (const int signal : {SIGFPE, SIGSEGV, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, SIG_DFL);
  }
  void set(uint64_t seed) {
    text_ = absl::StrCat("crashed at TENSORD_SEED=", seed, " TENSORD_GRAPHS=1\n");
    told_ = &text_;
  }

 private:
  static void Tell(int signal) {
    const std::string* const text = told_.load();
    if (text != nullptr && write(STDERR_FILENO, text->data(), text->size()) < 0) _exit(1);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }

  static inline std::atomic<const std::string*> told_{nullptr};
  std::string text_;
};

// One graph, in all its forms, under every setting.
class ConnectedKernels : public testing::Test {
 protected:
  void Check(uint64_t seed) {
    const RandomCase any_size = MakeConnectedCase(seed);
    const absl::StatusOr<Wanted> wanted = WantedOf(any_size.graph, any_size.arguments);
    ASSERT_TRUE(wanted.ok()) << "seed " << seed << ": " << wanted.status();
    CheckForm(seed, "any size", any_size, *wanted);
    for (size_t set = 0; set < any_size.arguments.size(); ++set) {
      const std::vector<Literal>& arguments = any_size.arguments[set];
      CheckForm(seed, "one size", {SizedFor(any_size.graph, arguments), {arguments}}, {(*wanted)[set]});
    }
    const std::vector<Literal>& first = any_size.arguments[0];
    CheckForm(seed, "constant", {ConstantOf(any_size.graph, first), {{}}}, {(*wanted)[0]});
  }

  void CheckForm(uint64_t seed, const std::string& form, const RandomCase& random_case, const Wanted& wanted) {
    const bool row_major = seed % 2 == 1;
    for (const std::unique_ptr<SettingRun>& setting : settings_) {
      if (HasFatalFailure()) return;
      const std::string problem = Disagreement(*setting, row_major, random_case.graph, random_case.arguments, wanted);
      ASSERT_EQ(problem, "") << "TENSORD_SEED=" << seed << " TENSORD_GRAPHS=1, " << form << ", " << setting->name()
                             << (row_major ? ", row-major\n" : "\n") << Explained(*setting, row_major, random_case);
    }
  }

  const std::vector<std::unique_ptr<SettingRun>> settings_ = Settings();
};

TEST_F(ConnectedKernels, AgreeInEveryForm) {
  const SeedRange seeds = ChosenSeeds({.first = 0, .count = 4000});
  std::cout << seeds.count << " graphs from TENSORD_SEED=" << seeds.first << std::endl;
  SeedOnCrash crash;
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    crash.set(seed);
    Check(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tensord::property
