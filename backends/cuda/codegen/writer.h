#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_WRITER_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_WRITER_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// The source of a micro program's kernels while it grows: lines that know the program, which is
// borrowed. Names: operand k is "t<k>", result k "r<k>", value k "v<k>".
class CudaWriter {
 public:
  CudaWriter(const MicroProgram& program, const CudaOptions& options);

  const MicroProgram& program() const { return program_; }
  const CudaOptions& options() const { return options_; }
  CudaPrelude& prelude() { return lines_.prelude(); }

  // Do the same as CudaLines.
  template <typename... Parts>
  void Line(const Parts&... parts) {
    lines_.Line(parts...);
  }
  void Raw(absl::string_view line) { lines_.Raw(line); }
  template <typename... Parts>
  void Open(const Parts&... parts) {
    lines_.Open(parts...);
  }
  void Close() { lines_.Close(); }

  // The first line of an entry, which Close ends. With scratch memory it has a parameter `scratch` more.
  void OpenEntry(const CudaLaunch& launch, bool has_scratch);
  // Returns the block's number in the entry that is open, over all parts of its launch.
  absl::string_view block() const { return block_; }

  // "const f32 v3 = …;". `address` is the element's index of a load or an iota, and "" for other kinds.
  void Value(int32_t index, const std::string& address);
  // "r0[address] = v3;"
  void StoreResult(size_t result, const std::string& address);
  // The uniform values that are needed, by number.
  void UniformValues(const std::vector<bool>& needed);
  // Stores the uniform results, by one thread of all that run the entry.
  void StoreUniformResults();

  // Result `result`'s instruction.
  const MicroInstruction& Computed(size_t result) const {
    return program_.instructions[static_cast<size_t>(program_.results[result].value)];
  }
  // Tells whether some result has elements at that level.
  bool HasResults(MicroLevel level) const;

  // Returns the prelude and the entries.
  std::string Source() const { return lines_.Source(); }

 private:
  const MicroProgram& program_;
  const CudaOptions& options_;
  CudaLines lines_;
  absl::string_view block_;
};

// Returns by number the values that `targets` are computed from, themselves included. Operands of a reduction do not
// count.
std::vector<bool> NeededValues(const MicroProgram& program, const std::vector<int32_t>& targets);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_WRITER_H_
