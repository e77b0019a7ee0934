#include "model/path_contents.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "model/config.h"
#include "model/file_layout.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBeginningBytes = 64;

// The first bytes of a file; fewer than kBeginningBytes if it is shorter.
std::string ReadBeginning(const platform::File& file) {
  std::string bytes(std::min<uint64_t>(file.size_bytes(), kBeginningBytes), '\0');
  if (!file.ReadAt(0, std::as_writable_bytes(std::span(bytes)))) bytes.clear();
  return bytes;
}

std::string_view TextOf(const std::array<char, 8>& magic) { return {magic.data(), magic.size()}; }

// The length of a header in JSON, and the header.
bool IsSafetensors(std::string_view beginning, uint64_t file_bytes) {
  uint64_t header_bytes = 0;
  if (beginning.size() <= sizeof header_bytes) return false;
  std::memcpy(&header_bytes, beginning.data(), sizeof header_bytes);
  return beginning[sizeof header_bytes] == '{' && header_bytes >= 2 &&
         header_bytes <= file_bytes - sizeof header_bytes;
}

// PyTorch writes a zip archive whose first member is a pickle; before version 1.6 it wrote a pickle
// that begins with a number of 80 bits.
bool IsTorch(std::string_view beginning) {
  constexpr std::string_view kOldMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  return beginning.starts_with(kOldMagic) ||
         (beginning.starts_with("PK\x03\x04") && beginning.contains("/data.pkl"));
}

// Version 1 begins with a magic number, version 0 with seven sizes.
bool IsLlama2c(std::string_view beginning) {
  if (beginning.starts_with("24ka")) return true;
  std::array<int32_t, 7> sizes;
  if (beginning.size() < sizeof sizes) return false;
  std::memcpy(sizes.data(), beginning.data(), sizeof sizes);
  const auto at = [&](size_t i) { return static_cast<uint32_t>(sizes[i]); };
  const ModelConfig config = {.hidden_size = at(0),
                              .intermediate_size = at(1),
                              .num_hidden_layers = at(2),
                              .num_attention_heads = at(3),
                              .num_key_value_heads = at(4),
                              .head_dim = at(3) == 0 ? 0 : at(0) / at(3),
                              // A negative number means that the head is not tied.
                              .vocab_size = sizes[5] < 0 ? 0u - at(5) : at(5),
                              .max_position_embeddings = at(6),
                              .rms_norm_eps = 1e-5f,
                              .layer_kinds = {{.rope_theta = 10000.0f}}};
  return ValidateConfig(config) && config.hidden_size % config.num_attention_heads == 0;
}

// True also of a link to a file that is lost, and of what cannot be examined: opening it says so.
bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// The folder of a file, which is also a path if the file's is only a name.
fs::path FolderOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool HasWeights(const fs::path& folder) {
  return Exists(folder / "model.safetensors") || Exists(folder / "model.safetensors.index.json") ||
         Exists(folder / "pytorch_model.bin") || Exists(folder / "pytorch_model.bin.index.json");
}

PathContents InspectFile(const std::string& path) {
  const auto file = platform::File::Open(path);
  if (!file) return {};
  const std::string beginning = ReadBeginning(*file);
  if (beginning.starts_with(TextOf(kModelMagic))) return {.kind = ContentKind::kModel};
  if (beginning.starts_with(TextOf(kPackedMagic))) return {.kind = ContentKind::kPackedWeights};
  if (beginning.starts_with("GGUF")) return {.kind = ContentKind::kGguf, .checkpoint = path};
  const fs::path folder = FolderOf(path);
  if (IsTorch(beginning)) {
    const bool is_usable =
        Exists(folder / "params.json") || (Exists(folder / "config.json") && HasWeights(folder));
    return {.kind = ContentKind::kTorch, .checkpoint = is_usable ? folder.string() : ""};
  }
  if (IsSafetensors(beginning, file->size_bytes())) {
    return {.kind = ContentKind::kSafetensors,
            .checkpoint = Exists(folder / "config.json") ? folder.string() : ""};
  }
  if (IsLlama2c(beginning)) return {.kind = ContentKind::kLlama2c, .checkpoint = path};
  return {};
}

// Whether it is a part of a model, but not the first: "...-00002-of-00003.gguf".
bool IsLaterPart(std::string_view name) {
  const size_t of = name.rfind("-of-");
  return of != name.npos && of >= 6 && name[of - 6] == '-' && name.substr(of - 5, 5) != "00001" &&
         name.substr(of - 5, 5).find_first_not_of("0123456789") == name.npos;
}

// A folder without a checkpoint's description.
PathContents InspectFiles(const fs::path& folder) {
  PathContents contents = {.kind = ContentKind::kEmptyFolder};
  std::vector<std::string> models;
  uint64_t largest_bytes = 0;
  std::error_code error;
  for (fs::directory_iterator file(folder, error); !error && file != fs::directory_iterator();
       file.increment(error)) {
    contents.kind = ContentKind::kOtherFolder;
    const std::string name = file->path().filename().string();
    std::error_code ignored;
    if (!file->is_regular_file(ignored)) continue;
    const ContentKind kind = InspectFile(file->path().string()).kind;
    if (kind == ContentKind::kModel) models.push_back(name);
    if (kind != ContentKind::kGguf || IsLaterPart(name)) continue;
    contents.names.push_back(name);
    const uint64_t bytes = file->file_size(ignored);
    if (contents.checkpoint.empty() || bytes > largest_bytes) {
      largest_bytes = bytes;
      contents.checkpoint = file->path().string();
    }
  }
  if (error) return {};
  if (!contents.names.empty()) contents.kind = ContentKind::kGgufFolder;
  if (!models.empty()) contents = {.kind = ContentKind::kModelFolder, .names = std::move(models)};
  std::ranges::sort(contents.names);
  return contents;
}

