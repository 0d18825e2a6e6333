#ifndef TENSORD_ARGUMENT_H_
#define TENSORD_ARGUMENT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// Argument of a program: a tensor of this process, which is sent, or the handle of a tensor in a session. A value.
class Argument {
 public:
  Argument(HostTensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor): {x, y}
  // Names a tensor of the session, which is read in its place.
  static Argument Handle(std::string handle) { return Argument(std::move(handle), false); }
  // Names a tensor of the session and gives it up: a result may take its memory and its name.
  static Argument Donated(std::string handle) { return Argument(std::move(handle), true); }

  // Returns null for a handle.
  const HostTensor* tensor() const { return tensor_.has_value() ? &*tensor_ : nullptr; }
  const std::string& handle() const { return handle_; }
  bool is_donated() const { return is_donated_; }

 private:
  Argument(std::string handle, bool is_donated) : handle_(std::move(handle)), is_donated_(is_donated) {}

  std::optional<HostTensor> tensor_;
  std::string handle_;
  bool is_donated_ = false;
};

inline std::vector<Argument> ToArguments(absl::Span<const HostTensor> tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace tensord::client

#endif  // TENSORD_ARGUMENT_H_
