#ifndef TENSORD_ENGINE_BASE_STATUS_MACROS_H_
#define TENSORD_ENGINE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The two control macros of the project; there is no third.

#define RETURN_IF_ERROR(expr)                                           \
  do {                                                                  \
    if (absl::Status tensord_status_ = (expr); !tensord_status_.ok()) { \
      return tensord_status_;                                           \
    }                                                                   \
  } while (false)

#define TENSORD_CONCAT_INNER_(a, b) a##b
#define TENSORD_CONCAT_(a, b) TENSORD_CONCAT_INNER_(a, b)

#define ASSIGN_OR_RETURN(declaration, expr) \
  TENSORD_ASSIGN_OR_RETURN_(TENSORD_CONCAT_(tensord_or_, __LINE__), declaration, expr)

#define TENSORD_ASSIGN_OR_RETURN_(result, declaration, expr) \
  auto result = (expr);                                      \
  if (!result.ok()) return std::move(result).status();       \
  declaration = *std::move(result)

#endif  // TENSORD_ENGINE_BASE_STATUS_MACROS_H_
