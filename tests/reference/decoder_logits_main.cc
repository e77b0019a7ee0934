// cria-decoder-logits: what the runtime computes for a model file, for scripts that compare it with
// other programs.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/flags/command_line.h"
#include "cli/messages.h"
#include "core/thread_pool.h"
#include "decode/decoder.h"
#include "decode/open_sequence.h"
#include "model/model_file.h"
#include "xnn/packing.h"

namespace cria::reference {
namespace {

struct Options {
  std::string model;
  std::string output;
  std::vector<size_t> tokens;
  std::vector<size_t> chunks;  // Sizes, which repeat. Empty: one chunk.
  size_t num_threads = 2;
};

Status AppendLogits(Decoder& decoder, size_t count, std::FILE& file) {
  for (size_t row = 0; row < count; ++row) {
    CRIA_ASSIGN_OR_RETURN(const auto logits, decoder.Logits(row));
    if (std::fwrite(logits.data(), sizeof(float), logits.size(), &file) != logits.size()) {
      return Fail(ErrorCode::kIo, "the logits cannot be written");
    }
  }
  return {};
}

Status WriteLogits(const Options& options, std::FILE& file) {
  CRIA_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(options.model));
  CRIA_ASSIGN_OR_RETURN(ThreadPool pool, ThreadPool::Create(options.num_threads));
  CRIA_ASSIGN_OR_RETURN(ThreadPool batch_pool, ThreadPool::Create(options.num_threads));
  CRIA_ASSIGN_OR_RETURN(const auto weights, xnn::PackedWeights::PackInMemory(model, pool, nullptr));
  const std::vector<int32_t> tokens(options.tokens.begin(), options.tokens.end());
  const std::vector<size_t> chunks =
      options.chunks.empty() ? std::vector{tokens.size()} : options.chunks;
  const DecoderOptions sizes{.context_tokens = tokens.size(),
                             .chunk_tokens = std::ranges::max(chunks)};
  CRIA_ASSIGN_OR_RETURN(const auto decoder,
                        Decoder::Create(model, weights, sizes, pool, batch_pool));
  CRIA_ASSIGN_OR_RETURN(const auto sequence,
                        OpenSequence::Create(decoder->sequences(), tokens.size()));
  size_t chunk = 0;
  for (size_t first = 0; first < tokens.size();) {
    const size_t count = std::min(chunks[chunk++ % chunks.size()], tokens.size() - first);
    CRIA_RETURN_IF_ERROR(decoder->ForwardSequence(
        sequence.id(), std::span(tokens).subspan(first, count), first, count));
    CRIA_RETURN_IF_ERROR(AppendLogits(*decoder, count, file));
    first += count;
  }
  return {};
}

Status Write(const Options& options) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(options.output.c_str(), "wb"), &std::fclose);
  if (file == nullptr) {
    return Fail(ErrorCode::kIo, options.output + ": cannot be written");
  }
  return WriteLogits(options, *file);
}

int Main(int argc, char** argv) {
  cli::CommandLine command("cria-decoder-logits",
                           "Writes a row of logits for each token, [tokens, vocab_size] in f32.");
  Options options;
  command.AddText("-m,--model", options.model, "The model file").Required();
  command.AddText("-o,--output", options.output, "The file to write").Required();
  command.AddList("--tokens", options.tokens, "The tokens, with commas between them").Required();
  command.AddList("--chunks", options.chunks,
                  "How many tokens one pass takes; the sizes repeat [all at once]");
  command.AddNumber("-t,--threads", options.num_threads, "Threads [2]");
  command.SetAction([&options] { return Write(options); });
  const Status done = command.Run(std::vector<std::string>(argv + 1, argv + argc));
  return done ? 0 : cli::ReportError("cria-decoder-logits", done.error());
}

}  // namespace
}  // namespace cria::reference

int main(int argc, char** argv) { return cria::reference::Main(argc, argv); }
