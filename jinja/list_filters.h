#pragma once

#include "jinja/natives.h"

// Filters whose input is a sequence, as in a loop.
namespace cria::jinja {

Value JoinFilter(Call& call);
Value FirstFilter(Call& call);
Value LastFilter(Call& call);
Value ListFilter(Call& call);
Value ItemsFilter(Call& call);
Value DictSortFilter(Call& call);
Value ReverseFilter(Call& call);
Value UniqueFilter(Call& call);
Value SortFilter(Call& call);
Value BatchFilter(Call& call);
Value SliceFilter(Call& call);
Value GroupByFilter(Call& call);
Value SumFilter(Call& call);
Value MinFilter(Call& call);
Value MaxFilter(Call& call);
Value MapFilter(Call& call);
Value SelectFilter(Call& call);
Value RejectFilter(Call& call);
Value SelectAttributeFilter(Call& call);
Value RejectAttributeFilter(Call& call);

}  // namespace cria::jinja
