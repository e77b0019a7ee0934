#include "cli/flags/foreign_options.h"

#include <algorithm>
#include <ranges>

namespace cria::cli {
namespace {

struct ForeignOptions {
  std::string_view names;  // With spaces between them.
  std::string_view advice;
};

constexpr ForeignOptions kForeignOptions[] = {
    {"-hf -hfr --hf-repo -hff --hf-file -mu --model-url -dr --docker-repo",
     "`cria-convert hf:ORG/NAME` downloads a model of the hub and makes the file for -m"},
    {"-hft --hf-token", "cria-convert takes the token from the environment variable HF_TOKEN"},
    {"-ngl --gpu-layers --n-gpu-layers -ngld --gpu-layers-draft --n-gpu-layers-draft -sm "
     "--split-mode -ts --tensor-split -mg --main-gpu -dev --device --list-devices -nkvo "
     "--no-kv-offload -ot --override-tensor -cmoe --cpu-moe -ncmoe --n-cpu-moe",
     "Cria computes on the processor and uses no GPU, so leave it out"},
    {"-fa --flash-attn", "there is only one kind of attention, so leave it out"},
    {"--mlock", "packed weights are mapped and never locked in memory, so leave it out"},
    {"--mmap", "packed weights are always mapped, so leave it out"},
    {"--no-mmap", "packed weights are mapped; --no-pack-cache keeps them in private memory"},
    {"-ub --ubatch-size", "-b alone says how many tokens of a prompt are computed at once"},
    {"--numa -C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll",
     "-t sets the number of threads, and numactl or taskset binds a program to cores"},
    {"-cnv --conversation -no-cnv --no-conversation -i --interactive -if --interactive-first",
     "`cria chat` converses and `cria run` continues a text, so leave it out"},
    {"-sysf --system-prompt-file", "`-sys \"$(cat FILE)\"` takes the text of a file"},
    {"-bf --binary-file", "-f takes a text"},
    {"--in-prefix --in-suffix --in-prefix-bos",
     "the model file has its chat template, which writes what is around a message"},
    {"--simple-io", "away from a terminal, input and output are plain, so leave it out"},
    {"--override-kv", "change the checkpoint and convert it again"},
    {"--jinja", "chat templates are always Jinja's, so leave it out"},
    {"--no-jinja --chat-template --chat-template-file",
     "the model file has its chat template, which `cria-convert --chat-template` replaces"},
    {"-ctk --cache-type-k -ctv --cache-type-v", "--kv says how keys and values are both stored"},
    {"-co --color", "only `cria chat` colors its answers, so leave it out"},
    {"-r --reverse-prompt", "--stop ends a text before given words"},
    {"--no-context-shift --context-shift --ctx-shift", "--context-full stop or shift says it"},
    {"--swa-full", "layers with a window keep only the pages of the window, so leave it out"},
    {"-kvu --kv-unified", "all sequences share one KV cache, so leave it out"},
    {"--kv-offload", "Cria computes on the processor and uses no GPU, so leave it out"},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro",
     "--session keeps a conversation or a text, and goes on with it"},
    {"--warmup --no-warmup", "nothing is computed before the first prompt, so leave it out"},
    {"-v --verbose -lv --log-verbosity --log-disable --log-file",
     "there are no levels of logging, so leave it out"},
    {"--samplers --sampling-seq --mirostat --mirostat-lr --mirostat-ent --dynatemp-range "
     "--dynatemp-exp --top-nsigma",
     "the samplers are the penalties, --dry-multiplier, --top-k, --typical, --top-p, --min-p, "
     "--xtc-probability and --temp, in this order"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx",
     "the model file says how positions are encoded, so leave it out"},
    {"--lora --lora-scaled --control-vector", "merge it into the checkpoint and convert that"},
    {"-mm --mmproj --image", "models read only text"},
    {"--grammar-file", "--grammar takes the file"},
    {"-j -jf --json-schema-file", "--json-schema takes the file"},
    {"--draft --draft-n", "--draft-max says how many tokens are guessed at once"},
    {"--spec-type", "drafts come from --draft-ngram, --draft-mtp or --model-draft"},
    {"--reasoning --reasoning-budget --reasoning-format",
     "`cria chat --think` turns reasoning on and off"},
    {"--n-predict --max-tokens --max-new-tokens", "-n says it"},
    {"--temperature", "--temp says it"},
    // Options of servers.
    {"--api-key", "--api-key-file takes keys from a file, because others can read command lines"},
    {"-a", "--alias says it"},
    {"-cb --cont-batching -nocb --no-cont-batching",
     "requests are always computed together, so leave it out"},
    {"--metrics --slots --props --webui", "the server always has this, so leave it out"},
    {"--no-webui --no-slots", "the server always has this; keys of --api-key-file protect it"},
    {"--embedding --embeddings", "the server always has /v1/embeddings, so leave it out"},
    {"--pooling", "the model file says it, and `cria embed --pooling` takes another"},
    {"--reranking --rerank",
     "the server has /v1/rerank if the model is a reranker, so leave it out"},
    {"--threads-http", "-t sets the number of threads, and --max-connections that of connections"},
    {"--ssl-key-file --ssl-cert-file", "for https, put a proxy such as nginx before the server"},
    // Options of converters.
    {"--outfile", "-o says it"},
    {"--outtype", "--weights keep, int4, int8 or f32 says it"},
    {"--remote", "name the model as hf:ORG/NAME"},
    {"--imatrix", "--calibrate takes a text"},
};

}  // namespace

std::string_view InPlaceOfForeignOption(std::string_view name) {
  for (const auto& [names, advice] : kForeignOptions) {
    const auto is_name = [name](const auto& word) { return std::string_view(word) == name; };
    if (std::ranges::any_of(std::views::split(names, ' '), is_name)) return advice;
  }
  return "";
}

}  // namespace cria::cli
