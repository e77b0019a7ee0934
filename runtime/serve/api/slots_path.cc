// GET /slots, POST /slots/{id}?action=save|restore|erase

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "llm/session_file.h"
#include "serve/api/fields.h"
#include "serve/api/paths.h"
#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

size_t SlotIndex(const Exchange& exchange) {
  size_t index = 0;
  const std::string& name = exchange.name;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const size_t count = exchange.state.sessions.size();
  if (error != std::errc() || end != name.data() + name.size() || index >= count) {
    throw RequestError(404, Format("there is no slot {}: they are 0 to {}", name, count - 1),
                       "id_slot");
  }
  return index;
}

// The value of `action` in "action=save&…".
std::string_view ActionOf(std::string_view query) {
  constexpr std::string_view kName = "action=";
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    if (field.starts_with(kName)) return field.substr(kName.size());
    query.remove_prefix(std::min(field.size() + 1, query.size()));
  }
  return "";
}

// The path of a file in the folder. Names cannot leave it.
std::string PathOfSlotFile(const ApiState& state, const Fields& fields) {
  constexpr size_t kMaxNameBytes = 200;
  if (state.options.slot_save_path.empty()) {
    throw RequestError(501,
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
  return state.options.slot_save_path + "/" + name;
}

// Each of these returns its figure when the slot is free again, so that the client's next request
// finds it free.

size_t SaveSlot(ApiState& state, size_t index, const std::string& path) {
  const SessionPool::Lease lease = state.sessions.TakeSlot(index);
  Session& session = lease.session();
  const size_t count = session.tokens().size();
  ThrowIfError(SaveSession(path, SessionContent::kText, {}, session, count, state.engine),
               "filename");
  return count;
}

size_t RestoreSlot(ApiState& state, size_t index, const std::string& path) {
  const SessionPool::Lease lease = state.sessions.TakeSlot(index);
  Result<LoadedSession> loaded =
      LoadSession(path, SessionContent::kText, state.engine, lease.session());
  if (!loaded && loaded.error().code() == ErrorCode::kNotFound) {
    throw RequestError(404, "there is no such file in the folder of slots", "filename");
  }
  const LoadedSession file = ValueOf(std::move(loaded), "filename");
  return file.why_read_again.empty() ? file.tokens.size() : 0;
}

size_t EraseSlot(ApiState& state, size_t index) {
  const SessionPool::Lease lease = state.sessions.TakeSlot(index);
  const size_t count = lease.session().tokens().size();
  // Clear would leave the tokens in the KV cache.
  ThrowIfError(lease.session().Restore({}, 0, [] { return Status(); }));
  return count;
}

}  // namespace

void HandleSlots(Exchange& exchange) {
  Json slots = Json::array();
  for (const SessionPool::SlotFigures& slot : exchange.state.sessions.figures()) {
    slots.push_back({{"id", slots.size()},
                     {"n_ctx", exchange.state.engine.decoder().context_tokens()},
                     {"is_processing", slot.is_busy},
                     {"n_tokens", slot.num_tokens},
                     {"n_uses", slot.num_uses}});
  }
  SendNow(exchange, slots);
}

void HandleSlotAction(Exchange& exchange) {
  const size_t index = SlotIndex(exchange);
  const std::string action(ActionOf(exchange.request.query));
  if (action == "erase") {
    return Submit(exchange, [&state = exchange.state, index](Response& response) {
      response.Send({{"id_slot", index}, {"n_erased", EraseSlot(state, index)}});
    });
  }
  if (action != "save" && action != "restore") {
    throw RequestError(400, "the action must be save, restore or erase", "action");
  }
  const Json body = ReadBody(exchange.request.body);
  const Fields fields(body);
  const std::string path = PathOfSlotFile(exchange.state, fields);
  Submit(exchange, [&state = exchange.state, index, path, is_saved = action == "save",
                    name = fields.RequiredString("filename")](Response& response) {
    const size_t count = is_saved ? SaveSlot(state, index, path) : RestoreSlot(state, index, path);
    response.Send(
        {{"id_slot", index}, {"filename", name}, {is_saved ? "n_saved" : "n_restored", count}});
  });
}

}  // namespace cria::serve
