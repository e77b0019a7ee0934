#pragma once

// nlohmann's JSON without compiling its code in each source: json.cc has the code. A source that is
// compiled without precompiled headers does not include this, and has the code itself.

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::parser<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<const char*>>;
