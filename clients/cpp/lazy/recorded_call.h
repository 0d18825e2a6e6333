#ifndef TENSORD_CLIENTS_CPP_LAZY_RECORDED_CALL_H_
#define TENSORD_CLIENTS_CPP_LAZY_RECORDED_CALL_H_

#include "absl/strings/string_view.h"
#include "tensord/source_location.h"

namespace tensord::client {

// The scope of a call of a public operation. Operations are made of others: the outermost scope of a thread is the call
// that the user wrote, and names nodes and failures. Confined to its thread and its block; `name` is a literal.
class RecordedCall {
 public:
  RecordedCall(absl::string_view name, const SourceLocation& place);
  ~RecordedCall();
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;

  // Returns null outside of all calls.
  static const RecordedCall* Outermost();

  absl::string_view name() const { return name_; }
  const SourceLocation& place() const { return place_; }

 private:
  const absl::string_view name_;
  const SourceLocation place_;
  const bool is_outermost_;
};

// Returns the name of a place's file, without its folder.
absl::string_view FileOf(const SourceLocation& place);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_LAZY_RECORDED_CALL_H_
