#ifndef TENSORD_TESTS_E2E_SERVER_SERVER_PROCESS_H_
#define TENSORD_TESTS_E2E_SERVER_SERVER_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace tensord {

// A process of the server's binary, whose standard output is read line by line. It is killed with the object.
class Process {
 public:
  // Returns the value of the environment variable TENSORD_BINARY; empty if it is unset.
  static std::string BinaryPath();

  // Starts the server. Its standard error goes to the end of the file `errors`. `before` is a command that runs the
  // arguments after its own, in its process.
  explicit Process(const std::vector<std::string>& flags, const std::string& errors = "/dev/null",
                   const std::vector<std::string>& before = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Without its end; empty at the end of the output.
  std::string Line();
  std::string Rest();
  void Signal(int signal);
  pid_t pid() const { return process_; }
  // The exit status, or 128 + the signal that ended it.
  int Wait();
  // Tells whether it has ended after that time at the latest; Wait tells how.
  bool EndsWithin(std::chrono::milliseconds time) const;
  // The most of its memory that was resident since it began, or since ForgetPeak.
  int64_t PeakBytes() const;
  void ForgetPeak() const;

 private:
  pid_t process_ = -1;
  FILE* output_ = nullptr;
};

}  // namespace tensord

#endif  // TENSORD_TESTS_E2E_SERVER_SERVER_PROCESS_H_
