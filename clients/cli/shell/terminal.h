#ifndef TENSORD_CLIENTS_CLI_SHELL_TERMINAL_H_
#define TENSORD_CLIENTS_CLI_SHELL_TERMINAL_H_

#include <signal.h>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tensord::cli {

// Without a terminal there is room for everything.
struct ScreenSize {
  size_t rows = std::numeric_limits<size_t>::max();
  size_t columns = std::numeric_limits<size_t>::max();
};

// Returns the size of a terminal at the moment; without bounds if the descriptor is none.
ScreenSize ScreenSizeOf(int descriptor);

// Tells whether a descriptor is a terminal on which lines can be written over; TERM=dumb names one that cannot.
bool IsScreen(int descriptor);

// Standard output, and the keys typed on standard input, if they are the user's terminal. While it exists, keys come at
// once and are not shown; a signal that ends the process puts the terminal back first. One at a time.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Tells whether standard output is a terminal, which can be written over.
  bool is_screen() const { return is_screen_; }
  // Returns the size at the moment.
  ScreenSize Size() const;
  // Returns the text that replaces the lines on the screen by these.
  static std::string Redrawn(const std::vector<std::string>& lines);
  // Waits, and returns early, true, once this key is typed; asked for no time, it takes the keys that are there. Other
  // keys are dropped, and end the wait.
  bool WaitForKey(char key, absl::Duration duration);

 private:
  const bool is_screen_;
  bool has_keys_ = false;  // which come at once
  bool is_closed_ = false;
  bool has_handlers_ = false;
  std::array<struct sigaction, 4> former_actions_ = {};
};

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_TERMINAL_H_
