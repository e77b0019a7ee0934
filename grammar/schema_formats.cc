#include "grammar/schema_formats.h"

namespace cria::grammar {
namespace {

// RFC 3339, section 5.6, with the days of each month; February has a 29th in leap years.
#define CRIA_LEAP "([02468][048]|[13579][26])"
#define CRIA_DATE                                                                     \
  "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|" \
  "02-(0[1-9]|1\\d|2[0-8]))|(\\d\\d(0[48]|[2468][048]|[13579][26])|" CRIA_LEAP "00)-02-29)"
// A leap second is the last one of a day in UTC, and read only in UTC.
#define CRIA_TIME                                                                           \
  "(([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,20})?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)|" \
  "23:59:60(\\.\\d{1,20})?([Zz]|[+-]00:00))"
#define CRIA_BYTE "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define CRIA_IPV4 CRIA_BYTE "(\\." CRIA_BYTE "){3}"
// RFC 4291, section 2.2, as in RFC 3986, section 3.2.2.
#define CRIA_H "[\\da-fA-F]{1,4}"
#define CRIA_LS32 "(" CRIA_H ":" CRIA_H "|" CRIA_IPV4 ")"
#define CRIA_IPV6                                                                               \
  "(" CRIA_H ":){6}" CRIA_LS32 "|::(" CRIA_H ":){5}" CRIA_LS32 "|(" CRIA_H ")?::(" CRIA_H       \
  ":){4}" CRIA_LS32 "|((" CRIA_H ":)?" CRIA_H ")?::(" CRIA_H ":){3}" CRIA_LS32 "|((" CRIA_H     \
  ":){0,2}" CRIA_H ")?::(" CRIA_H ":){2}" CRIA_LS32 "|((" CRIA_H ":){0,3}" CRIA_H ")?::" CRIA_H \
  ":" CRIA_LS32 "|((" CRIA_H ":){0,4}" CRIA_H ")?::" CRIA_LS32 "|((" CRIA_H ":){0,5}" CRIA_H    \
  ")?::" CRIA_H "|((" CRIA_H ":){0,6}" CRIA_H ")?::"
// RFC 5321, section 4.1.2.
#define CRIA_ATOM "[\\w!#$%&'*+/=?^`{|}~\\-]+"
#define CRIA_LABEL "[a-zA-Z\\d]([a-zA-Z\\d\\-]{0,61}[a-zA-Z\\d])?"
#define CRIA_EMAIL                                                                  \
  "(" CRIA_ATOM "(\\." CRIA_ATOM ")*|\"([ !#-\\[\\]-~]|\\\\[ -~])*\")@(" CRIA_LABEL \
  "(\\." CRIA_LABEL ")*|\\[(" CRIA_IPV4 "|IPv6:(" CRIA_IPV6 "))\\])"
// RFC 3339, appendix A.
#define CRIA_DURATION_TIME "T(\\d+H(\\d+M(\\d+S)?)?|\\d+M(\\d+S)?|\\d+S)"
#define CRIA_DURATION                                                       \
  "P(\\d+W|(\\d+Y(\\d+M(\\d+D)?)?|\\d+M(\\d+D)?|\\d+D)(" CRIA_DURATION_TIME \
  ")?|" CRIA_DURATION_TIME ")"
// RFC 3986, appendix A.
#define CRIA_PCT "%[\\da-fA-F]{2}"
#define CRIA_PCHAR "([\\w.~!$&'()*+,;=:@\\-]|" CRIA_PCT ")"
#define CRIA_URI                                                                       \
  "[a-zA-Z][a-zA-Z\\d+.\\-]*:(//(([\\w.~!$&'()*+,;=:\\-]|" CRIA_PCT                    \
  ")*@)?"                                                                              \
  "(\\[(" CRIA_IPV6 ")\\]|([\\w.~!$&'()*+,;=\\-]|" CRIA_PCT ")*)(:\\d*)?(/" CRIA_PCHAR \
  "*)*"                                                                                \
  "|/(" CRIA_PCHAR "+(/" CRIA_PCHAR "*)*)?|" CRIA_PCHAR "+(/" CRIA_PCHAR               \
  "*)*|)"                                                                              \
  "(\\?(" CRIA_PCHAR "|[/?])*)?(#(" CRIA_PCHAR "|[/?])*)?"

struct NamedFormat {
  std::string_view name;
  std::string_view pattern;
};

constexpr NamedFormat kFormats[] = {
    {"date", CRIA_DATE},
    {"time", CRIA_TIME},
    {"date-time", CRIA_DATE "[Tt]" CRIA_TIME},
    {"duration", CRIA_DURATION},
    {"uuid", "[\\da-fA-F]{8}(-[\\da-fA-F]{4}){3}-[\\da-fA-F]{12}"},
    {"ipv4", CRIA_IPV4},
    {"ipv6", CRIA_IPV6},
    {"email", CRIA_EMAIL},
    {"uri", CRIA_URI},
    {"json-pointer", "(/([^~/]|~[01])*)*"},
};

#undef CRIA_LEAP
#undef CRIA_DATE
#undef CRIA_TIME
#undef CRIA_BYTE
#undef CRIA_IPV4
#undef CRIA_H
#undef CRIA_LS32
#undef CRIA_IPV6
#undef CRIA_ATOM
#undef CRIA_LABEL
#undef CRIA_EMAIL
#undef CRIA_DURATION_TIME
#undef CRIA_DURATION
#undef CRIA_PCT
#undef CRIA_PCHAR
#undef CRIA_URI

}  // namespace

std::string_view FormatPattern(std::string_view format) {
  for (const NamedFormat& known : kFormats) {
    if (format == known.name) return known.pattern;
  }
  return {};
}

}  // namespace cria::grammar
