#ifndef TENSORD_ENGINE_BASE_ID_VECTOR_H_
#define TENSORD_ENGINE_BASE_ID_VECTOR_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tensord {

// A vector indexed by ids of one type: `Id` is a struct with an int32_t `index`, like ValueId.
template <typename Id, typename T>
class IdVector {
 public:
  // Returns the id of the element at a position.
  static Id id(size_t position) { return {static_cast<int32_t>(position)}; }

  IdVector() = default;
  explicit IdVector(size_t size, const T& element = T()) : elements_(size, element) {}

  Id Add(T element) {
    elements_.push_back(std::move(element));
    return id(elements_.size() - 1);
  }
  void assign(size_t size, const T& element) { elements_.assign(size, element); }
  void resize(size_t size) { elements_.resize(size); }

  T& operator[](Id i) { return elements_[static_cast<size_t>(i.index)]; }
  const T& operator[](Id i) const { return elements_[static_cast<size_t>(i.index)]; }
  T& back() { return elements_.back(); }
  const T& back() const { return elements_.back(); }

  size_t size() const { return elements_.size(); }
  bool empty() const { return elements_.empty(); }
  auto begin() { return elements_.begin(); }
  auto end() { return elements_.end(); }
  auto begin() const { return elements_.begin(); }
  auto end() const { return elements_.end(); }

 private:
  std::vector<T> elements_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_ID_VECTOR_H_
