#ifndef TENSORD_TESTS_TESTLIB_PEERS_TENSORDCTL_CALL_H_
#define TENSORD_TESTS_TESTLIB_PEERS_TENSORDCTL_CALL_H_

#include <sstream>
#include <string>
#include <vector>

#include "clients/cli/shell/command.h"

namespace tensord::cli {

// The outcome of a command of tensordctl.
struct Outcome {
  int status;
  std::string out;
  std::string err;
};

// "tensordctl WORDS…", in this process.
inline Outcome CallTensordctl(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  Console console(out, err);
  const int status = Dispatch(words, console);
  return {status, out.str(), err.str()};
}

}  // namespace tensord::cli

#endif  // TENSORD_TESTS_TESTLIB_PEERS_TENSORDCTL_CALL_H_
