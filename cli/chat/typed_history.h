#pragma once

#include <histedit.h>

#include <string>

#include "cria/error.h"

namespace cria::cli {

// What was typed, newest last, in memory and in a file that several chats may share.
class TypedHistory {
 public:
  TypedHistory();
  TypedHistory(const TypedHistory&) = delete;
  TypedHistory& operator=(const TypedHistory&) = delete;
  ~TypedHistory();

  // For libedit's EL_HIST.
  HistoryW* get() { return history_; }
  // Takes over the entries of the file, which is made if it is missing, and adds later ones to it.
  // Only its owner may read it. Fails if it cannot be written or has something else.
  Status KeepIn(const std::string& path);
  void Add(const std::wstring& entry);

 private:
  HistoryW* history_;
  HistEventW event_ = {};
  std::string path_;  // Empty: entries are not kept in a file.
};

}  // namespace cria::cli
