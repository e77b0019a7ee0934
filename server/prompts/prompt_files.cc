#include "server/prompts/prompt_files.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/format.h"
#include "decode/kv_state.h"
#include "llm/kv_state_file.h"
#include "llm/session_file_layout.h"
#include "llm/session_metadata.h"
#include "llm/session_writer.h"
#include "server/prompts/prompt_bounds.h"

namespace cria::server {
namespace {

// Whether a text is of use only to texts that have all of it.
bool NeedsWhole(const Sequences& sequences) {
  return !sequences.pages().KeepsAll() || sequences.states() != nullptr;
}

uint64_t FileMetadataBytes(const KvState& state, size_t num_tokens) {
  return sizeof(FilePreamble) + sizeof(SessionHead) + state.num_blocks() * sizeof(uint64_t) +
         num_tokens * sizeof(int32_t);
}

std::unexpected<Error> FailRefused(std::string_view what) {
  return Fail(ErrorCode::kUnsupported, std::string(what));
}

}  // namespace

Result<std::unique_ptr<PromptFiles>> PromptFiles::Open(Options options, Engine& engine) {
  CRIA_ASSIGN_OR_RETURN(PromptFolder folder, PromptFolder::Open(options.folder));
  std::unique_ptr<PromptFiles> files(
      new PromptFiles(std::move(options), std::move(folder), engine));
  files->Scan();
  files->namer_ = std::thread([object = files.get()] { object->NameFiles(); });
  return files;
}

PromptFiles::PromptFiles(Options options, PromptFolder folder, Engine& engine)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      engine_(engine),
      index_({.bytes = options_.max_bytes, .tokens = kMaxPromptTokens, .texts = kMaxPromptFiles},
             NeedsWhole(engine.decoder().sequences())) {}

PromptFiles::~PromptFiles() {
  {
    const Lock lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  if (namer_.joinable()) namer_.join();
}

void PromptFiles::Scan() {
  for (const PromptFolder::File& file : folder_.List()) {
    if (!file.is_regular) {
      Tell(Format("{}: is a link or no file, and is not used", folder_.PathOf(file.name)));
      continue;
    }
    if (const Status taken = Take(file.name); !taken) Refuse(file.name, taken.error());
  }
  // They may have been kept within a larger bound.
  while (const auto name = index_.NextToRemove(0, 0)) Remove(*name);
}

Status PromptFiles::Take(const PromptIndex::Name& name) {
  CRIA_ASSIGN_OR_RETURN(const platform::File file, platform::File::Open(folder_.PathOf(name)));
  if (file.size_bytes() > options_.max_bytes) return FailRefused("it is larger than the bound");
  CRIA_ASSIGN_OR_RETURN(const FileHead head, ReadSessionHead(file));
  CRIA_ASSIGN_OR_RETURN(const SessionMetadata metadata,
                        ReadSessionMetadata(file, head, SessionContent::kText, engine_));
  if (const std::string why = WhyReadAgain(metadata.head, engine_); !why.empty()) {
    return FailRefused(why);
  }
  const size_t num_tokens = metadata.tokens.size();
  const KvState state(engine_.decoder(), 0, num_tokens);
  const uint64_t bytes = FileMetadataBytes(state, num_tokens) + state.bytes();
  if (num_tokens == 0 || metadata.head.num_cached_tokens != num_tokens ||
      metadata.head.num_blocks != state.num_blocks() || file.size_bytes() != bytes ||
      PromptIndex::NameOf(metadata.tokens) != name) {
    return FailRefused("its metadata are not those of a prompt");
  }
  while (const auto removed = index_.NextToRemove(num_tokens, bytes)) Remove(*removed);
  index_.Add(name, metadata.tokens, bytes, /*is_ready=*/true);
  return {};
}

size_t PromptFiles::Find(std::span<const int32_t> tokens) {
  const Lock lock(mutex_);
  return index_.Find(tokens).num_usable;
}

bool PromptFiles::Wants(std::span<const int32_t> tokens) {
  const Lock lock(mutex_);
  return index_.Wants(tokens);
}

Status PromptFiles::Read(std::span<const int32_t> tokens, SequenceId sequence) {
  Lock lock(mutex_);
  const PromptIndex::Found found = index_.Find(tokens);
  if (found.num_usable != tokens.size()) {
    return Fail(ErrorCode::kNotFound, "the file of the prompt was removed");
  }
  index_.Use(found.name);
  lock.unlock();
  Status read;
  try {
    read = ReadFile(found, tokens, sequence);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kOutOfMemory, "there is no memory to read a prompt");
  }
  lock.lock();
  if (!read) {
    Refuse(found.name, read.error());
    return read;
  }
  ++figures_.files_read;
  folder_.NoteUse(found.name);
  return {};
}

Status PromptFiles::ReadFile(const PromptIndex::Found& found, std::span<const int32_t> tokens,
                             SequenceId sequence) const {
  if (!folder_.IsRegular(found.name)) return FailRefused("it is a link or no file");
  CRIA_ASSIGN_OR_RETURN(const platform::File file,
                        platform::File::Open(folder_.PathOf(found.name)));
  CRIA_ASSIGN_OR_RETURN(const FileHead head, ReadSessionHead(file));
  CRIA_ASSIGN_OR_RETURN(const SessionMetadata metadata,
                        ReadSessionMetadata(file, head, SessionContent::kText, engine_));
  // The file that was listed may have been replaced.
  if (!WhyReadAgain(metadata.head, engine_).empty() || metadata.tokens.size() != found.num_tokens ||
      metadata.head.num_cached_tokens != found.num_tokens || metadata.shift != SequenceShift() ||
      !std::ranges::equal(metadata.tokens.first(tokens.size()), tokens)) {
    return FailRefused("it is of another text or model than before");
  }
  const KvState whole(engine_.decoder(), sequence, found.num_tokens);
  // A checksum is that of a whole page, which the sequence has, too, if it has some of its tokens.
  const size_t pages = NumKvPages(tokens.size());
  const KvState state(engine_.decoder(), sequence,
                      std::min(found.num_tokens, pages * kKvPageTokens));
  const uint64_t state_offset = sizeof(FilePreamble) + head.preamble.metadata_bytes;
  if (metadata.block_checksums.size() != whole.num_blocks() ||
      file.size_bytes() != state_offset + whole.bytes()) {
    return FailRefused("its size is another than its metadata say");
  }
  for (size_t layer = 0; layer < engine_.decoder().cache().num_layers(); ++layer) {
    state.MakeResident(layer);
  }
  // If a part of a text is of use, all layers have all pages: the file has more of these in each.
  const size_t file_pages = NumKvPages(found.num_tokens);
  for (size_t block = 0; block < state.num_blocks(); ++block) {
    const size_t file_block =
        pages == file_pages ? block : block / pages * file_pages + block % pages;
    CRIA_RETURN_IF_ERROR(ReadKvBlock(file, state_offset + whole.BlockOffset(file_block), state,
                                     block, metadata.block_checksums[file_block]));
  }
  return {};
}

void PromptFiles::Write(std::span<const int32_t> tokens, SequenceId sequence) {
  const PromptIndex::Name name = PromptIndex::NameOf(tokens);
  Status written;
  try {
    written = WriteFile(name, tokens, sequence);
  } catch (const std::bad_alloc&) {
    written = Fail(ErrorCode::kOutOfMemory, "there is no memory to write a prompt");
  }
  if (written) return;
  const Lock lock(mutex_);
  index_.Remove(name);
  TellFailure(written.error());
}

Status PromptFiles::WriteFile(const PromptIndex::Name& name, std::span<const int32_t> tokens,
                              SequenceId sequence) {
  const KvState state(engine_.decoder(), sequence, tokens.size());
  const uint64_t metadata_bytes = FileMetadataBytes(state, tokens.size());
  const uint64_t bytes = metadata_bytes + state.bytes();
  if (metadata_bytes > kMaxPromptMetadataBytes || bytes > options_.max_bytes) return {};
  {
    Lock lock(mutex_);
    // The disk is slower than this thread: a second file waits until the first one has its name.
    changed_.wait(lock, [this] { return !unnamed_; });
    if (!MakeRoom(tokens.size(), bytes)) return {};
    index_.Add(name, tokens, bytes, /*is_ready=*/false);
  }
  const ConversationState no_messages;
  CRIA_ASSIGN_OR_RETURN(OutputFile file, WriteSession(folder_.PathOf(name),
                                                      {.content = SessionContent::kText,
                                                       .conversation = no_messages,
                                                       .tokens = tokens,
                                                       .sequence = sequence,
                                                       .num_cached = tokens.size()},
                                                      engine_, LinkPolicy::kReplaceLink));
  Lock lock(mutex_);
  unnamed_.emplace(name, std::move(file));
  changed_.notify_all();
  return {};
}

bool PromptFiles::MakeRoom(size_t num_tokens, uint64_t bytes) {
  while (const auto name = index_.NextToRemove(num_tokens, bytes)) Remove(*name);
  return index_.num_texts() < kMaxPromptFiles && index_.bytes() + bytes <= options_.max_bytes;
}

void PromptFiles::Remove(const PromptIndex::Name& name) {
  folder_.Remove(name);
  index_.Remove(name);
}

void PromptFiles::Refuse(const PromptIndex::Name& name, const Error& error) {
  const bool is_useless =
      error.code() == ErrorCode::kInvalidFile || error.code() == ErrorCode::kUnsupported;
  index_.Remove(name);
  // It may be of use later if it could only not be read.
  if (is_useless) folder_.Remove(name);
  ++figures_.files_refused;
  // The error of a file ends with what to do with a session's.
  const std::string path = folder_.PathOf(name);
  std::string_view why = error.message();
  if (why.starts_with(path + ": ")) why.remove_prefix(path.size() + 2);
  why = why.substr(0, why.find(';'));
  Tell(Format("{}: {}: {}", path, is_useless ? "was removed and is not used" : "is not used", why));
}

void PromptFiles::TellFailure(const Error& error) {
  if (!std::exchange(has_told_failure_, true)) {
    Tell(Format("a prompt was not kept: {}", error.message()));
  }
}

void PromptFiles::Tell(std::string_view sentence) const {
  if (options_.on_notice) options_.on_notice(sentence);
}

void PromptFiles::NameFiles() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return unnamed_ || is_ended_; });
    if (!unnamed_) return;
    const PromptIndex::Name name = unnamed_->name;
    lock.unlock();
    const Status committed = unnamed_->file.Commit();
    lock.lock();
    unnamed_.reset();
    if (committed) {
      index_.SetReady(name);
      ++figures_.files_written;
      has_told_failure_ = false;
      while (const auto covered = index_.NextCovered(name)) Remove(*covered);
    } else {
      index_.Remove(name);
      TellFailure(committed.error());
    }
    changed_.notify_all();
  }
}

void PromptFiles::Flush() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return !unnamed_; });
}

PromptFiles::Figures PromptFiles::figures() const {
  const Lock lock(mutex_);
  Figures figures = figures_;
  figures.num_files = index_.num_texts();
  figures.bytes = index_.bytes();
  figures.max_bytes = options_.max_bytes;
  return figures;
}

}  // namespace cria::server
