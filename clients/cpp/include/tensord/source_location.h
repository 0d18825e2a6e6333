#ifndef TENSORD_SOURCE_LOCATION_H_
#define TENSORD_SOURCE_LOCATION_H_

#include <cstdint>

namespace tensord::client {

// A place in a program's source. Not std::source_location: clang before 16 has none beside GCC's library, and a library
// that one compiler built serves programs of the other. Immutable.
class SourceLocation {
 public:
  // Makes a place that is not known: an empty file name, line 0.
  constexpr SourceLocation() = default;

  // Returns the place of the call; as a default argument, that of the call of the function that has it.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
    return SourceLocation(file, line);
  }

  constexpr const char* file_name() const { return file_; }
  constexpr uint32_t line() const { return line_; }

 private:
  constexpr SourceLocation(const char* file, uint32_t line) : file_(file), line_(line) {}

  const char* file_ = "";
  uint32_t line_ = 0;
};

}  // namespace tensord::client

#endif  // TENSORD_SOURCE_LOCATION_H_
