#ifndef TENSORD_ENGINE_OPS_INDEX_WALK_H_
#define TENSORD_ENGINE_OPS_INDEX_WALK_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/tensor/shape.h"

namespace tensord {

// All index vectors of a shape in storage order, for the reference rules: `for (IndexWalk i(shape); !i.done();
// i.Next())`.
class IndexWalk {
 public:
  explicit IndexWalk(absl::Span<const int64_t> shape) : shape_(shape.begin(), shape.end()), index_(shape.size()) {
    for (int64_t size : shape_) done_ = done_ || size == 0;
  }

  bool done() const { return done_; }
  int64_t operator[](size_t axis) const { return index_[axis]; }
  const Shape& index() const { return index_; }
  // Position of the index in storage.
  int64_t linear() const { return linear_; }

  void Next() {
    ++linear_;
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      if (++index_[axis] < shape_[axis]) return;
      index_[axis] = 0;
    }
    done_ = true;
  }

 private:
  Shape shape_;
  Shape index_;
  int64_t linear_ = 0;
  bool done_ = false;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_INDEX_WALK_H_
