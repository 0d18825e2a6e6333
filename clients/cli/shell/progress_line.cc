#include "clients/cli/shell/progress_line.h"

#include <string>

namespace tensord::cli {
namespace {

constexpr char kClearLine[] = "\x1b[K";

}  // namespace

void ProgressLine::Show(absl::string_view text) {
  if (console_.progress_columns() == 0) return;
  // The last column stays free: a cursor behind it may stand in the next line.
  const absl::string_view shown = text.substr(0, console_.progress_columns() - 1);
  console_.err() << "\r" << std::string(shown) << kClearLine << std::flush;
  is_shown_ = true;
}

void ProgressLine::Clear() {
  if (is_shown_) console_.err() << "\r" << kClearLine << std::flush;
  is_shown_ = false;
}

}  // namespace tensord::cli
