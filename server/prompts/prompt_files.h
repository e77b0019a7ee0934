#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "core/output_file.h"
#include "llm/engine.h"
#include "llm/prompt_store.h"
#include "server/prompts/prompt_folder.h"
#include "server/prompts/prompt_index.h"

namespace cria::server {

// Texts that the KV cache gave up, in session files of a folder: those that were used least
// recently are removed for others. A file is used only if its checksums are right and if it is of
// this model, this type of the cache and this version; any other one is removed, with a notice.
//
// Whoever needs the room of a text writes it, from where it is in the cache; a thread of this
// object makes it durable and gives it its name. Thread-safe.
class PromptFiles final : public PromptStore {
 public:
  struct Options {
    std::string folder;
    uint64_t max_bytes = 0;  // All files together.
    // Told what happened to files, from any thread; may be null.
    std::function<void(std::string_view sentence)> on_notice;
  };
  struct Figures {
    size_t num_files = 0;
    uint64_t bytes = 0;
    uint64_t max_bytes = 0;
    uint64_t files_read = 0;  // So many were since the beginning.
    uint64_t files_written = 0;
    uint64_t files_refused = 0;  // They were of no use.
  };

  // The engine must outlive the result.
  static Result<std::unique_ptr<PromptFiles>> Open(Options options, Engine& engine);
  // Returns when all files have their names.
  ~PromptFiles() override;

  size_t Find(std::span<const int32_t> tokens) override;
  Status Read(std::span<const int32_t> tokens, SequenceId sequence) override;
  bool Wants(std::span<const int32_t> tokens) override;
  void Write(std::span<const int32_t> tokens, SequenceId sequence) override;

  // Returns when what was written has its names.
  void Flush();
  Figures figures() const;

 private:
  // A file that is written and has no name yet.
  struct Unnamed {
    PromptIndex::Name name;
    OutputFile file;
  };
  using Lock = std::unique_lock<std::mutex>;

  PromptFiles(Options options, PromptFolder folder, Engine& engine);

  // Fills the index.
  void Scan();
  // Reads the metadata of a file, checks them, and adds the text to the index.
  Status Take(const PromptIndex::Name& name);
  Status ReadFile(const PromptIndex::Found& found, std::span<const int32_t> tokens,
                  SequenceId sequence) const;
  Status WriteFile(const PromptIndex::Name& name, std::span<const int32_t> tokens,
                   SequenceId sequence);
  // Removes the files that were used least recently until there is room for another one.
  bool MakeRoom(size_t num_tokens, uint64_t bytes);
  void Remove(const PromptIndex::Name& name);
  // Says why a file is of no use, and removes it.
  void Refuse(const PromptIndex::Name& name, const Error& error);
  void TellFailure(const Error& error);
  void Tell(std::string_view sentence) const;
  // Gives files their names, in a thread of its own.
  void NameFiles();

  const Options options_;
  const PromptFolder folder_;
  Engine& engine_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  PromptIndex index_;
  std::optional<Unnamed> unnamed_;  // One at a time.
  bool is_ended_ = false;
  bool has_told_failure_ = false;  // Since a file was written.
  Figures figures_;
  std::thread namer_;
};

}  // namespace cria::server
