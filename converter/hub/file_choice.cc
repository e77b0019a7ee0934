#include "converter/hub/file_choice.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "converter/input/json_file.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

using nlohmann::json;

constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kWeightsFile = "model.safetensors";
constexpr std::string_view kTorchFile = "pytorch_model.bin";
constexpr uint64_t kMaxIndexBytes = 100'000'000;

// What converter/hugging_face and converter/tokenizer read of a folder, besides config.json and the
// weights.
constexpr std::array<std::string_view, 10> kSmallFiles = {
    "generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json",      "chat_template.jinja",   "chat_template.json",
    "tokenizer.json",         "tokenizer.model",       "modules.json",
    "1_Pooling/config.json"};

// "a, b and 7 more"
std::string ListOf(const std::vector<std::string_view>& names) {
  constexpr size_t kMaxNames = 12;
  std::string text;
  const size_t shown = std::min(names.size(), kMaxNames);
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + Quotable(names[i]);
  if (shown < names.size()) text += Format(" and {} more", names.size() - shown);
  return text;
}

std::vector<std::string_view> PathsEndingWith(const ModelInfo& info, std::string_view ending) {
  std::vector<std::string_view> paths;
  for (const RemoteFile& file : info.files) {
    if (file.path.ends_with(ending)) paths.push_back(file.path);
  }
  return paths;
}

// For a model without what is needed in Hugging Face's layout.
std::unexpected<Error> FailWithoutFiles(const CheckpointName& name, const ModelInfo& info,
                                        std::string_view missing) {
  const std::string where = "hf:" + name.repository();
  if (const auto gguf = PathsEndingWith(info, ".gguf"); !gguf.empty()) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: has no {}, but GGUF files; name one of them, as in {}/{}. There "
                       "are {}",
                       where, missing, where, Quotable(gguf.front()), ListOf(gguf)));
  }
  const auto all = ListOf(PathsEndingWith(info, ""));
  if (info.Find("params.json") != nullptr) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: has no {}, but a checkpoint in Meta's own format; download its "
                       "folder and convert that. There are {}",
                       where, missing, all));
  }
  return Fail(ErrorCode::kUnsupported,
              Format("{}: has no {}; models need config.json, weights and a tokenizer. "
                     "There are {}",
                     where, missing, all.empty() ? "no files" : all));
}

// llama.cpp names the parts of a split model "...-00002-of-00003.gguf".
struct SplitName {
  std::string_view stem;
  unsigned count = 1;
};

SplitName ReadSplitName(std::string_view path) {
  constexpr std::string_view kExample = "-00001-of-00003.gguf";
  constexpr size_t kDigits = 5;
  const SplitName whole = {path};
  if (path.size() <= kExample.size()) return whole;
  const std::string_view ending = path.substr(path.size() - kExample.size());
  for (size_t i = 0; i < kExample.size(); ++i) {
    const bool is_digit = ending[i] >= '0' && ending[i] <= '9';
    const bool wants_digit = kExample[i] >= '0' && kExample[i] <= '9';
    if (wants_digit ? !is_digit : ending[i] != kExample[i]) return whole;
  }
  SplitName split = {path.substr(0, path.size() - kExample.size())};
  const char* const count = ending.data() + std::string_view("-00001-of-").size();
  std::from_chars(count, count + kDigits, split.count);
  return split;
}

Result<std::vector<RemoteFile>> ChooseGguf(const CheckpointName& name, const ModelInfo& info,
                                           Purpose purpose) {
  const std::string where = "hf:" + name.repository();
  if (purpose == Purpose::kPlan) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}/{}: the plan of a GGUF file needs the whole file; download it and "
                       "give the file itself",
                       where, Quotable(name.file)));
  }
  if (info.Find(name.file) == nullptr) {
    const auto gguf = PathsEndingWith(info, ".gguf");
    return Fail(
        ErrorCode::kNotFound,
        Format("{}: has no file {}; {}{}", where, Quotable(name.file),
               gguf.empty() ? "it has no GGUF files" : "its GGUF files are ", ListOf(gguf)));
  }
  std::vector<RemoteFile> files;
  const SplitName split = ReadSplitName(name.file);
  if (split.count <= 1) return std::vector<RemoteFile>{*info.Find(name.file)};
  for (unsigned part = 1; part <= split.count; ++part) {
    const std::string path = Format("{}-{:05}-of-{:05}.gguf", split.stem, part, split.count);
    const RemoteFile* file = info.Find(path);
    if (file == nullptr) {
      return Fail(ErrorCode::kNotFound, Format("{}: has no file {}, which is a part of {}", where,
                                               Quotable(path), Quotable(name.file)));
    }
    files.push_back(*file);
  }
  return files;
}

}  // namespace

Result<std::vector<RemoteFile>> ChooseFiles(const CheckpointName& name, const ModelInfo& info,
                                            Purpose purpose) {
  if (!name.file.empty()) return ChooseGguf(name, info, purpose);
  std::vector<RemoteFile> files;
  const RemoteFile* config = info.Find(kConfigFile);
  if (config != nullptr) files.push_back(*config);
  if (config == nullptr && purpose != Purpose::kVocabulary) {
    return FailWithoutFiles(name, info, kConfigFile);
  }
  if (purpose == Purpose::kPlan) return files;
  for (const std::string_view path : kSmallFiles) {
    if (const RemoteFile* file = info.Find(path)) files.push_back(*file);
  }
  // Checked here, so that nobody downloads gigabytes before this is noticed.
  if (info.Find("tokenizer.json") == nullptr && info.Find("tokenizer.model") == nullptr) {
    return FailWithoutFiles(name, info, "tokenizer.json or tokenizer.model");
  }
  if (purpose == Purpose::kVocabulary) return files;
  // In the order in which converter/hugging_face looks for them.
  const RemoteFile* weights = nullptr;
  for (const std::string_view path : {kWeightsFile, kIndexFile, kTorchFile, kTorchIndexFile}) {
    if (weights == nullptr) weights = info.Find(path);
  }
  if (weights == nullptr) return FailWithoutFiles(name, info, "model.safetensors");
  files.push_back(*weights);
  return files;
}

Result<std::vector<RemoteFile>> ChooseShards(const CheckpointName& name, const ModelInfo& info,
                                             const std::filesystem::path& index_path) {
  CRIA_ASSIGN_OR_RETURN(const json index, ReadJsonFile(index_path, kMaxIndexBytes));
  const auto bad = [&](const std::string& what) {
    return Fail(ErrorCode::kInvalidFile,
                Format("hf:{}: {} {}", name.repository(), index_path.filename().string(), what));
  };
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object() || weight_map->empty()) {
    return bad("has no weight_map");
  }
  std::set<std::string> names;
  for (const json& shard : *weight_map) {
    if (!shard.is_string()) return bad("has a weight_map with something else than names of files");
    names.insert(shard.get<std::string>());
  }
  std::vector<RemoteFile> files;
  for (const std::string& shard : names) {
    const RemoteFile* file = info.Find(shard);
    if (file == nullptr || shard.contains('/')) {
      return bad(Format("names the file \"{}\", which the model does not have beside it",
                        Quotable(shard)));
    }
    files.push_back(*file);
  }
  return files;
}

}  // namespace cria::hub
