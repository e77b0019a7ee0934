#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "cria/error.h"
#include "xnn/pack_cache.h"

namespace cria::cli {

// Prints what the cache holds: a line for each file, and their sum; or as JSON.
Status ListEntries(const xnn::PackCache& cache, bool as_json);

// Removes everything that the cache holds.
Status ClearEntries(const xnn::PackCache& cache);

// Removes the files that `name` means: a path or its last part, as ListEntries prints them, or a
// digest of at least eight digits, as `cria info` prints it. `asked` is what the user gave.
Status RemoveEntries(const xnn::PackCache& cache, std::string_view name, const std::string& asked);

// An age as the user gave it, such as "30d".
struct EntryAge {
  std::string text;
  std::chrono::hours hours;
};
// Reads a number of hours, days or weeks. Returns an error of code kUsage if it is something else.
Status ReadEntryAge(std::string_view text, std::optional<EntryAge>& age);

// Removes the files that were packed longer ago. Files that a program uses and files that have no
// packed weights are kept, with a sentence that says so.
Status RemoveOldEntries(const xnn::PackCache& cache, const EntryAge& age);

}  // namespace cria::cli
