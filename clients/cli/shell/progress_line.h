#ifndef TENSORD_CLIENTS_CLI_SHELL_PROGRESS_LINE_H_
#define TENSORD_CLIENTS_CLI_SHELL_PROGRESS_LINE_H_

#include "absl/strings/string_view.h"
#include "clients/cli/shell/console.h"

namespace tensord::cli {

// A line of standard error that tells how far a command is, written over each time and gone in the end. Nothing if
// standard error is no terminal. The console must outlive it. Confined to the thread that prints.
class ProgressLine {
 public:
  explicit ProgressLine(Console& console) : console_(console) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows the beginning of a text, as much as fits into the line.
  void Show(absl::string_view text);
  // Removes the line, which is to be done before anything else is printed.
  void Clear();

 private:
  Console& console_;
  bool is_shown_ = false;
};

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_PROGRESS_LINE_H_
