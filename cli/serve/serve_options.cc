#include "cli/serve/serve_options.h"

#include <string_view>

#include "cli/flags/options.h"
#include "cli/flags/server_options.h"
#include "server/api/model_request.h"

namespace cria::cli {
namespace {

constexpr const char* kAccessGroup = "Access";

// An option that may be repeated.
Option& AddTexts(CommandLine& program, std::string_view name, std::vector<std::string>& values,
                 std::string help) {
  return program
      .Add(
          name, "TEXT",
          [&values](std::string_view text) -> Status {
            values.emplace_back(text);
            return {};
          },
          std::move(help))
      .Repeatable();
}

void AddAccessOptions(CommandLine& program, ServeOptions& options) {
  const char* group = kAccessGroup;
  program
      .AddText("--host", options.host,
               "Where to listen: a name or address of this machine; 0.0.0.0 or :: for all its "
               "addresses; unix:PATH for a Unix socket")
      .Default(options.host)
      .Metavar("HOST")
      .Group(group);
  program.AddNumber("--port", options.port, "Port; 0: a free one", 0u, 65535u).Group(group);
  program
      .AddText("--unix-socket", options.unix_socket,
               "Listen at a Unix socket, in place of --host and --port")
      .Metavar("PATH")
      .Group(group);
  program
      .AddText("--api-key-file", options.api_key_path,
               "A file with a key on each line; requests need one of them")
      .Metavar("FILE")
      .Group(group);
  program
      .AddFlag("--insecure", options.is_insecure, "Let other machines send requests without a key")
      .Group(group);
  AddTexts(program, "--allowed-host", options.allowed_hosts,
           "A name by which clients call the server, such as board.local, beside that of --host "
           "and localhost; may be repeated")
      .Metavar("HOST")
      .Group(group);
  AddTexts(program, "--allowed-origin", options.allowed_origins,
           "Another site whose pages may use the server, such as https://chat.example; may be "
           "repeated")
      .Metavar("ORIGIN")
      .Group(group);
}

void AddServedModels(CommandLine& program, ServeOptions& options) {
  program
      .Add(
          "-m,--model", "MODEL",
          [&options](std::string_view text) -> Status {
            options.models.emplace_back(text);
            return {};
          },
          std::string(kModelNameHelp) + "; may be repeated: requests choose one of several")
      .Environment("CRIA_MODEL")
      .Positional()
      .Repeatable();
  AddAgreement(program, options.agrees);
  program
      .AddText("--models", options.models_folder,
               "A folder of model files: requests choose one, which is loaded for them")
      .Metavar("FOLDER");
  program
      .Add(
          "--keep-alive", "TIME",
          [&options](std::string_view text) -> Status {
            const auto time = server::ReadKeepAlive(server::Json(std::string(text)));
            if (!time) return WrongValue(text, "a time such as 5m, 0 or -1");
            options.keep_alive = *time;
            return {};
          },
          "How long one of several models stays loaded after its last answer, such as 30s, 5m or "
          "1h; 0: it goes at once; -1: it stays until another one needs its memory (default: 5m)")
      .Group(kServerGroup);
}

}  // namespace

void AddServeOptions(CommandLine& program, ServeOptions& options) {
  // Several clients are what a server is for.
  options.engine.num_sequences = kServerSequences;
  options.engine.default_kept_sequences = kServerKeptPrompts;
  AddServedModels(program, options);
  program
      .AddText("--alias", options.alias,
               "The name of the only model for clients; default: the model's")
      .Metavar("NAME");
  program
      .AddText("--slot-save-path", options.slot_save_path,
               "A folder in which clients may save the state of a sequence; without it, they may "
               "not")
      .Metavar("FOLDER");
  AddAccessOptions(program, options);
  AddServerBounds(program, options.bounds, options.max_waiting);
  AddKeptPrompts(program, options.engine);
  AddPrefixCache(program, options.prefix_cache);
  program
      .AddNumber("--timeout", options.timeout_seconds,
                 "Seconds in which a request must come, and for which an answer waits for a "
                 "client that takes nothing",
                 1u, 86400u)
      .Group(kServerGroup);
  program
      .AddNumber("--shutdown-timeout", options.shutdown_seconds,
                 "Seconds that answers get to end after Ctrl-C or SIGTERM", 0u, 86400u)
      .Group(kServerGroup);
  AddEngineOptions(program, options.engine);
  AddMaxTempOption(program, options.engine.thermal);
  AddDraftOptions(program, options.engine);
}

}  // namespace cria::cli
