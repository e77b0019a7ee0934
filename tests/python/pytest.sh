#!/usr/bin/env bash
# pytest.sh PACKAGE MODULES [ARGUMENTS…]: runs pytest in the folder PACKAGE, whose src it tests, by the system's Python or
# the first one in PATH, whichever has these modules, with a semicolon between them.
set -euo pipefail
package=$1 modules=$2
shift 2
export PYTHONPATH=$package/src PYTHONDONTWRITEBYTECODE=1
for python in /usr/bin/python3 python3; do
  if "$python" -c "import ${modules//;/, }" 2>/dev/null; then
    cd "$package"
    exec "$python" -m pytest -q -p no:cacheprovider "$@"
  fi
done
echo "skipped: no Python here has ${modules//;/ and }"
exit 77
