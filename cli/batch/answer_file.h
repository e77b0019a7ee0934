#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "cria/error.h"

namespace cria::cli {

// The file of answers, a line for each, in the order of the prompts. It may have answers of an
// earlier run; a line that was not written to its end is cut off.
class AnswerFile {
 public:
  // Fails if another process writes the file, or if it is not one of answers.
  static Result<AnswerFile> Open(const std::string& path);
  AnswerFile(AnswerFile&& other) noexcept;
  AnswerFile& operator=(AnswerFile&&) = delete;
  ~AnswerFile();

  // How many answers are there, from the first on without a gap.
  size_t num_written() const { return num_written_; }
  // Adds the line of an answer, without a line feed. It is written after all earlier ones.
  Status Add(size_t index, std::string line);

 private:
  AnswerFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Status FindEnd();
  Status Write(const std::string& text);

  std::string path_;
  int descriptor_;
  size_t num_written_ = 0;
  std::map<size_t, std::string> waiting_;  // Lines that wait until all earlier answers are written.
};

}  // namespace cria::cli
