#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cria::cli {

// A file that no program has open or mapped. While an object exists, programs that open the file
// wait, so that it stays unused until it is removed.
class UnusedFile {
 public:
  // The file must begin with `magic`.
  UnusedFile(const std::string& path, std::span<const char> magic);
  UnusedFile(const UnusedFile&) = delete;
  UnusedFile& operator=(const UnusedFile&) = delete;
  ~UnusedFile();

  // Why the file cannot be removed, as the end of a sentence that begins with its name; empty if it
  // can.
  std::string_view defect() const { return defect_; }
  // Whether the file begins with `magic`, but a program uses it or the system does not tell.
  bool is_used() const { return is_used_; }

 private:
  int descriptor_ = -1;
  std::string_view defect_;
  bool is_used_ = false;
};

}  // namespace cria::cli
