#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_LINES_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_LINES_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/prelude.h"

namespace tensord {

// The source of kernels while it grows: indented lines, and the prelude that they need.
class CudaLines {
 public:
  CudaPrelude& prelude() { return prelude_; }

  template <typename... Parts>
  void Line(const Parts&... parts) {
    absl::StrAppend(&text_, std::string(2 * depth_, ' '), parts..., "\n");
  }
  void Raw(absl::string_view line) { absl::StrAppend(&text_, line, "\n"); }  // a directive: not indented
  // Writes a line that opens a block, and the brace that closes it.
  template <typename... Parts>
  void Open(const Parts&... parts) {
    Line(parts..., " {");
    ++depth_;
  }
  void Close() {
    --depth_;
    Line("}");
  }

  // Returns the prelude and the lines.
  std::string Source() const { return absl::StrCat(prelude_.Text(), text_); }

 private:
  CudaPrelude prelude_;
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_LINES_H_
