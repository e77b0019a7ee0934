// GET /slots, POST /slots/{id}?action=save|restore|erase

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "llm/session_file.h"
#include "server/api/paths.h"
#include "server/requests/fields.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

size_t SlotIndex(const Exchange& exchange) {
  size_t index = 0;
  const std::string& name = exchange.name;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const size_t count = exchange.model().sessions.size();
  if (error != std::errc() || end != name.data() + name.size() || index >= count) {
    throw RequestError(404, Format("there is no slot {}: they are 0 to {}", name, count - 1),
                       "id_slot");
  }
  return index;
}

// The path of a file in the folder. Names cannot leave it.
std::string PathOfSlotFile(const ApiState& state, const Fields& fields) {
  constexpr size_t kMaxNameBytes = 200;
  if (state.options.slot_save_path.empty()) {
    throw RequestError(400,
                       "slots cannot be saved: the server was started without a folder for "
                       "their files");
  }
  const std::string name = fields.RequiredString("filename");
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != '/' && c != '\\' && c != 0x7F;
  };
  const bool is_allowed = !name.empty() && name.size() <= kMaxNameBytes && name.front() != '.' &&
                          !name.contains("..") && std::ranges::all_of(name, is_plain);
  if (!is_allowed) {
    RefuseField("filename",
                "must be a plain name of at most 200 bytes, without '/', '..', spaces or a dot at "
                "its beginning");
  }
  const std::string path = state.options.slot_save_path + "/" + name;
  // A link leads to whatever it names, and a session file would replace that.
  std::error_code unknown;
  const auto type = std::filesystem::symlink_status(path, unknown).type();
  if (type != std::filesystem::file_type::regular &&
      type != std::filesystem::file_type::not_found) {
    RefuseField("filename", "is the name of something else than a file of a slot");
  }
  return path;
}

// What a client is told of a failure with the file: its name, but not the folder, which is the
// server's.
RequestError ErrorOfFile(const Error& error, const ApiState& state) {
  const std::string folder = state.options.slot_save_path + "/";
  const RequestError known = ErrorOf(error, "filename");
  std::string message = known.message();
  for (size_t at = 0; (at = message.find(folder, at)) != message.npos;) {
    message.erase(at, folder.size());
  }
  return {known.status(), std::move(message), known.param(), known.code()};
}

// Each of these returns its figure when the slot is free again, so that the client's next request
// finds it free.

size_t SaveSlot(Exchange& exchange, size_t index, const std::string& path) {
  const SessionPool::Lease lease = exchange.model().sessions.TakeSlot(index);
  Session& session = lease.session();
  const size_t count = session.tokens().size();
  const Status saved =
      SaveSession(path, SessionContent::kText, {}, session, count, exchange.model().engine);
  if (!saved) throw ErrorOfFile(saved.error(), exchange.state);
  return count;
}

size_t RestoreSlot(Exchange& exchange, size_t index, const std::string& path) {
  const SessionPool::Lease lease = exchange.model().sessions.TakeSlot(index);
  Result<LoadedSession> loaded =
      LoadSession(path, SessionContent::kText, exchange.model().engine, lease.session());
  if (!loaded && loaded.error().code() == ErrorCode::kNotFound) {
    throw RequestError(404, "there is no such file in the folder of slots", "filename");
  }
  if (!loaded) throw ErrorOfFile(loaded.error(), exchange.state);
  return loaded->why_read_again.empty() ? loaded->tokens.size() : 0;
}

size_t EraseSlot(ServedModel& model, size_t index) {
  const SessionPool::Lease lease = model.sessions.TakeSlot(index);
  const size_t count = lease.session().tokens().size();
  // Clear would leave the tokens in the KV cache.
  ThrowIfError(Turn(lease.session()).Restore({}, 0, [] { return Status(); }));
  return count;
}

}  // namespace

void HandleSlots(Exchange& exchange) {
  Json slots = Json::array();
  for (const SessionPool::SlotFigures& slot : exchange.model().sessions.figures()) {
    slots.push_back({{"id", slots.size()},
                     {"n_ctx", exchange.model().engine.decoder().context_tokens()},
                     {"is_processing", slot.is_busy},
                     {"n_tokens", slot.num_tokens},
                     {"n_uses", slot.num_uses}});
  }
  SendNow(exchange, slots);
}

void HandleSlotAction(Exchange& exchange) {
  const size_t index = SlotIndex(exchange);
  const std::string action = QueryValue(exchange.request.query, "action").value_or("");
  if (action == "erase") {
    return Submit(exchange, [&exchange, index](Response& response) {
      response.Send({{"id_slot", index}, {"n_erased", EraseSlot(exchange.model(), index)}});
    });
  }
  if (action != "save" && action != "restore") {
    throw RequestError(400, "the action must be save, restore or erase", "action");
  }
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  const std::string path = PathOfSlotFile(exchange.state, fields);
  Submit(exchange, [&exchange, index, path, is_saved = action == "save",
                    name = fields.RequiredString("filename")](Response& response) {
    const size_t count =
        is_saved ? SaveSlot(exchange, index, path) : RestoreSlot(exchange, index, path);
    response.Send(
        {{"id_slot", index}, {"filename", name}, {is_saved ? "n_saved" : "n_restored", count}});
  });
}

}  // namespace cria::server
