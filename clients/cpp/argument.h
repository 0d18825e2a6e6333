#ifndef TENSORD_CLIENTS_CPP_ARGUMENT_H_
#define TENSORD_CLIENTS_CPP_ARGUMENT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "clients/cpp/host_tensor.h"

namespace tensord::client {

// What a program is given for one of its inputs: a tensor of this process, which is sent, or one that a session keeps
// on the server, by its handle. A value.
class Argument {
 public:
  Argument(HostTensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor): {x, y}
  // The tensor is read where it lies.
  static Argument Handle(std::string handle) { return Argument(std::move(handle), false); }
  // The same, and the handle is gone: a result may lie in the tensor's memory, and take its name.
  static Argument Donated(std::string handle) { return Argument(std::move(handle), true); }

  // Null: it is a handle.
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

#endif  // TENSORD_CLIENTS_CPP_ARGUMENT_H_
