#ifndef TENSORD_TESTS_E2E_SERVER_BINARY_H_
#define TENSORD_TESTS_E2E_SERVER_BINARY_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensord {

// A server process of its own, on a unix socket of its own. The destructor stops it.
class ServerBinary {
 public:
  // The path that the environment variable TENSORD_BINARY names; empty if it is unset: tests skip then.
  static std::string Path();

  // Starts it, and returns when it listens. UNAVAILABLE with what it printed where it does not.
  static absl::StatusOr<std::unique_ptr<ServerBinary>> Start(const std::vector<std::string>& flags = {});
  ~ServerBinary();

  const std::string& target() const { return target_; }
  // Sends SIGTERM, waits for the end, and returns the exit status, or -1 if a signal ended it.
  int Stop();
  // Sends SIGKILL, and waits for the end.
  void Kill();

 private:
  ServerBinary() = default;

  // Waits for the end after a signal, and returns its status as waitpid does.
  int End(int signal);

  std::string folder_;
  std::string target_;
  pid_t process_ = -1;
  int output_ = -1;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_BINARY_H_
