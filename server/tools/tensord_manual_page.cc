// Prints tensord(8), the manual page of the server, around the text of --help.
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/config/command_line.h"

namespace tensord::server {
namespace {

// As it stands, which is how the help is laid out.
std::string AsItStands(const std::string& text) {
  std::string lines = ".nf\n";
  for (absl::string_view line : absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n')) {
    const std::string escaped = absl::StrReplaceAll(line, {{"\\", "\\e"}, {"-", "\\-"}});
    absl::StrAppend(&lines, absl::StartsWith(escaped, ".") ? "\\&" : "", escaped, "\n");
  }
  return absl::StrCat(lines, ".fi\n");
}

std::string Page() {
  return absl::StrCat(".TH TENSORD 8 \"\" \"tensord ", TENSORD_VERSION,
                      "\"\n.SH NAME\ntensord \\- evaluates tensor graphs for clients over gRPC\n"
                      ".SH SYNOPSIS\n.B tensord\n[\\fIFLAG\\fR...]\n.SH DESCRIPTION\n",
                      AsItStands(HelpText()), ".SH SEE ALSO\n.BR tensordctl (1)\n");
}

}  // namespace
}  // namespace tensord::server

int main() {
  std::fputs(tensord::server::Page().c_str(), stdout);
  return 0;
}