PathContents InspectFolder(const fs::path& folder) {
  if (!Exists(folder / "config.json")) {
    if (!Exists(folder / "params.json")) return InspectFiles(folder);
    return {.kind = ContentKind::kMetaFolder, .checkpoint = folder.string()};
  }
  return {.kind = ContentKind::kHuggingFaceFolder, .checkpoint = folder.string()};
}

// Does what InspectPath does, but says that the weights of a folder with config.json are missing,
// or which GGUF files it has instead.
PathContents InspectInsteadOfModel(const std::string& path) {
  PathContents contents = InspectPath(path);
  if (contents.kind != ContentKind::kHuggingFaceFolder || HasWeights(path)) return contents;
  PathContents files = InspectFiles(path);
  if (files.kind == ContentKind::kGgufFolder) return files;
  contents.checkpoint.clear();
  return contents;
}

// Only cria-convert accepts such names, but users may give them to cria, too.
bool IsHubName(const std::string& path) {
  return path.starts_with("hf:") && path.contains('/') && !Exists(path);
}

}  // namespace

PathContents InspectPath(const std::string& path) {
  if (IsHubName(path)) return {.kind = ContentKind::kHubName, .checkpoint = path};
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? InspectFolder(path) : InspectFile(path);
}

std::string JoinNames(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

std::string ContentsText(const PathContents& contents) {
  const char* const plural = contents.names.size() == 1 ? "" : "s";
  switch (contents.kind) {
    case ContentKind::kUnknown:
      return "";
    case ContentKind::kModel:
      return "is a Cria model file";
    case ContentKind::kPackedWeights:
      return "has packed weights, which belong to a Cria model file";
    case ContentKind::kGguf:
      return "is a GGUF file";
    case ContentKind::kLlama2c:
      return "is a llama2.c model";
    case ContentKind::kSafetensors:
      return "has weights in the safetensors format";
    case ContentKind::kTorch:
      return "has weights in PyTorch's format";
    case ContentKind::kHuggingFaceFolder:
      return "is the folder of a Hugging Face checkpoint";
    case ContentKind::kMetaFolder:
      return "is the folder of a checkpoint in Meta's format";
    case ContentKind::kModelFolder:
      return Format("is a folder with the model file{} {}", plural, JoinNames(contents.names));
    case ContentKind::kGgufFolder:
      return Format("is a folder with the GGUF file{} {}", plural, JoinNames(contents.names));
    case ContentKind::kEmptyFolder:
      return "is an empty folder";
    case ContentKind::kOtherFolder:
      return "is a folder without a model file or checkpoint";
    case ContentKind::kHubName:
      return "is the name of a checkpoint on a hub";
  }
  return "";
}

std::string_view HowToGetCheckpoint(const PathContents& contents) {
  if (!contents.checkpoint.empty()) return "";
  if (contents.kind == ContentKind::kTorch) {
    return "it can be converted as pytorch_model.bin with config.json in the same folder, or as "
           "consolidated.00.pth with params.json";
  }
  if (contents.kind == ContentKind::kHuggingFaceFolder) {
    return "its weights are missing: model.safetensors, or several such files with their index";
  }
  if (contents.kind == ContentKind::kSafetensors) {
    return "a checkpoint also needs config.json in the same folder";
  }
  return "";
}

Result<platform::File> OpenModelPath(const std::string& path) {
  Result<platform::File> file = platform::File::Open(path);
  const PathContents contents = InspectInsteadOfModel(path);
  if (contents.kind == ContentKind::kUnknown || contents.kind == ContentKind::kModel) return file;
  if (contents.kind == ContentKind::kEmptyFolder || contents.kind == ContentKind::kOtherFolder) {
    return Fail(ErrorCode::kIo, Format("{}: {}, not a regular file", path, ContentsText(contents)));
  }
  std::string sentence = Format("{}: {}", path, ContentsText(contents));
  Remedy remedy;
  if (contents.kind == ContentKind::kModelFolder) {
    sentence += Format("; give {}", contents.names.size() == 1 ? "that file" : "one of them");
  } else if (!contents.checkpoint.empty()) {
    sentence += " and not a Cria model file";
    remedy = RemedyKind::kConvertCheckpoint;
    remedy.checkpoint = contents.checkpoint;
  } else if (const std::string_view how = HowToGetCheckpoint(contents); !how.empty()) {
    (sentence += "; ") += how;
  }
  return Fail(ErrorCode::kInvalidFile, std::move(sentence), std::move(remedy));
}

Status CheckReplaceable(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  if (fs::file_size(path, error) == 0 && !error) return {};
  const PathContents contents = InspectPath(path);
  if (contents.kind == ContentKind::kModel || contents.kind == ContentKind::kPackedWeights) {
    return {};
  }
  const std::string what = ContentsText(contents);
  return Fail(ErrorCode::kUsage,
              Format("{}: {}, which would be replaced", path,
                     what.empty() ? "is a file that Cria did not write" : what),
              RemedyKind::kOverwrite);
}

}  // namespace cria
