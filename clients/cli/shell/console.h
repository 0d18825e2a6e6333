#ifndef TENSORD_CLIENTS_CLI_SHELL_CONSOLE_H_
#define TENSORD_CLIENTS_CLI_SHELL_CONSOLE_H_

#include <cstddef>
#include <limits>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"

namespace tensord::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // refused, failed, or not healthy
inline constexpr int kExitUsage = 2;   // the command line itself is wrong

// The output of a command: results to `out`, complaints to `err`. Both must outlive the console. With JSON, results are
// one JSON object on `out`, and so is a failure.
class Console {
 public:
  Console(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  void set_json(bool is_json) { is_json_ = is_json; }
  bool is_json() const { return is_json_; }
  std::ostream& err() { return err_; }
  // Columns of a line on `err` that is written over; 0: there is no terminal to do so.
  void set_progress_columns(size_t columns) { progress_columns_ = columns; }
  size_t progress_columns() const { return progress_columns_; }
  // Columns of `out`; no bound without a terminal.
  void set_columns(size_t columns) { columns_ = columns; }
  size_t columns() const { return columns_; }
  std::ostream& out() { return out_; }

  // Prints a result for people. It may have words of others, a server's or those of a file.
  void Print(absl::string_view text);
  // Prints a message as JSON, and returns kExitOk.
  int PrintJson(const google::protobuf::Message& message);
  // The same in one line, for commands that print several messages.
  int PrintJsonLine(const google::protobuf::Message& message);
  // Says why, with all that the server knows, and returns kExitFailed.
  int Fail(const absl::Status& status) { return Fail(status, {}); }
  // The same with a result that is there in part; the failure is its field `error`.
  int Fail(const absl::Status& status, google::protobuf::Struct result);
  // Prints a line below a failure.
  void Hint(absl::string_view line);
  // One line that goes with a result.
  void Complain(absl::string_view line);
  // Reports the fault of the command line and where help is, and returns kExitUsage.
  int Usage(absl::string_view command, absl::string_view message);

 private:
  std::ostream& out_;
  std::ostream& err_;
  bool is_json_ = false;
  size_t columns_ = std::numeric_limits<size_t>::max();
  size_t progress_columns_ = 0;
};

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_CONSOLE_H_
