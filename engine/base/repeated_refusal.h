#ifndef TENSORD_ENGINE_BASE_REPEATED_REFUSAL_H_
#define TENSORD_ENGINE_BASE_REPEATED_REFUSAL_H_

#include "absl/status/status.h"

namespace tensord {

// The encoded form of the last refusal, kept for its repetition: a server that is overloaded gives many calls the same
// refusal. Thread-compatible.
template <typename Made>
class RepeatedRefusal {
 public:
  template <typename Make>
  const Made& Get(const absl::Status& refusal, const Make& make) {
    if (refusal != refusal_) {
      made_ = make(refusal);
      refusal_ = refusal;
    }
    return made_;
  }

 private:
  absl::Status refusal_;
  Made made_{};
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_REPEATED_REFUSAL_H_
