#include "clients/cli/shell/interrupt.h"

namespace tensord::cli {
namespace {

std::atomic<bool> is_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

struct sigaction second_action;

// What Ctrl-C did before, it does the second time.
void Note(int /*signal*/) {
  is_interrupted = true;
  sigaction(SIGINT, &second_action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  is_interrupted = false;
  struct sigaction action = {};
  action.sa_handler = &Note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, nullptr, &second_action);
  // A shell's background job ignores Ctrl-C; a second signal of this kind is meant all the same.
  if (second_action.sa_handler == SIG_IGN) second_action.sa_handler = SIG_DFL;
  sigaction(SIGINT, &action, &before_);
}

Interrupt::~Interrupt() { sigaction(SIGINT, &before_, nullptr); }

const std::atomic<bool>& Interrupt::flag() { return is_interrupted; }

}  // namespace tensord::cli
