#include "converter/hub/hub_errors.h"

#include <string>

#include "converter/hub/model_info.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kTooManyRequests = 429;

std::unexpected<Error> FailAsGated(const std::string& where, const HubClient& client,
                                   const CheckpointName& name, const ModelInfo* info) {
  const std::string licence =
      info != nullptr && !info->licence.empty() ? Format(" (licence: {})", info->licence) : "";
  const std::string page = client.endpoint().text + "/" + name.repository();
  if (client.has_token()) {
    return Fail(ErrorCode::kIo,
                Format("{}: is a gated model, which the token in HF_TOKEN may not read; agree "
                       "to its terms{} with the token's account on {} and wait for access",
                       where, licence, page));
  }
  return Fail(ErrorCode::kIo,
              Format("{}: is a gated model; agree to its terms{} on {} and put a token of "
                     "your account into the environment variable HF_TOKEN",
                     where, licence, page));
}

std::unexpected<Error> FailAsMissing(const std::string& where, const HubClient& client,
                                     const CheckpointName& name, std::string_view file) {
  if (!file.empty()) {
    return Fail(ErrorCode::kNotFound,
                Format("{}: the hub has no file {} in this commit", where, Quotable(file)));
  }
  return Fail(
      ErrorCode::kNotFound,
      Format("{}: the model or its revision \"{}\" does not exist on {}, or is "
             "private{}",
             where, Quotable(name.revision), client.endpoint().text,
             client.has_token() ? " and the token in HF_TOKEN may not read it"
                                : "; for a private model, put a token of your account into the "
                                  "environment variable HF_TOKEN"));
}

}  // namespace

std::unexpected<Error> FailureOf(const HttpAnswer& answer, const HubClient& client,
                                 const CheckpointName& name, std::string_view file,
                                 const ModelInfo* info) {
  const std::string where = "hf:" + name.repository();
  const std::string asked = file.empty() ? where : where + "/" + Quotable(file);
  if (answer.breakdown) {
    return Fail(ErrorCode::kIo, Format("{}: {}", asked, answer.breakdown->sentence));
  }
  const std::string_view code = answer.header("x-error-code");
  const bool is_refused = answer.status == kUnauthorized || answer.status == kForbidden;
  if (is_refused && (code == "GatedRepo" || (info != nullptr && info->is_gated))) {
    return FailAsGated(where, client, name, info);
  }
  if (answer.status == kNotFound || code == "RepoNotFound" || code == "RevisionNotFound") {
    return FailAsMissing(where, client, name, file);
  }
  if (answer.status == kUnauthorized && client.has_token()) {
    return Fail(ErrorCode::kIo,
                Format("{}: {} does not accept the token in HF_TOKEN; it may be misspelled or "
                       "expired",
                       where, client.endpoint().text));
  }
  // The hub does not say whether a model exists that it shows only to some users.
  if (answer.status == kUnauthorized) return FailAsMissing(where, client, name, {});
  if (answer.status == kTooManyRequests) {
    return Fail(ErrorCode::kIo, Format("{}: {} answers that there were too many requests; try "
                                       "again later",
                                       asked, client.endpoint().text));
  }
  const std::string message = Quotable(answer.header("x-error-message"));
  return Fail(ErrorCode::kIo,
              Format("{}: {} answered with status {}{}{}; try again later", asked,
                     client.endpoint().text, answer.status, message.empty() ? "" : ": ", message));
}

}  // namespace cria::hub
