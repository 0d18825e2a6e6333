#include "clients/cli/shell/interrupt.h"

namespace tensord::cli {
namespace {

std::atomic<bool> is_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void Note(int /*signal*/) { is_interrupted = true; }

}  // namespace

Interrupt::Interrupt() {
  is_interrupted = false;
  struct sigaction action = {};
  action.sa_handler = &Note;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, &former_);
}

Interrupt::~Interrupt() { sigaction(SIGINT, &former_, nullptr); }

const std::atomic<bool>& Interrupt::flag() { return is_interrupted; }

}  // namespace tensord::cli
