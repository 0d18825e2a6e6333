#ifndef TENSORD_CLIENTS_CLI_SHELL_INTERRUPT_H_
#define TENSORD_CLIENTS_CLI_SHELL_INTERRUPT_H_

#include <signal.h>

#include <atomic>

namespace tensord::cli {

// A handler of Ctrl-C while it exists: the first Ctrl-C sets a flag instead of ending the process; the second does as
// Ctrl-C did before, which ends it. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static const std::atomic<bool>& flag();

 private:
  struct sigaction before_ = {};
};

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_INTERRUPT_H_
