#ifndef TENSORD_CLIENTS_CPP_SHARED_MEMORY_SHARED_CALL_H_
#define TENSORD_CLIENTS_CPP_SHARED_MEMORY_SHARED_CALL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "tensord/argument.h"
#include "tensord/shared_memory.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

// The part of one call that goes through shared memory: large arguments, which are copied there unless they lie there,
// and places for results that are expected to be large. If no memory is to be had in half of the time, they go in
// messages. Without memory everything does. Keeps all of it until the call is over. Confined to the call.
class SharedCall {
 public:
  SharedCall(std::shared_ptr<SharedMemory> memory, absl::Span<const Argument> arguments,
             absl::Span<const size_t> result_bytes, absl::Time deadline);

  // Returns places by argument; empty: none.
  absl::Span<const std::optional<SharedPlace>> places() const { return places_; }
  // Returns spaces by result, empty for a result without one; or nothing.
  absl::Span<const ResultSpace> spaces() const { return spaces_; }
  // Asks for results there.
  void SetSpaces(v1::ExecuteRequest* request) const;
  // The server has answered: it does not read the arguments any more.
  void ReleaseArguments();
  // The call failed, and a run may still go on: nothing of its memory is used for anything else. With REGION_UNKNOWN
  // the memory is lost.
  void Failed(const absl::Status& failure);

 private:
  const std::shared_ptr<SharedMemory> memory_;  // null: there is none
  std::vector<std::optional<SharedPlace>> places_;
  std::vector<std::shared_ptr<char>> copies_;  // of arguments
  std::vector<HostTensor> in_place_;           // arguments that lie there
  std::vector<ResultSpace> spaces_;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_SHARED_MEMORY_SHARED_CALL_H_
