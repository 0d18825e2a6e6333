#ifndef TENSORD_TESTS_TESTLIB_RUNS_SETTINGS_MATRIX_H_
#define TENSORD_TESTS_TESTLIB_RUNS_SETTINGS_MATRIX_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tensord {

// One way in which everything must give the same results.
struct MatrixSetting {
  std::string name;  // in words
  int threads = 2;   // of the CPU backend's pool
  int64_t pool_bytes = int64_t{1} << 30;
  std::string jit = "auto";                      // as cpu.jit
  std::string epilogues = "auto";                // as cpu.epilogues
  int64_t chain_block_bytes = 0;                 // as cpu.chain_block_bytes
  std::vector<std::string> disabled_joins = {};  // as cpu.disabled_joins
  std::vector<std::string> disabled_passes = {};
  std::vector<std::string> enabled_passes = {};
  bool print_and_parse = false;  // every graph, before it is compiled
  bool collide = false;          // every program has the fingerprint of every other
  std::string isa = "auto";      // as cpu.isa
};

// The settings under which the conformance and property tests run: what is usual (with two threads, on any machine)
// first, then other threads and free buffers, machine code and epilogues everywhere and nowhere, the graph's text form,
// colliding fingerprints, the instruction sets below this machine's best, and every pass of the pipeline's own list
// switched by itself and all together.
const std::vector<MatrixSetting>& SettingsMatrix();

// The same setting of a server, each as --set takes it: "cpu.threads=1".
std::vector<std::string> ServerSettings(const MatrixSetting& setting);

// Returns the setting named TENSORD_SETTINGS in the environment, or the settings whose names hold it; all if it is not
// set.
std::vector<MatrixSetting> ChosenSettings();

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_SETTINGS_MATRIX_H_
